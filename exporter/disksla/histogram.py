"""Observations counted by size, added up for as long as the daemon lives."""

from bisect import bisect_left

import msgspec


class Histogram(msgspec.Struct, frozen=True, gc=False):
    """Counts per bucket, not yet cumulative, in the unit of the bounds.

    `counts` has one more entry than `bounds`: what is above the last of them. A value equal to
    a bound belongs to that bound's bucket, as Prometheus' `le` means.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0
    """Sum of all observed values, each times its weight."""

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        """Give a histogram that has seen nothing."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    @property
    def count(self) -> int:
        """How many observations there were, by weight."""
        return sum(self.counts)

    def observe(self, value: float, weight: int = 1) -> "Histogram":
        """Count `value` as if seen `weight` times."""
        counts = list(self.counts)
        counts[bisect_left(self.bounds, value)] += weight
        return Histogram(self.bounds, tuple(counts), self.total + value * weight)
