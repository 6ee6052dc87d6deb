"""What is seen of one disk: a window of 100 ms, and the steps of 10 ms that it consists of.

A step is the time between two close samples. Where a disk is not looked at closer, the whole
window is one step.
"""

from itertools import pairwise

import msgspec

from disksla.kernel.procfs import SECTOR_BYTES, CloseSample
from disksla.verdict.interval import Interval

LONGEST_STEP_S = 0.03
"""When in a longer time something completed is not known well enough."""
BUSY_SHARE = 0.25
"""Of the time. With requests in flight for less, no sign is looked for; while a limiter makes them
wait, they do so for more."""
LATE_S = 0.003
"""By so much, samples are late, and the first request of a limiter's window takes longer."""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """One window of a disk, and its steps."""

    window: Interval
    steps: tuple[Interval, ...]
    is_close: bool
    """The steps are those of close samples."""

    @property
    def seen_share(self) -> float:
        """Share of the window that its steps are; what was not seen is taken to be like them."""
        return sum(step.seconds for step in self.steps) / self.window.seconds

    @property
    def busy_s(self) -> float:
        """Time with requests in flight; before Linux 6.10, it may be less than in truth."""
        if self.window.inflight and self.window.inflight_before:
            return self.window.seconds
        return self.window.busy_ms / 1000


def observe(
    window: Interval, last: CloseSample | None, close: tuple[CloseSample, ...]
) -> Observation:
    """Return the observation of a window.

    `last` is the last close sample before it, and `close` are those within it.
    """
    if not close:
        return Observation(window, (window,), is_close=False)
    samples = close if last is None else (last, *close)
    seen = (
        _step(before, after)
        for before, after in pairwise(samples)
        if after.at_s > before.at_s and not _is_reset(before, after)
    )
    steps = tuple(step for step in seen if step.seconds <= LONGEST_STEP_S or step.is_pause)
    looked = Observation(window, steps, is_close=True)
    if 2 * looked.seen_share < 1:
        return Observation(window, (window,), is_close=False)
    return looked


def data_s(window: Interval) -> float:
    """Return the time of a window in which reads and writes of data were in flight."""
    if not is_active(window):
        return 0.0
    if window.inflight > 1 or window.read_ms is None or window.data_write_ms is None:
        return window.seconds
    # One is in flight at a time: that is the time that they took.
    return min(window.seconds, (window.read_ms + window.data_write_ms) / 1000)


def is_active(window: Interval) -> bool:
    """Return whether requests were in flight at its end, or completed."""
    return window.inflight + window.requests > 0


def _step(before: CloseSample, after: CloseSample) -> Interval:
    return Interval(
        end_s=after.at_s,
        seconds=after.at_s - before.at_s,
        reads=after.reads - before.reads,
        writes=after.writes - before.writes,
        read_bytes=(after.read_sectors - before.read_sectors) * SECTOR_BYTES,
        written_bytes=(after.written_sectors - before.written_sectors) * SECTOR_BYTES,
        read_ms=None,
        write_ms=None,
        inflight=after.inflight,
        flushes=after.flushes - before.flushes,
        flush_ms=after.flush_ms - before.flush_ms,
        inflight_before=before.inflight,
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
