"""What other limits would serve of a closed loop, from what was seen while it was throttled.

Theory. The clients of a closed loop send the next request when one completes. While the disk is
throttled, n requests are in flight and x are served per second, so a request takes n / x (Little's
law). Without a limiter it takes s. Under a limit of y:

- served: at most y, and at most n / s, because n requests in flight cannot be served faster. At
  least what was served, or y if that is lower: a client that waits less does not send less.
- a request waits for the limiter for at most n / y - s. Clients that also compute between two
  requests have fewer than n in flight under a higher limit, and then it waits less. Under a lower
  limit they have more, so that this is the least.

So twice the limit at least halves the waiting, whatever the clients do. Where s is not known it is
taken to be zero: then more is served and requests wait longer than in truth.

An open loop has no bound of n: requests in flight become more and more while it is throttled.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from disksla.promise.catalogue import Limits, Work

_LEAST_SHARE = 0.5
"""Share of the time in which a closed loop has to be throttled to say what steps change."""
_MOST_GROWTH = 4.0
"""By how much requests in flight may grow from the first to the last third of a closed loop."""
_THIRDS = 3
_MOST_STEPS = 5


class ThrottledTime(NamedTuple):
    """A time in which a disk was throttled."""

    seconds: float
    least_requests: float
    """Reads and data writes that completed in it, with the fewest data writes."""
    most_requests: float
    took_s: float
    """I/O-seconds that they took."""


class ServedRange(NamedTuple):
    """IOPS that are served, between two bounds."""

    least: float
    most: float


class ClosedLoop(NamedTuple):
    """A closed loop while it was throttled."""

    served_iops: float
    inflight: float
    """Requests in flight, on average."""
    service_s: float
    """What a request takes at least without a limiter; zero if that is not known."""

    @property
    def request_s(self) -> float:
        """What a request took."""
        return self.inflight / self.served_iops

    def served(self, iops: float) -> ServedRange:
        """Return what a limit would serve per second."""
        fastest = self.inflight / self.service_s if self.service_s else math.inf
        return ServedRange(min(iops, self.served_iops), min(iops, max(fastest, self.served_iops)))

    def waits_s(self, iops: float) -> float:
        """Return for how long a request would wait for a limiter at most.

        Under a lower limit than that at which it was served, it would wait so long at least.
        """
        return max(0.0, self.inflight / iops - self.service_s)

    def is_halved(self, iops: float) -> bool:
        """Return whether under a limit a request waits at most half as long as it did."""
        return self.waits_s(iops) <= self.waits_s(self.served_iops) / 2

    def steps(self) -> Iterator[float]:
        """Yield limits in IOPS, each twice the last, up to one under which nothing waits."""
        iops = self.served_iops
        for _ in range(_MOST_STEPS):
            yield iops
            if not self.waits_s(iops):
                return
            iops *= 2


def closed_loop_of(
    throttled: Sequence[ThrottledTime], seconds: float, limit_iops: float = math.inf
) -> ClosedLoop | None:
    """Return the closed loop in times that follow each other, of a period of so many seconds.

    Where data writes are not counted exactly, it was served at the limit; without a known limit,
    all of its writes count. What a request takes without a limiter is not known.

    None if the disk was not throttled for most of it, or the requests in flight grew.
    """
    throttled_s = sum(each.seconds for each in throttled)
    most = sum(each.most_requests for each in throttled)
    third = len(throttled) // _THIRDS
    if not third or not most or throttled_s < _LEAST_SHARE * seconds:
        return None
    first, last = _inflight(throttled[:third]), _inflight(throttled[-third:])
    if last > _MOST_GROWTH * first:
        return None
    least = sum(each.least_requests for each in throttled)
    served_iops = min(max(limit_iops, least / throttled_s), most / throttled_s)
    return ClosedLoop(served_iops, inflight=_inflight(throttled), service_s=0.0)


def steady_iops(work: Work, limits: Limits) -> float:
    """Return the IOPS of a steady load of a mix of requests; infinite without limits.

    Credits do not count.
    """
    cost_s = max((work.cost_s(charge) for charge in limits.promise_charges), default=0.0)
    return work.requests / cost_s if cost_s else math.inf


def _inflight(throttled: Sequence[ThrottledTime]) -> float:
    return sum(each.took_s for each in throttled) / sum(each.seconds for each in throttled)
