"""Histogram of observations, as Prometheus publishes it, and latencies in the bins of fio."""

import itertools
from bisect import bisect_left
from collections.abc import Iterable

import msgspec


class Histogram(msgspec.Struct, frozen=True, gc=False):
    """Counts per bucket, not yet cumulative, in the unit of the bounds.

    `counts` has one more entry than `bounds`, for values above the last bound. A value equal to
    a bound belongs to the bucket of that bound, as defined by `le` of Prometheus.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0  # sum of all observed values, each times its weight

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        """Return a histogram without observations."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """Number of observations, by weight."""
        return sum(self.counts)

    def with_bounds(self, bounds: tuple[float, ...]) -> "Histogram":
        """Return the same observations in the buckets of some of the bounds.

        Raise ValueError if one of them is not a bound of this histogram.
        """
        ends = (*(self.bounds.index(bound) + 1 for bound in bounds), len(self.counts))
        starts = (0, *ends)
        counts = tuple(
            sum(self.counts[start:end]) for start, end in zip(starts, ends, strict=False)
        )
        return Histogram(bounds, counts, self.total)

    def observe(self, value: float, weight: int = 1) -> "Histogram":
        """Return a histogram that counts `value` `weight` times more."""
        return self.observe_all([(value, weight)])

    def observe_all(self, values: Iterable[tuple[float, int]]) -> "Histogram":
        """Return a histogram that counts each value as many times more as its weight says."""
        counts, total = list(self.counts), self.total
        for value, weight in values:
            counts[bisect_left(self.bounds, value)] += weight
            total += value * weight
        return Histogram(self.bounds, tuple(counts), total)


class LatencyBin(msgspec.Struct, frozen=True):
    """Requests with about the same completion latency."""

    seconds: float  # middle of the bin; fio's bins are narrower than 1/64 of their latency
    requests: int


def quantile_s(bins: tuple[LatencyBin, ...], share: float) -> float:
    """Return the latency that at least `share` of the requests did not exceed.

    There must be a request. The precision is the width of fio's bins.
    """
    cumulative = list(itertools.accumulate(one.requests for one in bins))
    return bins[bisect_left(cumulative, share * cumulative[-1])].seconds
