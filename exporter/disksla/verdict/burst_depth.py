"""Burst depth of a limiter: how much it admits beyond its rate before it throttles.

A limiter of rate L and depth B admits at most B + L (t - s) from a time s to a time t. When it
throttles a load that it had let burst, it has admitted exactly that since the burst started. L is
known only then, so any earlier time may be the start. It is one at which the rate of requests
increased: a vertex of the lower convex hull of the curve of what was served (Le Boudec and Thiran,
"Network Calculus", 2001, has such curves).
"""

from typing import NamedTuple

import msgspec

from disksla.limits import Charge
from disksla.verdict.interval import Interval, load_of

_STARTS = 32
"""Times that are kept at which a burst may have started. The hull of a curve with noise has about
twice the logarithm of its points."""
_RATE_ERROR_SHARE = 0.02
"""By which a rate that is seen may be too low."""


class Served(NamedTuple):
    """What a disk has served up to a time."""

    at_s: float = 0.0
    """Time since boot, suspended time included: buckets fill while a machine is suspended."""
    reads: int = 0
    writes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0

    def beyond_s(self, start: "Served", charges: tuple[Charge, ...], error_share: float) -> float:
        """Return what was served since an earlier time beyond limits, in seconds of the limits.

        It is unknown which of them applies, and by which share it is higher, so the least counts.
        """
        seconds = self.at_s - start.at_s
        reads, writes = self.reads - start.reads, self.writes - start.writes
        read_bytes = self.read_bytes - start.read_bytes
        written_bytes = self.written_bytes - start.written_bytes
        used_s = min(
            charge.read_s * reads
            + charge.write_s * writes
            + charge.read_byte_s * read_bytes
            + charge.written_byte_s * written_bytes
            for charge in charges
        )
        return used_s - (1 + error_share) * seconds


class ServedCurve(msgspec.Struct, frozen=True, gc=False):
    """The curve of what a disk has served, and the times at which a burst may have started."""

    starts: tuple[Served, ...] = ()
    """Vertices of its lower convex hull, at most _STARTS. The last ones may be above it."""
    last: Served = Served()
    iops: float = 0.0
    """Requests per second in the last interval."""

    def plus(self, interval: Interval, from_s: float, to_s: float) -> "ServedCurve":
        """Return the curve with what was served from one time to another.

        In a gap, it may have been served at any time since the interval before. With flushes, the
        number of data writes is a range. At least every second write has data, because programs
        flush what they have written. Where the rate does not increase, no burst starts. The curve
        stays as it is where the clock does.
        """
        last_s, reads, writes, read_bytes, written_bytes = self.last
        start_s = max(from_s, last_s) if interval.seconds else last_s
        if to_s <= start_s:
            return self
        empty = interval.writes // 2 if interval.flushes else 0
        data_writes = interval.writes - empty
        iops = (interval.reads + data_writes) / (to_s - start_s)
        starts = self.starts
        if iops > self.iops or start_s > last_s:
            start = Served(start_s, reads, writes, read_bytes, written_bytes)
            starts = _with_vertex(starts, start)
        last = Served(
            to_s,
            reads + interval.reads,
            writes + data_writes,
            read_bytes + interval.read_bytes,
            written_bytes + interval.written_bytes,
        )
        return ServedCurve(starts, last, iops)

    def beyond_s(self, charges: tuple[Charge, ...], error_share: float) -> float:
        """Return the most that was served beyond limits since any time, in seconds of the limits.

        0 if that is nothing.
        """
        last = self.last
        beyond_s = (last.beyond_s(start, charges, error_share) for start in self.starts)
        return max((0.0, *beyond_s))


def _with_vertex(starts: tuple[Served, ...], start: Served) -> tuple[Served, ...]:
    """Return the hull with one more vertex, without those that are above it then."""
    kept = len(starts)
    while kept > 1 and _above(starts[kept - 2], starts[kept - 1], start) >= 0:
        kept -= 1
    starts = (*starts[:kept], start)
    if len(starts) <= _STARTS:
        return starts
    least = max(range(1, len(starts) - 1), key=lambda number: _above(*starts[number - 1 :][:3]))
    return starts[:least] + starts[least + 1 :]


def _above(before: Served, middle: Served, after: Served) -> float:
    """Return by how many requests a time is above the line between two others; not if negative."""
    before_s, reads, writes, *_ = before
    share = (middle.at_s - before_s) / (after.at_s - before_s)
    more = after.reads + after.writes - reads - writes
    return middle.reads + middle.writes - reads - writes - share * more


def burst_depth_s(
    curve: ServedCurve, served: Interval, charges: tuple[Charge, ...], tolerance: float
) -> float:
    """Return the burst before a disk was throttled, in seconds of its limit.

    `served` is what it has served while it was throttled. `charges` are those of the terms at
    which it was; none if they do not explain the rate. Then the limiter may count requests, bytes,
    or only those of the kind that most of them are.
    """
    if charges:
        binding = max(charges, key=lambda charge: load_of(served, (charge,)) or 0.0)
        return curve.beyond_s((binding,), tolerance)
    return curve.beyond_s(_likely_charges(served), _RATE_ERROR_SHARE)


def _likely_charges(served: Interval) -> tuple[Charge, ...]:
    """Return what a limiter may charge, if it admits this in its time."""
    requests, nbytes = served.requests, served.bytes
    byte_s = served.seconds / nbytes if nbytes else 0.0
    request_s = served.seconds / requests
    most = max(served.reads, served.writes)
    of_kind_s = served.seconds / most
    return (
        Charge("iops", request_s, request_s),
        Charge("bandwidth", read_byte_s=byte_s, written_byte_s=byte_s),
        Charge("iops", of_kind_s, 0.0) if most == served.reads else Charge("iops", 0.0, of_kind_s),
    )
