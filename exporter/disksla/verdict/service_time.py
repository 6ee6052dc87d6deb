"""Service time of a disk: how long a request takes that does not wait, learned from samples."""

import msgspec

ENOUGH_REQUESTS = 5
"""Requests needed for a mean latency."""
ENOUGH_MS = 50
"""The kernel truncates to milliseconds, so one may be missing: 2 % of 50."""


class ServiceTime(msgspec.Struct, frozen=True, gc=False):
    """Shortest mean latency of requests that did not wait, and the requests not yet counted."""

    shortest_s: float = 0.0
    """0 until it is known."""
    pending_requests: int = 0
    """Requests accumulated over windows while `pending_ms` is too short for an accurate mean."""
    pending_ms: int = 0

    def plus(self, requests: int, took_ms: int) -> "ServiceTime":
        """Return the state after `requests` that did not wait and took `took_ms` in total."""
        requests += self.pending_requests
        took_ms += self.pending_ms
        shortest_s = self.shortest_s
        if requests >= ENOUGH_REQUESTS:
            mean_s = (took_ms + 1) / 1000 / requests  # a millisecond may be truncated
            shortest_s = min(shortest_s or mean_s, mean_s)
        if took_ms >= ENOUGH_MS:
            return ServiceTime(shortest_s)
        return ServiceTime(shortest_s, requests, took_ms)
