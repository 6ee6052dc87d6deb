"""One tick: everything that was read from the machine at one moment; deadlines; recordings.

A recording is a file of ticks, so the names of the fields are part of its format; `problems` is
encoded as `troubles`. Deadlines are absolute: a late tick does not delay the ticks after it.
"""

import math
from collections.abc import Iterable
from typing import Annotated

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.clouds.ebs_statistics import Failure, Reading
from disksla.kernel.consumers import ConsumerReading, Consumption, OwnLimit
from disksla.kernel.disks import Disk
from disksla.kernel.nfs import MountReading
from disksla.kernel.procfs import CloseSample, HostWait
from disksla.promise.configuration import ConfigurationText, TermsFile
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.verdict.interval import Clocks

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Tick(msgspec.Struct, frozen=True, omit_defaults=True):
    """Input of `advance`: one reading of the machine, and events since the tick before."""

    clocks: Clocks
    diskstats: str | None  # text of /proc/diskstats; None if it could not be read
    lateness_s: float = 0.0  # time from the deadline of the tick to the reading
    missed_ticks: int = 0  # deadlines that passed without a tick since the tick before
    inflight: dict[str, tuple[int, int]] = {}
    """Reads and writes in flight (sysfs `inflight`) of active devices with partitions."""
    data_writes: dict[str, tuple[Count, Count]] = {}
    """Exact counts by device (`DataWrites`): the number of the opening of the counters, and the
    data writes since. Empty where they are not counted, or were not read."""
    close: dict[str, tuple[CloseSample, ...]] = {}
    """Close samples since the tick before, by device: of disks that were looked at closer."""
    mounts: dict[str, MountReading] | None = None
    """Counters of the NFS mounts by device; None if they were not read."""
    disks: tuple[Disk, ...] | None = None
    """All block devices and NFS mounts, if they changed since the tick before."""
    cpus: Count | None = None  # CPUs of the machine, with the block devices
    host: HostWait | None = None
    """iowait and PSI since boot; None if they were not read (see `needs_host_wait`)."""
    problems: dict[str, str] = msgspec.field(default_factory=dict, name="troubles")
    """Sources that could not be read: `source` or `source:device` -> error message."""
    probes: tuple[ProbeResult, ...] = ()  # probes that ran or were skipped since the tick before
    provider: tuple[Reading | Failure, ...] = ()
    """Readings of the statistics pages of disks since the tick before, in the order of time."""
    consumers: tuple[Consumption, ...] = ()
    """What consumers used of disks since the reading before: once a second, while a disk is
    throttled or busy."""
    watched_s: dict[str, tuple[float, float]] = {}
    """Monotonic begin and end of the time of `consumers`, by device."""
    own_limits: tuple[OwnLimit, ...] = ()
    """Groups that are at their own limit at a disk, in the same readings."""
    why_no_consumers: str | None = None
    """Why consumers are not known, if that changed; empty if they are again."""

    def with_readings(self, readings: Iterable[ConsumerReading]) -> "Tick":
        """Return the tick with these readings of consumers, in the order of time."""
        consumers, own_limits = list(self.consumers), list(self.own_limits)
        watched_s, why_not = dict(self.watched_s), self.why_no_consumers
        for reading in readings:
            consumers += reading.consumers
            own_limits += reading.own_limits
            why_not = why_not if reading.why_not is None else reading.why_not
            for device, (begin_s, end_s) in reading.watched_s.items():
                first_s, last_s = watched_s.get(device, (begin_s, end_s))
                watched_s[device] = min(first_s, begin_s), max(last_s, end_s)
        return msgspec.structs.replace(
            self,
            consumers=tuple(consumers),
            watched_s=watched_s,
            own_limits=tuple(own_limits),
            why_no_consumers=why_not,
        )


FORMAT = 1


class RecordingHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of a recording."""

    recording: int  # version of the format
    interval_s: float  # time between ticks
    kernel: str  # kernel release of the recorded machine
    disksla: str  # version of disksla that recorded
    terms_files: tuple[TermsFile, ...] = ()
    """What the files of terms.d said at the start, the best source first."""
    configuration: ConfigurationText = ConfigurationText()
    """The files of the operator, as they are written."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(RecordingHeader)
_tick_decoder = msgspec.json.Decoder(Tick)


def encode(record: RecordingHeader | Tick) -> bytes:
    """Return one line."""
    return _encoder.encode(record) + b"\n"


def decode_header(line: bytes) -> RecordingHeader:
    """Parse the first line. Raise DiskslaError if it is not a header of this format."""
    try:
        header = _header_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line 1: invalid header of a recording: {error}") from None
    if header.recording != FORMAT:
        raise DiskslaError(f"line 1: found format {header.recording}; expected {FORMAT}")
    if not 0 < header.interval_s < float("inf"):
        raise DiskslaError(
            f"line 1: found interval_s {header.interval_s}; expected a number above zero"
        )
    return header


def decode_tick(line: bytes, number: int) -> Tick:
    """Parse one tick. Raise DiskslaError with the line number if it is not one."""
    try:
        return _tick_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line {number}: invalid tick: {error}") from None


DEAD_AFTER_S = 5.0  # a sampler whose next tick is overdue by more than this is considered dead
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""Multiples of it are spread evenly between whole numbers, however many they are."""


def next_deadline(due_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Return the first deadline after `due_s` that is still ahead, and how many were missed.

    All deadlines are `due_s` plus a multiple of the interval. One that is due exactly now is not
    missed.
    """
    missed = max(0, int((now_s - due_s) / interval_s))
    return due_s + (missed + 1) * interval_s, missed


def is_alive(ticked_at_s: float, now_s: float, interval_s: float) -> bool:
    """Return whether a sampler with this interval, whose last tick was then, is alive."""
    return now_s - ticked_at_s < interval_s + DEAD_AFTER_S


def close_deadlines(due_s: float, interval_s: float, step_s: float) -> list[float]:
    """Return when close samples are read within the interval before a deadline.

    They are a step apart, and up to half a step earlier or later, before each deadline by another
    part of it. Otherwise each window of a limiter whose windows are as long as the interval would
    begin at the same place between two samples, and the errors of its pauses would not cancel out.
    """
    steps = round(interval_s / step_s)
    shift = due_s / interval_s * GOLDEN_RATIO % 1.0 - 0.5
    return [due_s - interval_s * (1 - (number + shift) / steps) for number in range(1, steps)]
