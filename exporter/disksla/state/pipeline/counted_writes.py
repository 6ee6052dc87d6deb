"""Data writes of one disk that were counted exactly, without the flushes of its cache.

Requests of a device that passes on the requests of others (device-mapper, md) are not counted, so
a count of 0 shows nothing.
"""

import msgspec


class DataWrites(msgspec.Struct, frozen=True, gc=False):
    """The last count, and the sum of all differences of counts."""

    opening: int = 0
    """Number of the opening of the counters; 0 if the count was not read at the last sample."""
    count: int = 0
    """Data writes since that opening."""
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
