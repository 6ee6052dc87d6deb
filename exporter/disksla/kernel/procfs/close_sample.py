"""Close samples: the counters of one disk, read every 10 ms while requests wait on it.

They are those of its own `stat` in sysfs (Documentation/ABI/stable/sysfs-block), which has the
same numbers as its line of /proc/diskstats.
"""

from typing import Annotated, Self

import msgspec

from disksla.base.counts import Summable
from disksla.kernel.procfs.diskstats import LEAST_NEGATIVE

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_READS, _READ_SECTORS, _WRITES, _WRITTEN_SECTORS, _INFLIGHT = 0, 2, 4, 6, 8
_FLUSHES = 15
"""The time that they took follows."""
_FEWEST = 11
"""Numbers that every kernel has."""


class CloseSample(Summable, frozen=True, array_like=True, gc=False):
    """The counters that a verdict needs, at one moment. Recordings have it as an array."""

    at_s: float
    """Monotonic time."""
    reads: _Count
    writes: _Count
    """As the kernel counts: on a disk with a write-back cache, empty flushes are among them."""
    read_sectors: _Count
    written_sectors: _Count
    inflight: _Count
    """Requests in flight."""
    flushes: _Count = 0
    """0 where the kernel does not count them (before Linux 5.5)."""
    flush_ms: _Count = 0
    """Time spent by all flushes."""

    def __add__(self, other: Self) -> Self:
        """Return the close sample of several paths of one disk, at the same moment, as its own."""
        return msgspec.structs.replace(super().__add__(other), at_s=self.at_s)


def parse_close_sample(at_s: float, stat: bytes, inflight: bytes | None = None) -> CloseSample:
    """Return the close sample of a text of `stat`. Raise ValueError if it is not one.

    `inflight` is the text of sysfs `inflight`, where the requests in flight of `stat` are not
    those of the partitions.
    """
    try:
        numbers = [int(number) for number in stat.split()]
    except ValueError:
        numbers = []
    if len(numbers) < _FEWEST:
        raise ValueError(f"found {stat.decode(errors='replace')!r}; expected 11 numbers or more")
    in_flight = numbers[_INFLIGHT] if inflight is None else sum(parse_inflight(inflight))
    flushes, flush_ms, *_ = (*numbers[_FLUSHES:], 0, 0)
    return CloseSample(
        at_s=round(at_s, 5),
        reads=numbers[_READS],
        writes=numbers[_WRITES],
        read_sectors=numbers[_READ_SECTORS],
        written_sectors=numbers[_WRITTEN_SECTORS],
        inflight=in_flight if 0 <= in_flight < LEAST_NEGATIVE else 0,
        flushes=flushes,
        flush_ms=flush_ms,
    )


def parse_inflight(inflight: bytes) -> tuple[int, int]:
    """Return reads and writes in flight of a text of sysfs `inflight`. Raise ValueError."""
    try:
        reads, writes = map(int, inflight.split())
    except ValueError:
        raise ValueError(
            f"found {inflight.decode(errors='replace')!r}; expected two numbers"
        ) from None
    return reads, writes
