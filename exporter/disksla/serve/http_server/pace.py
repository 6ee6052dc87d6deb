"""How fast clients are served: a token bucket of requests, and the share of a worker's time."""

import math
from typing import NamedTuple

from disksla.serve.http_server.config import RateLimit

_BURST_S = 10.0
"""After a time of rest, what the share is in this time may be used at once."""
_LONGEST_REST_S = 1.0
"""Clients have time limits, also where work takes long because the machine is busy."""


class TimeShare(NamedTuple):
    """A share of the time, and how much of it was used.

    It is not a share of CPU time, which would be all of it where the daemon gets little.
    """

    share: float
    """1.0 is all the time."""
    paid_until_s: float = -math.inf
    """Monotonic time up to which the time that was used is the share."""

    def rest_s(self, now_s: float) -> float:
        """Return for how long the worker has to rest now."""
        return min(max(0.0, self.paid_until_s - _BURST_S - now_s), _LONGEST_REST_S)

    def after(self, begun_s: float, used_s: float) -> "TimeShare":
        """Return the share after work that began at a monotonic time and took so long."""
        paid_until_s = max(self.paid_until_s, begun_s) + used_s / self.share
        most_s = begun_s + used_s + _BURST_S + _LONGEST_REST_S
        return TimeShare(self.share, min(paid_until_s, most_s))


UNLIMITED = TimeShare(math.inf)


class TokenBucket(NamedTuple):
    """Gains a token in each interval of a limit, up to its burst; each request takes one."""

    limit: RateLimit
    credits: float
    """Tokens at `at_s`, a time of a monotonic clock."""
    at_s: float

    def take(self, now_s: float) -> "TokenBucket | None":
        """Return the bucket after taking a token now; None if it has none."""
        gained = (now_s - self.at_s) / self.limit.interval_s
        left = min(self.limit.burst, self.credits + gained) - 1
        return TokenBucket(self.limit, left, now_s) if left >= 0 else None
