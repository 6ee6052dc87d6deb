"""What is seen of one disk: a window of 100 ms, and the steps of 10 ms that it consists of.

A step is the time between two close samples. Where a disk is not looked at closer, the whole
window is one step.
"""

from itertools import pairwise

import msgspec

from disksla.interval import Interval
from disksla.procfs import SECTOR_BYTES, CloseSample

LONGEST_STEP_S = 0.03
"""When in a longer time something completed is not known well enough."""
LEAST_SEEN_SHARE = 0.5
"""Of a window. With less, the whole window is seen as one step."""


class ObservedStep(msgspec.Struct, frozen=True, gc=False):
    """What a disk did between two samples."""

    end_s: float
    """Monotonic time."""
    seconds: float
    reads: int
    writes: int
    """As the kernel counts, or data writes if `flushes` is 0."""
    read_bytes: int
    written_bytes: int
    flushes: int
    flush_s: float
    """Time spent by these flushes."""
    inflight_before: int
    """Requests in flight at the start."""
    inflight: int
    """Requests in flight at the end."""

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def is_silent(self) -> bool:
        """Whether requests were in flight and no data was transferred; flushes transfer none."""
        return not self.bytes and self.inflight_before > 0 and self.inflight > 0


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One window of a disk, and its steps."""

    window: Interval
    steps: tuple[ObservedStep, ...]
    is_close: bool
    """The steps are those of close samples."""

    @property
    def seen_share(self) -> float:
        """Share of the window that its steps are; what was not seen is taken to be like them."""
        return sum(step.seconds for step in self.steps) / self.window.seconds

    @property
    def busy_s(self) -> float:
        """Time with requests in flight; before Linux 6.10, it may be less than in truth."""
        if self.window.inflight and self.steps[0].inflight_before:
            return self.window.seconds
        return self.window.busy_ms / 1000


def observe(
    window: Interval,
    inflight_before: int,
    last: CloseSample | None,
    close: tuple[CloseSample, ...],
) -> Observation:
    """Return the observation of a window.

    `inflight_before` are the requests in flight at its start; `last` is the last close sample
    before, and `close` are those within it.
    """
    samples = close if last is None else (last, *close)
    seen = (
        _step(before, after)
        for before, after in pairwise(samples)
        if after.at_s > before.at_s and not _is_reset(before, after)
    )
    steps = tuple(step for step in seen if step.seconds <= LONGEST_STEP_S or step.is_silent)
    looked = Observation(window, steps, is_close=True)
    if looked.seen_share < LEAST_SEEN_SHARE:
        return Observation(window, (_whole(window, inflight_before),), is_close=False)
    return looked


def _whole(window: Interval, inflight_before: int) -> ObservedStep:
    return ObservedStep(
        end_s=window.end_s,
        seconds=window.seconds,
        reads=window.reads,
        writes=window.writes,
        read_bytes=window.read_bytes,
        written_bytes=window.written_bytes,
        flushes=window.flushes,
        flush_s=window.flush_ms / 1000,
        inflight_before=inflight_before,
        inflight=window.inflight,
    )


def _step(before: CloseSample, after: CloseSample) -> ObservedStep:
    return ObservedStep(
        end_s=after.at_s,
        seconds=after.at_s - before.at_s,
        reads=after.reads - before.reads,
        writes=after.writes - before.writes,
        read_bytes=(after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        written_bytes=(after.written_sectors - before.written_sectors) * SECTOR_BYTES,
        flushes=after.flushes - before.flushes,
        flush_s=(after.flush_ms - before.flush_ms) / 1000,
        inflight_before=before.inflight,
        inflight=after.inflight,
    )


def _is_reset(before: CloseSample, after: CloseSample) -> bool:
    """Return whether a counter is lower than before: the disk is another one, or it wrapped."""
    return (
        after.reads < before.reads
        or after.writes < before.writes
        or after.read_sectors < before.read_sectors
        or after.written_sectors < before.written_sectors
        or after.flushes < before.flushes
    )
