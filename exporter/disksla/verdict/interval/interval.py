"""The difference between two samples: an interval, or a gap with its reason."""

from typing import Annotated, Literal, Self, get_args

import msgspec

from disksla.kernel.procfs import SECTOR_BYTES, CounterValues, difference, to_counters
from disksla.promise.catalogue import Charge, Work

GapReason = Literal[
    "late", "suspend", "clock_step", "unreadable", "malformed", "reset", "replaced", "vanished"
]
GAP_REASONS: tuple[GapReason, ...] = get_args(GapReason)

LONGEST_INTERVAL_TICKS = 3
"""A longer interval, in ticks, is a gap: it averages over several windows of a limiter."""

_ClockSeconds = Annotated[float, msgspec.Meta(ge=-(2.0**40), le=2.0**40)]
"""Thirty thousand years, which is what a recording may say."""


class Clocks(msgspec.Struct, frozen=True):
    """The clocks of the machine, read together (clock_gettime(2))."""

    monotonic_s: _ClockSeconds
    """Stops while the machine is suspended; cannot be set."""
    boottime_s: _ClockSeconds
    """As monotonic, plus suspended time."""
    realtime_s: _ClockSeconds
    """Wall-clock time; may be set."""


class Interval(Work, frozen=True, gc=False):
    """I/O of one disk between two samples."""

    reads: int
    writes: int
    """As the kernel counts: on a disk with a write-back cache, empty flushes are among them. Data
    writes if `is_exact`."""
    read_bytes: int
    written_bytes: int
    end_s: float
    """Monotonic time at the end."""
    seconds: float
    """Duration; 0 for a gap, whose duration is not known."""
    read_ms: int | None
    """Time spent by all reads that completed, in the milliseconds of the kernel so that sums stay
    exact; None where the kernel does not count it."""
    write_ms: int | None
    inflight: int
    """Requests in flight at the end."""
    flushes: int = 0
    """Flushes; 0 where the kernel does not count them (partitions, and before Linux 5.5)."""
    flush_ms: int = 0
    """Time spent by all flushes."""
    is_exact: bool = False
    """`writes` are data writes, and `write_ms` is without the time of flushes."""
    excluded_flushes: int = 0
    """Flushes that `flushes` does not contain, because `writes` are exact."""
    busy_ms: int = 0
    """Time with requests in flight (io_ticks); before Linux 6.10, it may be less than in truth."""
    discards: int = 0
    """Discards that completed; they are among the requests in flight."""
    inflight_before: int = 0
    """Requests in flight at the start."""
    others: int = 0
    """Operations of an NFS mount that are neither reads nor writes: metadata, locks, commits."""

    def __add__(self, later: Self) -> Self:
        """Return this interval and the one that follows it as one."""
        read_ms, write_ms = self.read_ms, self.write_ms
        return type(self)(
            reads=self.reads + later.reads,
            writes=self.writes + later.writes,
            read_bytes=self.read_bytes + later.read_bytes,
            written_bytes=self.written_bytes + later.written_bytes,
            end_s=later.end_s,
            seconds=self.seconds + later.seconds,
            read_ms=None if read_ms is None or later.read_ms is None else read_ms + later.read_ms,
            write_ms=None
            if write_ms is None or later.write_ms is None
            else write_ms + later.write_ms,
            inflight=later.inflight,
            flushes=self.flushes + later.flushes,
            flush_ms=self.flush_ms + later.flush_ms,
            is_exact=self.is_exact and later.is_exact,
            excluded_flushes=self.excluded_flushes + later.excluded_flushes,
            busy_ms=self.busy_ms + later.busy_ms,
            discards=self.discards + later.discards,
            inflight_before=self.inflight_before,
            others=self.others + later.others,
        )

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def took_s(self) -> float:
        """I/O-seconds that the reads and writes took."""
        return ((self.read_ms or 0) + (self.write_ms or 0)) / 1000

    @property
    def is_pause(self) -> bool:
        """Whether requests were in flight and no data was transferred; flushes transfer none."""
        return self.inflight > 0 and self.inflight_before > 0 and not self.bytes

    @property
    def has_flushes(self) -> bool:
        """Whether the disk flushed its cache."""
        return self.flushes + self.excluded_flushes > 0

    @property
    def data_write_ms(self) -> int | None:
        """Time spent by writes, without that of flushes."""
        return None if self.write_ms is None else max(0, self.write_ms - self.flush_ms)

    def with_data_writes(self, data_writes: int) -> "Interval":
        """Return the interval with an exact number of data writes."""
        return msgspec.structs.replace(
            self,
            writes=data_writes,
            write_ms=self.data_write_ms,
            flushes=0,
            flush_ms=0,
            is_exact=True,
            excluded_flushes=self.flushes,
        )

    def without_flushes(self) -> "Interval":
        """Return the interval with the flushes and their time taken from the writes.

        This is exact where each flush is empty and none is merged: one writer that calls fdatasync
        after each write. The commit of a journal has flushes and data; there, `writes` is exact.
        Any other mixture lies between. Written sectors are those of at least one data write.
        """
        if not self.flushes:
            return self
        least = 1 if self.written_bytes else 0
        return msgspec.structs.replace(
            self, writes=max(self.writes - self.flushes, least), write_ms=self.data_write_ms
        )

    def without_reads(self) -> "Interval":
        """Return the interval without its reads."""
        return msgspec.structs.replace(
            self, reads=0, read_bytes=0, read_ms=None if self.read_ms is None else 0
        )

    def without_requests(self) -> "Interval":
        """Return an interval of the same time in which nothing completed."""
        return msgspec.structs.replace(
            idle(self.end_s, self.seconds),
            inflight=self.inflight,
            inflight_before=self.inflight_before,
        )

    def with_fewest_writes(self, largest_request_bytes: int | None) -> "Interval":
        """Return the interval with as few writes as its sectors need at least.

        With flushes, more than that is not certain: the kernel merges concurrent flushes, so that
        empty ones among the writes may be more than `flushes`.
        """
        fewest = min(1, self.written_bytes)
        if largest_request_bytes:
            fewest = -(-self.written_bytes // largest_request_bytes)
        return msgspec.structs.replace(self, writes=min(self.writes, fewest))


def idle(end_s: float, seconds: float) -> Interval:
    """Return an interval in which nothing was in flight."""
    return Interval(
        reads=0,
        writes=0,
        read_bytes=0,
        written_bytes=0,
        end_s=end_s,
        seconds=seconds,
        read_ms=0,
        write_ms=0,
        inflight=0,
    )


def elapsed_or_gap(before: Clocks, after: Clocks, tick_s: float) -> float | GapReason:
    """Return the seconds between two samples, or the reason why they are a gap."""
    monotonic_s = after.monotonic_s - before.monotonic_s
    boottime_s = after.boottime_s - before.boottime_s
    realtime_s = after.realtime_s - before.realtime_s
    if boottime_s - monotonic_s > tick_s:
        return "suspend"
    if monotonic_s <= 0 or abs(realtime_s - boottime_s) > tick_s:
        return "clock_step"
    if monotonic_s > LONGEST_INTERVAL_TICKS * tick_s:
        return "late"
    return monotonic_s


def interval_of(
    end_s: float,
    seconds: float,
    before: CounterValues,
    after: CounterValues,
    inflight: int,
    inflight_before: int = 0,
) -> Interval:
    """Return the increase of the counters, with the requests in flight at the end and the start.

    Sectors are converted to bytes.
    """
    rise = to_counters(difference(after, before))
    return Interval(
        reads=rise.reads or 0,
        writes=rise.writes or 0,
        read_bytes=(rise.read_sectors or 0) * SECTOR_BYTES,
        written_bytes=(rise.written_sectors or 0) * SECTOR_BYTES,
        end_s=end_s,
        seconds=seconds,
        read_ms=rise.read_ms,
        write_ms=rise.write_ms,
        inflight=inflight,
        flushes=rise.flushes or 0,
        flush_ms=rise.flush_ms or 0,
        busy_ms=rise.busy_ms or 0,
        discards=rise.discards or 0,
        inflight_before=inflight_before,
    )


def load_of(interval: Interval, charges: tuple[Charge, ...]) -> float | None:
    """Return the load of an interval, as a ratio of the limits; None without limits."""
    return interval.load(charges, interval.seconds)
