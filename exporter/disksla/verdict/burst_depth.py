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
from disksla.verdict.ceiling import Ceiling
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.span import span_of


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
    """Vertices of its lower convex hull, P.burst_starts at most. The last ones may be above it."""
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
    if len(starts) <= P.burst_starts:
        return starts
    least = max(range(1, len(starts) - 1), key=lambda number: _above(*starts[number - 1 :][:3]))
    return starts[:least] + starts[least + 1 :]


def _above(before: Served, middle: Served, after: Served) -> float:
    """Return by how many requests a time is above the line between two others; not if negative."""
    before_s, reads, writes, *_ = before
    share = (middle.at_s - before_s) / (after.at_s - before_s)
    more = after.reads + after.writes - reads - writes
    return middle.reads + middle.writes - reads - writes - share * more


def with_burst(
    ceiling: Ceiling,
    curve: ServedCurve,
    throttled: tuple[Interval, ...],
    charges: tuple[Charge, ...],
    tolerance: float,
    tick_s: float,
) -> Ceiling:
    """Return the ceiling with the burst before it, if that is the deepest yet.

    `charges` are those of the terms at which the disk is throttled; none if they do not explain
    the rate. Then the limiter may count requests, bytes, or only those of the kind that most of
    the `throttled` ones are.
    """
    if charges:
        span = span_of(throttled)
        binding = max(charges, key=lambda charge: span.load((charge,)) or 0.0)
        beyond_s = curve.beyond_s((binding,), tolerance)
    else:
        error_share = P.ceiling_error_share + 1 / ceiling.requests
        if ceiling.limiter(tick_s).window_s is not None:
            error_share += tick_s / ceiling.seconds
        beyond_s = curve.beyond_s(_likely_charges(ceiling, throttled), error_share)
    return msgspec.structs.replace(ceiling, burst_s=max(ceiling.burst_s, beyond_s))


def _likely_charges(ceiling: Ceiling, throttled: tuple[Interval, ...]) -> tuple[Charge, ...]:
    """Return what a limiter may charge, if it admits what is served at the ceiling."""
    request_s = 1 / ceiling.iops
    byte_s = 1 / ceiling.bytes_per_second if ceiling.bytes else 0.0
    span = span_of(throttled)
    most = max(span.reads, span.writes)
    of_kind_s = request_s * span.requests / most
    return (
        Charge("iops", request_s, request_s),
        Charge("bandwidth", read_byte_s=byte_s, written_byte_s=byte_s),
        Charge("iops", read_s=of_kind_s) if most == span.reads else Charge("iops", 0.0, of_kind_s),
    )
