"""Service time of a disk: how long a request takes that does not wait, learned from releases."""

import math
from collections.abc import Sequence

import msgspec

from disksla.limits import Charge, Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.parameters import P


class ServiceTime(msgspec.Struct, frozen=True, gc=False):
    """Shortest mean latency of requests that did not wait, and the requests not yet counted."""

    shortest_s: float = 0.0
    """0 until it is known."""
    pending_requests: int = 0
    """Requests accumulated over releases while `pending_ms` is too short for an accurate mean."""
    pending_ms: int = 0
    open_requests: int = 0
    """Requests of the last release, if a throttled load may have begun in it: they count if the
    next release shows none."""
    open_ms: int = 0

    def plus(self, requests: int, took_ms: int) -> "ServiceTime":
        """Return the state after `requests` that did not wait and took `took_ms` in total."""
        if took_ms < P.service_ms or requests < P.service_requests:
            requests += self.pending_requests
            took_ms += self.pending_ms
        shortest_s = self.shortest_s
        if requests >= P.service_requests:
            mean_s = (took_ms + 1) / 1000 / requests  # a millisecond may be truncated
            shortest_s = min(shortest_s or mean_s, mean_s)
        if took_ms >= P.service_ms and requests >= P.service_requests:
            return ServiceTime(shortest_s)
        return ServiceTime(shortest_s, requests, took_ms)

    def learned(
        self,
        inflight_before: int | None,
        release: Interval,
        limits: Limits,
        group_load: float = 0.0,
    ) -> "ServiceTime":
        """Return the state after a release, if few of its requests can have been throttled.

        Nothing was in flight before it (None if unknown), and requests took little of its time;
        they may take more if nothing was in flight after it and the load was low, by that
        of the promise and of the group of the disk: at a disk with little load, few requests may
        all wait for the load of its group. Where a throttled load may have begun in it, it counts
        once the next release shows that none did. With flushes, the number of data writes is taken
        from the middle of its range.

        So is that of the release in which a throttled load begins. No request takes less than its
        service time, so the mean of any other release counts, too, if it is shorter, with the
        fewest data writes that are possible. Neither is mixed with the pending requests of a
        lighter load, under which a disk may be slower.
        """
        data_write_ms = release.data_write_ms
        if release.read_ms is None or data_write_ms is None:
            return self
        if self.open_requests:
            closed = self._closed(inflight_before, release)
            return closed.learned(inflight_before, release, limits, group_load)
        requests = release.reads + release.writes
        ms = release.read_ms + data_write_ms
        if inflight_before == 0 and group_load <= P.low_load:
            middle = requests - release.flushes // 2
            if _is_burst(release, limits):
                return self._at_most(middle, ms, P.service_requests)
            if _was_fast(release, limits.promise_charges):
                return (
                    msgspec.structs.replace(self, open_requests=middle, open_ms=ms)
                    if _may_begin_throttled(release, limits.promise_charges)
                    else self.plus(middle, ms)
                )
        if not self.shortest_s:
            return self
        least = P.service_requests if ms >= P.service_ms else P.enough_requests
        return self._at_most(requests - release.flushes, ms, least)

    def learned_from_rest(self, rest: Interval, limits: Limits) -> "ServiceTime":
        """Return the state after the rest of a release that began with silence.

        A limiter with long windows admits the requests of one at once. Those in the rest of a
        release did not wait, if they followed one another, faster than any limit of the terms.
        """
        data_write_ms = rest.data_write_ms
        if rest.read_ms is None or data_write_ms is None or rest.inflight > 1:
            return self
        data = rest.without_flushes()
        load = load_of(data, limits.burst_charges or limits.promise_charges) or 0.0
        if took_s(rest) > (1 + P.batch_share) * rest.seconds or load < P.unlimited_load:
            return self
        ms = rest.read_ms + data_write_ms
        return self._at_most(data.reads + data.writes, ms, P.enough_requests)

    def _closed(self, inflight_before: int | None, release: Interval) -> "ServiceTime":
        """Return the state in which the last release counts, if no throttled load followed."""
        state = ServiceTime(self.shortest_s, self.pending_requests, self.pending_ms)
        if inflight_before is None or took_s(release) > P.low_load_share * release.seconds:
            return state
        return state.plus(self.open_requests, self.open_ms)

    def _at_most(self, requests: int, took_ms: int, least: int) -> "ServiceTime":
        """Return the state after `requests`, if not too few, took no less than they needed."""
        if requests < least:
            return self
        mean_s = (took_ms + 1) / 1000 / requests
        if self.shortest_s and self.shortest_s <= mean_s:
            return self
        return msgspec.structs.replace(self, shortest_s=mean_s)


