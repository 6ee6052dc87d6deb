"""A constant rate although samples are late: the curve is on a line, but for a few samples.

Where the machine is busy, or its hypervisor gives the CPU to others, completed requests are seen
some milliseconds late: a sample counts less, and the next one more. A limiter without windows
admits no request early, so a line along the top of its curve passes the samples that were not
late. Or a sample is taken late, when a limiter with windows has let requests of the next one pass:
then it counts more, and the line is along the bottom. The curve of a disk is below, or above, such
a line in most of its samples.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from disksla.verdict.constant_rate import amounts_of, may_be_limited
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.service_time import took_s
from disksla.verdict.span import span_of

_Point = tuple[float, float]


def is_constant_but_late(releases: tuple[Interval, ...], tick_s: float) -> bool:
    """Return whether most of the curve of releases is on a line, and the rest on one side of it.

    With several requests in flight, and not too few a second: a disk with nearly constant service
    times is as regular in a hundred requests. A late sample may find none in flight.
    """
    span = span_of(releases)
    least = int(P.late_requests * P.straight_s / (P.kept_releases * tick_s))
    busy_s = sum(map(took_s, releases))
    if not may_be_limited(span.requests, span.seconds, busy_s, least, tick_s):
        return False
    below = P.straight_skipped_share * len(releases)
    above = below / 2
    if sum(release.inflight <= 1 for release in releases) > above:
        return False
    at_s = [0.0, *accumulate(release.seconds for release in releases)]
    return any(
        _is_on_line([*zip(at_s, accumulate(each, initial=0.0), strict=True)], most)
        for amounts in amounts_of(releases)
        for each, most in ((amounts, below), ([-amount for amount in amounts], above))
    )


def _is_on_line(curve: Sequence[_Point], most: float) -> bool:
    """Return whether a line along the top of a curve passes all points but `most`."""
    near = P.straight_requests + P.straight_share * abs(curve[-1][1]) / (len(curve) - 1)
    return any(
        _number_below(curve, start, end, near, most) <= most
        for start, end in pairwise(_top(curve))
    )


def _top(curve: Sequence[_Point]) -> list[_Point]:
    """Return the points of a curve between which no other is above the line (its upper hull)."""
    top: list[_Point] = []
    for at_s, amount in curve:
        while len(top) > 1:
            (first_s, first), (last_s, last) = top[-2:]
            if (last - first) * (at_s - last_s) > (amount - last) * (last_s - first_s):
                break
            top.pop()
        top.append((at_s, amount))
    return top


def _number_below(
    curve: Sequence[_Point], start: _Point, end: _Point, near: float, most: float
) -> int:
    """Return how many points are below the line through two of them; not many more than `most`."""
    (start_s, first), (end_s, last) = start, end
    slope, number = (last - first) / (end_s - start_s), 0
    for at_s, amount in curve:
        if first + slope * (at_s - start_s) - amount > near:
            number += 1
            if number > most:
                break
    return number
