"""Counters that no disk can have, requests in flight that are none, and exact data writes."""

import msgspec

from disksla.kernel.procfs import CloseSample, CounterValues, difference
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import LONGEST_WINDOW_S

_MOST_IOPS, _MOST_BYTES_PER_SECOND = 1e9, 1e12
"""More than any disk, or all disks of a machine, can do."""
_MOST_MS = 2**33  # the counters of milliseconds have 32 bits on every kernel
_MOST_RISE = 2**50  # more than any counter can rise between two samples
_LONG_S = 86_400.0  # time in which counters may have risen, where it is not known


def why_impossible(interval: Interval, before: CounterValues, after: CounterValues) -> str | None:
    """Return why no disk can have done what its counters say; None if one can."""
    seconds = interval.seconds or _LONG_S
    took_ms = (interval.read_ms or 0) + (interval.write_ms or 0) + interval.flush_ms
    rise = 0
    if max(filter(None, after), default=0) >= _MOST_RISE:
        rise = max(value or 0 for value in difference(after, before))
    if (
        interval.requests + interval.flushes <= _MOST_IOPS * seconds
        and interval.bytes <= _MOST_BYTES_PER_SECOND * seconds
        and took_ms < _MOST_MS
        and rise < _MOST_RISE
    ):
        return None
    return (
        f"found counters that rose by {interval.requests} requests and {interval.bytes} bytes in"
        f" {seconds:.3g} s; expected no more than a disk can do"
    )


def more_never_done(inflight: int, silent_s: float, interval: Interval) -> int:
    """Return how many requests in flight are not done, though others were after a silence.

    `inflight` are those before the interval. Requests that waited since the silence began took as
    long as it lasted. If what completed took less, those that were in flight then still are.
    """
    is_over = interval.requests > 0 and silent_s > LONGEST_WINDOW_S
    if not is_over or interval.read_ms is None or interval.write_ms is None:
        return 0
    took_s = (interval.read_ms + interval.write_ms) / 1000
    return 0 if took_s >= silent_s / 2 else min(inflight, interval.inflight)


def without_never_done(close: tuple[CloseSample, ...], number: int) -> tuple[CloseSample, ...]:
    """Return close samples with fewer requests in flight."""
    return tuple(
        msgspec.structs.replace(each, inflight=max(0, each.inflight - number)) for each in close
    )


class DataWrites(msgspec.Struct, frozen=True, gc=False):
    """The last count, and the sum of all differences of counts."""

    opening: int = 0
    """Number of the opening of the counters; 0 if the count was not read at the last sample."""
    count: int = 0  # data writes since that opening
    total: int = 0

    def plus(self, reading: tuple[int, int] | None) -> "tuple[DataWrites, int | None]":
        """Return the state after a sample, and the data writes since the one before.

        None if they are not known: nothing was counted, or the counters were opened since.
        """
        if reading is None:
            return DataWrites(total=self.total), None
        opening, count = reading
        if opening != self.opening or not count or count < self.count:
            return DataWrites(opening, count, self.total), None
        rise = count - self.count
        return DataWrites(opening, count, self.total + rise), rise

    @property
    def exact_total(self) -> int | None:
        """Data writes since the first count; None while they are not counted."""
        return self.total if self.opening and self.count else None
