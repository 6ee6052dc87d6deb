"""Throttling at a limit that is not in the terms: the curve of what was served is straight."""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P
from disksla.verdict.service_time import is_one_by_one, took_s
from disksla.verdict.span import ticks_of

_ANY_SLOPE = (0.0, math.inf)
_NO_SLOPE = (1.0, 0.0)


class Line(msgspec.Struct, frozen=True, gc=False):
    """Releases on a straight line, with requests in flight at the end of each.

    The line starts at the end of a release. With each later one, the slopes shrink to those of all
    lines that pass near enough (a swing filter; Elmeleegy et al., "Online piece-wise linear
    approximation of numerical streams with precision guarantees", VLDB 2009). Amounts are
    requests, bytes, reads and writes, each by the number of samples and by time: a limiter with
    windows admits the same amount in each, whenever a sample is taken; one without windows admits
    an amount in proportion to the time between samples.
    """

    slopes: tuple[tuple[float, float], ...] = (_ANY_SLOPE,) * 8
    """Lowest and highest slope of each amount; none is left if the lowest is the higher."""
    releases: int = 0
    ticks: int = 0
    seconds: float = 0.0
    busy_s: float = 0.0
    """I/O-seconds that the requests took."""
    reads: int = 0
    writes: int = 0
    bytes: int = 0
    is_deep: bool = True
    """Several requests were in flight all the time."""
    skipped: int = 0
    """Releases that end off the line: a sample was taken while a limiter let requests pass."""
    late: int = 0
    """Releases of fast requests, one at a time, that end with a late sample."""
    not_by_time: int = 0
    """How many of them have more or less requests than their time explains."""

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    def plus(self, release: Interval, tick_s: float) -> "Line":
        """Return the line with one more release, or a new one that starts at its end."""
        is_busy = release.inflight > 0 or is_one_by_one(release)
        if self == NO_LINE or not (self.releases or is_busy):
            return NEW_LINE if is_busy else NO_LINE
        ticks = self.ticks + ticks_of(release.seconds, tick_s)
        seconds = self.seconds + release.seconds
        reads = self.reads + release.reads
        writes = self.writes + release.writes
        amount = self.bytes + release.read_bytes + release.written_bytes
        is_deep = self.is_deep and release.inflight > 1
        requests = reads + writes
        near = float(P.straight_requests)
        if is_deep:
            near += P.straight_share * requests / (self.releases + 1)
        near_bytes = near * amount / max(1, requests)  # none if all were empty flushes
        slopes = [
            *_narrowed(self.slopes, 0, requests, near, ticks, seconds),
            *_narrowed(self.slopes, 2, amount, near_bytes, ticks, seconds),
        ]
        if reads and writes:
            slopes += _narrowed(self.slopes, 4, reads, near, ticks, seconds)
            slopes += _narrowed(self.slopes, 6, writes, near, ticks, seconds)
        skipped, late, not_by_time = self.skipped, self.late, self.not_by_time
        is_straight = is_busy and any(lowest <= highest for lowest, highest in slopes)
        if is_busy and self._is_fast and _is_late(release, tick_s):
            late += 1
            not_by_time += not self._is_by_time(release)
            slopes = list(self.slopes)  # which are those of samples at the usual times
        elif not is_straight or _lost(self.slopes, slopes):
            if self._may_skip(requests, amount, ticks, seconds):
                skipped += 1
                is_deep = self.is_deep
                slopes = list(self.slopes)
            elif not is_straight:
                return NEW_LINE if is_busy else NO_LINE
        return Line(
            (*slopes, *self.slopes[len(slopes) :]),
            self.releases + 1,
            ticks,
            seconds,
            self.busy_s + took_s(release),
            reads,
            writes,
            amount,
            is_deep,
            skipped,
            late,
            not_by_time,
        )

    def _may_skip(self, requests: int, amount: int, ticks: int, seconds: float) -> bool:
        """Return whether a release may end off the line.

        So do few of a deep queue, and not by more than a release: a sample was taken while the
        limiter let requests pass, or the machine was late.
        """
        if not self.is_deep or self.skipped + 1 > P.straight_skipped_share * self.releases:
            return False
        each, each_bytes = self.requests / self.releases, self.bytes / self.releases
        lengths = ticks, seconds, ticks, seconds
        ends = (requests, each), (requests, each), (amount, each_bytes), (amount, each_bytes)
        return any(
            low <= high and abs(end - (low + high) / 2 * length) <= most
            for (low, high), length, (end, most) in zip(self.slopes, lengths, ends, strict=False)
        )

    def is_limiter(self, releases: tuple[Interval, ...], tick_s: float) -> bool:
        """Return whether the line is long enough to be sure of a limiter.

        `releases` are the last ones, which are on the line as far as it is as long.
        """
        return (
            self.seconds >= P.straight_s - tick_s / 2
            and self.releases >= P.straight_releases
            and self._may_be_limiter(tick_s)
            and (
                self.requests >= P.certain_requests
                or is_regular(releases[-self.releases :], tick_s)
            )
        )

    def is_open(self, tick_s: float) -> bool:
        """Return whether the line is too short for that, and may become long enough."""
        is_short = self.seconds < P.straight_s - tick_s / 2
        return (
            self.releases >= P.open_releases
            and (is_short or self.requests < P.certain_requests)
            and (self._may_be_limiter(tick_s) or self._may_be_fast_disk(tick_s))
        )

    def _may_be_limiter(self, tick_s: float) -> bool:
        """Return whether requests are as many, and wait as long, as those of a limiter.

        They may take any time if late samples have not counted what their time explains.
        """
        least = P.enough_requests if self.is_deep else P.one_deep_requests
        shortest_s = 0.0 if self.not_by_time >= P.late_samples_needed else P.straight_latency_s
        return may_be_limited(
            self.requests, self.seconds, self.busy_s, least, tick_s, shortest_s=shortest_s
        )

    def needs_late_sample(self, tick_s: float) -> bool:
        """Return whether a late sample may distinguish a limiter from a fast disk."""
        return self.releases >= P.straight_releases and self._may_be_fast_disk(tick_s)

    def _may_be_fast_disk(self, tick_s: float) -> bool:
        """Return whether it is not known yet if a limiter makes fast requests wait."""
        return (
            self._is_fast
            and self.late < P.late_samples
            and may_be_limited(
                self.requests, self.seconds, self.busy_s, P.one_deep_requests, tick_s, shortest_s=0
            )
        )

    @property
    def _is_fast(self) -> bool:
        """Whether one request at a time takes less than if it certainly waited."""
        return not self.is_deep and self.busy_s < P.straight_latency_s * self.requests

    def _is_by_time(self, release: Interval) -> bool:
        """Return whether a release has what its time explains at the rate of the line.

        So it has of a disk, also at a late sample. A limiter with windows has served no more by
        then, or a part of a window.
        """
        due = self.requests / self.seconds * release.seconds
        return abs(release.reads + release.writes - due) <= 2 * P.irregular_requests


