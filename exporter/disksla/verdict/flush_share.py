"""Data writes where some of the flushes are empty writes, and some are not.

/proc/diskstats counts an empty flush as a write. The commit of a journal has flushes, too: one or
two for one write of data. A database that does both in turn has more data writes than all writes
less the flushes, and less than all writes (SQLite with a rollback journal: those less half of the
flushes).
"""

import msgspec

from disksla.limits import Charge
from disksla.verdict.constant_rate import NO_LINE, Line
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.service_time import took_s
from disksla.verdict.span import Span, span_of


def without_share(releases: tuple[Interval, ...], share: float) -> tuple[Interval, ...]:
    """Return releases whose writes are those of the kernel less a share of the flushes."""
    found: list[Interval] = []
    flushes = empty = 0
    for release in releases:
        flushes += release.flushes
        more = round(share * flushes) - empty
        empty += more
        writes = max(release.writes - more, min(1, release.written_bytes))
        found.append(msgspec.structs.replace(release.without_flushes(), writes=writes))
    return tuple(found)


def explained_share(
    releases: tuple[Interval, ...], charges: tuple[Charge, ...], tick_s: float
) -> tuple[float, Line]:
    """Return the share of the flushes that are empty if releases lie on a limit, and a line.

    All of them lie on it for one share at most. That proves a limiter if their curve is straight
    with it: the line has all releases then, and none otherwise.
    """
    flushes = sum(release.flushes for release in releases)
    whole = span_of(releases)
    needed = _writes_at_limit(whole, charges)
    if needed is None or not whole.writes - flushes < needed < whole.writes:
        return 0.0, NO_LINE
    share = (whole.writes - needed) / flushes
    line = Line()
    for release in without_share(releases, share):
        line = line.plus(release, tick_s)
    return share, line if line.releases == len(releases) else NO_LINE


def has_several_writers(releases: tuple[Interval, ...]) -> bool:
    """Return whether so many requests are in flight that concurrent flushes are merged."""
    seconds = sum(release.seconds for release in releases)
    return sum(map(took_s, releases)) >= P.mixed_occupied_ratio * seconds


def may_be_at_limit(
    releases: tuple[Interval, ...], charges: tuple[Charge, ...], tolerance: float
) -> bool:
    """Return whether releases of several writers may lie on a limit.

    Concurrent flushes are merged, so that the share of empty ones differs from release to release.
    In most releases, and in their sum, the limit is between the load with the fewest data writes
    and that with the most.
    """
    flushes = sum(release.flushes for release in releases)
    if not _is_between(span_of(releases), flushes, charges, tolerance):
        return False
    likely = sum(
        _is_between(span_of((release,)), release.flushes, charges, 0.0) for release in releases
    )
    return likely >= P.mixed_share * P.mixed_releases


def _is_between(span: Span, flushes: int, charges: tuple[Charge, ...], tolerance: float) -> bool:
    """Return whether a limit is between the loads of a span with the fewest and most writes.

    Merged flushes count once as a flush, and each as a write, so that empty ones may be more than
    `flushes`. Programs flush what they have written: at least every second write has data.
    """
    empty = max(flushes, span.writes // 2)
    fewest = msgspec.structs.replace(span, writes=max(0, span.writes - empty - 1))
    most = msgspec.structs.replace(span, writes=span.writes + 1)
    return (fewest.load(charges) or 0.0) <= 1 + tolerance and (
        most.load(charges) or 0.0
    ) >= 1 - tolerance


def _writes_at_limit(span: Span, charges: tuple[Charge, ...]) -> float | None:
    """Return how many writes a limiter would have admitted; None if it charges none."""
    others_s = (
        (
            charge.read_s * span.reads
            + charge.read_byte_s * span.read_bytes
            + charge.written_byte_s * span.written_bytes,
            charge.write_s,
        )
        for charge in charges
        if charge.write_s
    )
    return min(((span.seconds - other_s) / write_s for other_s, write_s in others_s), default=None)
