"""The ceiling of a disk: the rate at which it was last seen throttled.

It is published until the disk is throttled at another rate. No verdict reads it.
"""

import msgspec

from disksla.verdict.throttling.throttle import Throttle


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen throttled, by what it served then."""

    throttle: Throttle
    iops: float | None
    """Reads and writes per second; None if the number of data writes is not certain."""
    bytes_per_second: float | None
    """Read and written; None if no window of the limiter was used to the end."""
    window_s: float | None = None
    """Window of the limiter; None if it has none, or none is seen."""
    before_iops: float | None = None
    """The last rate that was certain before this one."""

    @property
    def last_iops(self) -> float | None:
        """The last rate that was certain: of this time, or of one before."""
        return self.before_iops if self.iops is None else self.iops