def _is_late(release: Interval, tick_s: float) -> bool:
    """Return whether a release ends with a sample that is late."""
    due_s = ticks_of(release.seconds, tick_s) * tick_s
    return release.seconds - due_s > P.late_share * tick_s


def may_be_limited(
    requests: float,
    seconds: float,
    busy_s: float,
    least: int,
    tick_s: float,
    *,
    shortest_s: float = P.straight_latency_s,
) -> bool:
    """Return whether requests are as many, and wait as long, as those of a limiter.

    `busy_s` are the I/O-seconds that they took, `least` are needed in straight_s, and `shortest_s`
    is the least mean latency.
    """
    return (
        requests * P.straight_s >= least * (seconds - tick_s / 2)
        and busy_s >= shortest_s * requests
        and busy_s >= P.straight_busy_share * seconds
    )


def is_regular(releases: tuple[Interval, ...], tick_s: float) -> bool:
    """Return whether no sum of consecutive releases differs much from a constant rate.

    By any of the amounts of a line, by samples or by time. A line allows more: it passes through
    its start, where the number of requests may be rounded, too.
    """
    if sum(release.reads + release.writes for release in releases) < P.regular_requests:
        return False
    lengths = (
        [ticks_of(release.seconds, tick_s) for release in releases],
        [release.seconds for release in releases],
    )
    return any(
        _is_constant(amounts, length) for amounts in amounts_of(releases) for length in lengths
    )


def amounts_of(releases: tuple[Interval, ...]) -> Iterator[Sequence[float]]:
    """Yield the requests of each release, its bytes in mean requests, its reads and its writes.

    Not the bytes if all requests have one size, and not reads or writes without the other.
    """
    requests = [release.reads + release.writes for release in releases]
    yield requests
    each_bytes = [release.read_bytes + release.written_bytes for release in releases]
    mean_bytes = sum(each_bytes) / sum(requests)
    in_requests = [each / (mean_bytes or 1) for each in each_bytes]
    if in_requests != requests:
        yield in_requests
    for amounts in ([each.reads for each in releases], [each.writes for each in releases]):
        if 0 < sum(amounts) < sum(requests):
            yield amounts


def _is_constant(amounts: Sequence[float], lengths: Sequence[float]) -> bool:
    """Return whether there is a rate from which no sum of consecutive amounts differs by more."""
    near = P.irregular_requests + P.straight_share * sum(amounts) / len(amounts)
    ends = [*zip(accumulate(amounts, initial=0), accumulate(lengths, initial=0), strict=True)]
    lowest, highest = _ANY_SLOPE
    for number, (amount, length) in enumerate(ends):
        for earlier_amount, earlier_length in ends[:number]:
            added, took = amount - earlier_amount, length - earlier_length
            lowest = max(lowest, (added - near) / took)
            highest = min(highest, (added + near) / took)
        if lowest > highest:
            return False
    return True


NO_LINE = Line((_NO_SLOPE,) * 8)
NEW_LINE = Line()


def _lost(before: tuple[tuple[float, float], ...], after: list[tuple[float, float]]) -> bool:
    """Return whether there is a line of some amount before, and none after."""
    return any(
        low <= high and lowest > highest
        for (low, high), (lowest, highest) in zip(before, after, strict=False)
    )


def _narrowed(
    slopes: tuple[tuple[float, float], ...],
    index: int,
    amount: int,
    near: float,
    ticks: int,
    seconds: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the slopes, by samples and by time, of lines that also pass near `amount`."""
    low, high = slopes[index]
    low_s, high_s = slopes[index + 1]
    return (
        (max(low, (amount - near) / ticks), min(high, (amount + near) / ticks)),
        (max(low_s, (amount - near) / seconds), min(high_s, (amount + near) / seconds)),
    )