def is_single(inflight_before: int | None, release: Interval) -> bool:
    """Return whether requests of a release followed one another."""
    requests = release.reads + release.writes
    before_s = took_s(release) / requests  # the first began before the release
    took = took_s(release) - before_s <= (1 + P.batch_share) * release.seconds
    return took and release.inflight <= 1 and (inflight_before or 0) <= 1


def _was_fast(release: Interval, charges: tuple[Charge, ...]) -> bool:
    """Return whether requests took little of the time, so that few can have been throttled."""
    busy = took_s(release) / release.seconds
    if busy <= P.occupied_share or busy > P.low_load_share or release.inflight:
        return busy <= P.occupied_share
    load = load_of(release, charges)
    return load is None or load <= P.low_load


def _may_begin_throttled(release: Interval, charges: tuple[Charge, ...]) -> bool:
    """Return whether a throttled load may have begun in a release whose requests were fast.

    One is in flight at its end, and the others took much of the time that the limit demands: a
    limiter with short windows may have admitted them in several.
    """
    if not release.inflight:
        return False
    load = load_of(release.without_flushes(), charges)
    return load is None or took_s(release) > P.low_load_share * load * release.seconds


def _is_burst(release: Interval, limits: Limits) -> bool:
    """Return whether as many requests as a limit admits were served in a part of the time.

    Those in flight wait. If others had waited before, more would have been admitted.
    """
    if not release.inflight or took_s(release) > P.low_load_share * release.seconds:
        return False
    data = release.without_flushes()
    requests = data.reads + data.writes
    return any(
        (load_of(release, charges) or 0.0) > P.low_load
        and (load_of(data, charges) or 0.0) * (requests - 1) <= requests
        for charges in (limits.promise_charges, limits.burst_charges)
    )


def took_s(release: Interval) -> float:
    """Return the I/O-seconds that the completed requests took."""
    return ((release.read_ms or 0) + (release.write_ms or 0)) / 1000


def wait_s(release: Interval, service_s: float) -> float:
    """Return the I/O-seconds that completed requests waited, beyond `service_s` each."""
    return max(0.0, took_s(release) - (release.reads + release.writes) * service_s)


def has_waiting(release: Interval, service_s: float) -> bool:
    """Return whether requests waited in a release, beyond `service_s` each (0 if unknown)."""
    if release.inflight > 1:
        return True
    if not service_s:
        return took_s(release) > P.occupied_share * release.seconds
    return has_long_wait(release, service_s)


def has_long_wait(release: Interval, service_s: float) -> bool:
    """Return whether completed requests took longer than service times vary."""
    requests = release.reads + release.writes
    explained_s = P.wait_floor_s + P.wait_share * requests * service_s
    return wait_s(release, service_s) > max(explained_s, P.batch_share * release.seconds)


def is_busy(release: Interval) -> bool:
    """Return whether requests were in flight for a large part of the time of a release."""
    return release.busy_ms >= 1000 * P.occupied_share * release.seconds


def have_requests_in_flight(releases: Sequence[Interval]) -> bool:
    """Return whether requests took most of the time of releases, as those at a limiter do."""
    seconds = sum(release.seconds for release in releases)
    return sum(map(took_s, releases)) >= P.straight_busy_share * seconds


def most_in_service(release: Interval, service_s: float) -> float:
    """Return how many requests are in flight at most without waiting, of `service_s` each.

    Their mean is by Little's law; how many a sample finds varies.
    """
    mean = (release.reads + release.writes) / release.seconds * service_s
    return mean + P.usual_deviations * math.sqrt(mean)


def is_one_at_most(inflight_before: int, release: Interval, tick_s: float) -> bool:
    """Return whether no more than one request at a time was in flight.

    The one that was in flight before may have waited since the sample before that.
    """
    longest_s = (1 + P.batch_share) * release.seconds + inflight_before * tick_s
    return max(inflight_before, release.inflight) <= 1 and took_s(release) <= longest_s


def is_one_by_one(release: Interval) -> bool:
    """Return whether requests seem to follow one another, although none was in flight at the end.

    One at a time, they take most of the time, and not more than there is.
    """
    busy = took_s(release) / release.seconds
    return P.one_by_one_share <= busy <= 1 + P.batch_share
