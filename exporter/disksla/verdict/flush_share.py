"""Data writes where some of the flushes are empty writes, and some are not.

/proc/diskstats counts an empty flush as a write. The commit of a journal has flushes, too: one or
two for one write of data. A database that does both in turn has more data writes than all writes
less the flushes, and less than all writes (SQLite with a rollback journal: those less half of the
flushes).
"""

from typing import NamedTuple

import msgspec

from disksla.limits import Charge
from disksla.verdict.constant_rate import may_be_limited
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.service_time import took_s
from disksla.verdict.span import Span, span_of, ticks_of

Range = tuple[float, float]
_ANY_SHARE: Range = (0.0, 1.0)
_FEW = 1e-9
_NEAR = P.straight_requests + P.transaction_requests


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


class End(NamedTuple):
    """The end of a release, as sums over the releases before it."""

    beyond: float = 0.0
    """Writes beyond those that a limiter admits, by samples: empty ones, if it throttles."""
    beyond_s: float = 0.0
    """The same by time, for a limiter without windows (`Line`)."""
    flushes: int = 0


class Shares(msgspec.Struct, frozen=True, gc=False):
    """Releases that end on a limit, and the shares of the flushes that it does not count then."""

    ranges: tuple[Range, Range] = (_ANY_SHARE, _ANY_SHARE)
    """Lowest and highest, by samples and by time; none is left if the lowest is the higher."""
    ends: tuple[End, ...] = (End(),)
    """Those on the limit."""
    last: End = End()
    releases: int = 0
    seconds: float = 0.0
    requests: int = 0
    """With all writes."""
    busy_s: float = 0.0
    """I/O-seconds that they took, without flushes."""

    @property
    def share(self) -> float:
        """The middle of the range."""
        lowest, highest = next(filter(_is_any_left, self.ranges), _ANY_SHARE)
        return (lowest + highest) / 2

    def plus(self, release: Interval, charge: Charge, tick_s: float) -> "Shares":
        """Return the shares for one more release, or all shares if none is left."""
        seconds, last = release.seconds, self.last
        due_s = ticks_of(seconds, tick_s) * tick_s
        end = End(
            last.beyond + release.writes - _writes_at_limit(release, due_s, charge),
            last.beyond_s + release.writes - _writes_at_limit(release, seconds, charge),
            last.flushes + release.flushes,
        )
        ranges = self._narrowed(end, 0), self._narrowed(end, 1)
        ends = (*self.ends, end)
        busy_s = took_s(release) - release.flush_ms / 1000
        if sum(map(_is_any_left, ranges)) < sum(map(_is_any_left, self.ranges)):
            if self._may_skip(end, (seconds - busy_s - self._usual_idle_s) / charge.write_s):
                ranges, ends = self.ranges, self.ends
            elif not any(map(_is_any_left, ranges)):
                return Shares()
        return Shares(
            ranges,
            ends,
            end,
            self.releases + 1,
            self.seconds + seconds,
            self.requests + release.reads + release.writes,
            self.busy_s + busy_s,
        )

    @property
    def _usual_idle_s(self) -> float:
        """Time of a release in which nothing was in flight."""
        return max(0.0, self.seconds - self.busy_s) / max(1, self.releases)

    def _narrowed(self, end: End, number: int) -> Range:
        """Return the shares with which the data writes to `end` are those of the limit.

        From each end before, they may differ by a request, and by one of a transaction.
        """
        lowest, highest = self.ranges[number]
        for before in self.ends:
            flushes = end.flushes - before.flushes or _FEW
            empty = end[number] - before[number]
            lowest = max(lowest, (empty - _NEAR) / flushes)
            highest = min(highest, (empty + _NEAR) / flushes)
        return lowest, highest

    def _may_skip(self, end: End, saved: float) -> bool:
        """Return whether a release may end below the limit.

        While nothing was in flight, for longer than usual, the limiter has saved so many requests,
        and may admit them later. Few releases are like that.
        """
        releases = self.releases + 1
        if releases + 1 - len(self.ends) > P.straight_skipped_share * releases:
            return False
        highest = max(self._above(before) for before in self.ends)
        return 0 < highest - _NEAR - self._above(end) <= saved

    def _above(self, end: End) -> float:
        """Return by how many data writes an end is above the limit."""
        return end.beyond_s - self.share * end.flushes

    def is_limiter(self, tick_s: float) -> bool:
        """Return whether the releases are enough to be sure of a limiter."""
        return (
            self.seconds >= P.straight_s - tick_s / 2
            and self.releases >= P.straight_releases
            and self._may_be_limiter(tick_s)
        )

    def is_open(self, tick_s: float) -> bool:
        """Return whether they are too few for that, and may become enough."""
        return (
            self.seconds < P.straight_s - tick_s / 2
            and self.releases >= P.open_releases
            and self._may_be_limiter(tick_s)
        )

    def _may_be_limiter(self, tick_s: float) -> bool:
        data = self.requests - self.share * self.last.flushes
        return may_be_limited(data, self.seconds, self.busy_s, P.one_deep_requests, tick_s)


def explained_shares(
    releases: tuple[Interval, ...], charges: tuple[Charge, ...], tick_s: float
) -> Shares:
    """Return the shares of the flushes that are empty if the last releases lie on a limit.

    From the end of each release to that of each other, the limiter has admitted what it may. Where
    a release ends elsewhere, the shares are those of the releases after it.
    """
    flushes = sum(release.flushes for release in releases)
    whole = span_of(releases)
    found = Shares()
    counting = [charge for charge in charges if charge.write_s]
    if not counting:
        return found
    charge = min(counting, key=lambda each: _writes_at_limit(whole, whole.seconds, each))
    if whole.writes - flushes < _writes_at_limit(whole, whole.seconds, charge) < whole.writes:
        for release in releases:
            found = found.plus(release, charge, tick_s)
    return found


def _is_any_left(shares: Range) -> bool:
    return shares[0] <= shares[1]


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
    likely = sum(are_at_limit((release,), charges) for release in releases)
    return likely >= P.mixed_share * P.mixed_releases


def are_at_limit(releases: tuple[Interval, ...], charges: tuple[Charge, ...]) -> bool:
    """Return whether a limit is between the fewest and the most data writes in each release."""
    return all(
        _is_between(span_of((release,)), release.flushes, charges, 0.0) for release in releases
    )


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


def _writes_at_limit(span: Span | Interval, seconds: float, charge: Charge) -> float:
    """Return how many writes a limiter would have admitted in a time, beside the other I/O."""
    other_s = (
        charge.read_s * span.reads
        + charge.read_byte_s * span.read_bytes
        + charge.written_byte_s * span.written_bytes
    )
    return (seconds - other_s) / charge.write_s
