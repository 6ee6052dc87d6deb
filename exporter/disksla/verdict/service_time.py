"""How long a disk takes for a request of itself, learned while nothing waits."""

import msgspec

ENOUGH_REQUESTS = 5
"""From whose mean latency something is learned."""
ENOUGH_MS = 50
"""The kernel prints whole milliseconds, so that one may be missing: of 50, that is 2 %."""


class ServiceTime(msgspec.Struct, frozen=True, gc=False):
    """The shortest mean latency of requests that did not wait."""

    floor_s: float = 0.0
    """0 before anything was learned."""
    gathered_requests: int = 0
    """Those of the last windows, while they took too little time to be told apart from it."""
    gathered_ms: int = 0

    def plus(self, requests: int, took_ms: int) -> "ServiceTime":
        """Learn from requests that did not wait, and the time that they took together."""
        requests += self.gathered_requests
        took_ms += self.gathered_ms
        floor_s = self.floor_s
        if requests >= ENOUGH_REQUESTS:
            mean_s = (took_ms + 1) / 1000 / requests  # a millisecond may be cut off
            floor_s = min(floor_s or mean_s, mean_s)
        if took_ms >= ENOUGH_MS:
            return ServiceTime(floor_s)
        return ServiceTime(floor_s, requests, took_ms)
