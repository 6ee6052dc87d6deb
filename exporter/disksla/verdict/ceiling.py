"""The ceiling of a disk: the rate at which it was last seen throttled, and its limiter.

It is published until the disk is throttled at another rate. No verdict reads it.
"""

from typing import NamedTuple

import msgspec

from disksla.verdict.throttle import Throttle

_BURST_WINDOWS = 3
"""A burst has more than a limiter admits in so many of its windows, or of ours: any limiter admits
a window at once, and samples may count another with it."""
_WINDOW_S = 0.1


class ObservedLimiter(NamedTuple):
    """What is known of the limiter that throttled a disk last."""

    iops: float | None = None
    bytes_per_second: float | None = None
    window_s: float | None = None
    """Window of the limiter."""
    burst_requests: float | None = None
    """Burst depth: what it has admitted beyond its rate before it throttled, or more."""
    burst_bytes: float | None = None


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen throttled, by what it served then."""

    throttle: Throttle
    iops: float | None
    """Reads and writes per second; None if the number of data writes is not certain."""
    bytes_per_second: float | None
    """Read and written; None if no window of the limiter was used to the end."""
    window_s: float | None = None
    """Window of the limiter; None if it has none, or none is seen."""
    burst_s: float = 0.0
    """Burst depth, in seconds at this rate (`burst_depth`)."""

    @property
    def limiter(self) -> ObservedLimiter:
        """The limiter, with its burst depth if that is more than any limiter has."""
        found = ObservedLimiter(self.iops, self.bytes_per_second, self.window_s)
        if self.burst_s <= _BURST_WINDOWS * max(self.window_s or 0.0, _WINDOW_S):
            return found
        return found._replace(
            burst_requests=None if self.iops is None else self.burst_s * self.iops,
            burst_bytes=self.burst_s * (self.bytes_per_second or 0.0),
        )
