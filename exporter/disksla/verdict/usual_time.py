"""Usual latency of a disk: what its requests take while no limit makes them wait.

The service time (`service_time`) is the shortest mean of a few requests. Where requests overlap
and their latencies vary, as on a disk behind a network, most take longer, and a load that comes
near a limit by chance would be taken for one that waits there. So requests of such a load wait
only if they take longer than usual, or if more are in flight. Of a load that stays at the limit,
as one does that a limiter makes wait, the service time decides: the usual latency may be that of
another limiter, which gave less than promised.
"""

import math
from itertools import pairwise

import msgspec

from disksla.limits import Limits
from disksla.verdict.interval import Interval, WriteCounts, load_of
from disksla.verdict.known_limit import reaches_limit
from disksla.verdict.limiter_window import is_due, limiter_window
from disksla.verdict.parameters import P
from disksla.verdict.promise import least_depth
from disksla.verdict.service_time import (
    has_long_wait,
    have_requests_in_flight,
    is_one_at_most,
    most_in_service,
    took_s,
    wait_s,
)
from disksla.verdict.span import ticks_of

_TRUNCATED_S = 0.001
"""The kernel truncates times to milliseconds."""


class UsualTime(msgspec.Struct, frozen=True, gc=False):
    """Mean latency of requests, and its variance."""

    releases: int = 0
    requests: int = 0
    sum_s: float = 0.0
    """Of their latencies."""
    squared_s: float = 0.0
    """Sum of the squares of those sums of each release, divided by its requests."""

    @property
    def mean_s(self) -> float:
        """The mean; 0 until it is known."""
        if self.releases < P.usual_releases or not self.requests:
            return 0.0
        return self.sum_s / self.requests

    @property
    def deviation_s(self) -> float:
        """Standard deviation of the latency of one request, by those of the means of releases."""
        variance = self.squared_s - self.sum_s**2 / self.requests
        return math.sqrt(max(0.0, variance) / (self.releases - 1))

    def plus(self, data: Interval, most_s: float = math.inf) -> "UsualTime":
        """Return the state with one more release; older ones than a minute lose weight.

        `data` are its requests without flushes. They count with `most_s` at most, in total.
        """
        requests = data.reads + data.writes
        if not requests:
            return self
        age = 2 if self.releases >= P.ceiling_memory else 1
        sum_s = min(took_s(data), most_s + _TRUNCATED_S)
        return UsualTime(
            self.releases // age + 1,
            self.requests // age + requests,
            self.sum_s / age + sum_s,
            self.squared_s / age + sum_s**2 / requests,
        )

    def learned(
        self,
        inflight_before: int | None,
        counts: WriteCounts,
        limits: Limits,
        tolerance: float,
        tick_s: float,
    ) -> "UsualTime":
        """Return the state after a release of which no limit of the terms makes requests wait.

        It is the last one of `counts`. It is below the limit, even if all flushes are counted as
        writes, and nothing was in flight before it, or the one before is below the limit, too. Nor
        does a limiter that the terms do not explain: requests take little of the time, or their
        number varies, and that in flight, too. A queue as deep as the promise requires may show
        that the disk gives less.
        """
        releases, data = counts[-1], counts[0][-1]
        release = releases[-1]
        load = load_of(release, limits.promise_charges)
        may_have_waited = len(releases) == 1 or ticks_of(release.seconds, tick_s) > 1
        if may_have_waited or load is None or load > P.usual_load or release.read_ms is None:
            return self
        if inflight_before == 0 and took_s(data) <= P.low_load_share * release.seconds:
            return self.plus(data, self._most_s(data))
        if _may_wait(counts, limits, tolerance, tick_s):
            return self
        if _is_alone(releases, tick_s):
            if not is_due(releases):
                return self
            if any(limiter_window(each, tick_s) for each in counts):
                return UsualTime()  # a limiter with windows has taught it, too
        return self.plus(data, self._most_s(data))

    def _most_s(self, data: Interval) -> float:
        """Return the most that requests may count with: some may have waited all the same."""
        if not self.mean_s:
            return math.inf
        requests = data.reads + data.writes
        return requests * self.mean_s + self._varies_s(requests)

    def _varies_s(self, requests: int) -> float:
        """Return by how much the sum of their latencies varies."""
        return P.usual_deviations * self.deviation_s * math.sqrt(requests)

    def has_waiting(self, release: Interval) -> bool:
        """Return whether requests took longer than usual in a release, or more are in flight."""
        requests = release.reads + release.writes
        if release.inflight > 1 + most_in_service(release, self.mean_s):
            return True
        waited_s = wait_s(release, self.mean_s)
        return has_long_wait(release, self.mean_s) and waited_s > self._varies_s(requests)


def _may_wait(counts: WriteCounts, limits: Limits, tolerance: float, tick_s: float) -> bool:
    """Return whether requests of the last release may wait for a limit, known or not."""
    before, release = counts[-1][-2:]
    is_deep = release.inflight >= P.deep_share * least_depth(limits)
    return (
        is_deep
        or reaches_limit(before, limits, tolerance, tick_s)
        or any(map(_is_constant, counts))
    )


def _is_constant(releases: tuple[Interval, ...]) -> bool:
    """Return whether the last releases may be those of a limiter, by requests or in flight.

    Of a limiter with windows, all have as many requests; of one without, as many in the same time.
    """
    last = releases[-P.usual_releases :]
    if len(last) < P.usual_releases:
        return True
    in_flight = [release.inflight for release in last]
    if min(in_flight) > 1 and min(in_flight) >= P.deep_share * max(in_flight):
        return True
    differing = 0
    for before, after in pairwise(last):
        earlier, requests = before.reads + before.writes, after.reads + after.writes
        due = earlier * after.seconds / before.seconds
        nearest = min(abs(requests - earlier), abs(requests - due))
        differing += nearest > P.irregular_requests
    return differing < P.irregular_share * len(last)


def _is_alone(releases: tuple[Interval, ...], tick_s: float) -> bool:
    """Return whether the last releases are those of a program with one request at a time.

    If it waits for a limiter, it has one in flight all the time.
    """
    last = releases[-P.usual_releases :]
    return have_requests_in_flight(last) and all(
        is_one_at_most(before.inflight, release, tick_s) for before, release in pairwise(last)
    )
