"""A mean: what a disk did in an interval of a second to ten minutes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

from msgspec.structs import replace

from disksla.verdict.interval import Interval

LONGEST_S = 900.0
"""A longer interval is a gap: it says nothing of any time in it."""
MOST_INFLIGHT = 1024
"""No more requests than this are in flight where it is not known how many: queues of drivers."""
NOT_DISKS = ("dm-", "loop", "md", "ram", "sr", "zram", "dev1-", "dev7-", "dev9-", "dev11-")
"""Devices that are no disks, or consist of them, which agents have beside them; sadf before 12.5
says dev7-0 of loop0."""
_TOGETHER_S = 1.0
"""Intervals that end within this time are the same."""


class Mean(NamedTuple):
    """One interval of a disk, as an agent recorded it."""

    interval: Interval
    """Sums of the interval, which ends so many seconds after 1970. Requests in flight at its
    end are MOST_INFLIGHT where they are not known."""
    inflight: float
    """Requests in flight on average."""
    is_told_apart: bool = True
    """False: reads and writes are counted together. All are `reads` then."""

    @property
    def end_s(self) -> float:
        """Seconds since 1970."""
        return self.interval.end_s

    @property
    def start_s(self) -> float:
        """Seconds since 1970."""
        return self.interval.end_s - self.interval.seconds

    @property
    def took_s(self) -> float:
        """I/O-seconds that requests took."""
        return self.inflight * self.interval.seconds

    @property
    def cases(self) -> tuple[Interval, ...]:
        """What may have been requested, the most likely first.

        Flushes may be among the writes. Of requests that are not told apart, those of a direction
        that transferred nothing are none, else all may have been of one, or half of each.
        """
        whole = self.interval
        if self.is_told_apart:
            return (whole.without_flushes(), whole) if whole.flushes else (whole,)
        requests = whole.reads
        if not whole.read_bytes or not whole.written_bytes:
            return (replace(whole, reads=0, writes=requests) if whole.written_bytes else whole,)
        shares = (requests // 2, 0, requests)
        return tuple(replace(whole, reads=reads, writes=requests - reads) for reads in shares)


def total_means(disks: Iterable[Sequence[Mean]]) -> list[Mean]:
    """Return what disks of one machine did together in the intervals that all of them have."""
    by_end: defaultdict[int, list[Mean]] = defaultdict(list)
    number = 0
    for means in disks:
        number += 1
        for mean in means:
            by_end[round(mean.end_s / _TOGETHER_S)].append(mean)
    return [_beside(by_end[end]) for end in sorted(by_end) if len(by_end[end]) == number]


def _beside(means: Sequence[Mean]) -> Mean:
    first = means[0].interval
    whole = reduce(add, (mean.interval for mean in means))
    inflight = sum(mean.interval.inflight for mean in means)
    return Mean(
        replace(whole, end_s=first.end_s, seconds=first.seconds, inflight=inflight),
        sum(mean.inflight for mean in means),
        is_told_apart=all(mean.is_told_apart for mean in means),
    )
