"""Mean latency of requests, gathered until it means something.

The kernel adds up how long requests took and prints whole milliseconds, so the difference of
two samples is off by up to a millisecond: nothing for a hundred slow requests, half of the truth
for ten fast ones (Documentation/admin-guide/iostats.rst). Windows are therefore put together
until that error is small or a second has passed.
"""

import msgspec

from disksla.histogram import Histogram

LATENCY_BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
)  # fmt: skip
"""Bounds that include what is promised: 0.5 ms, 1 ms, 3 ms and 20 ms."""

ENOUGH_MS = 20
"""Of 20 ms, a millisecond is 5 %."""
LONGEST_WAIT_S = 1.0


class LatencyMeter(msgspec.Struct, frozen=True, gc=False):
    """Latency of one direction of one disk."""

    histogram: Histogram = Histogram.empty(LATENCY_BOUNDS_S)
    """Seconds per request: the mean of each group of windows, weighted by its requests."""
    pending_requests: int = 0
    pending_ms: int = 0
    pending_since_s: float = 0.0

    def add(self, requests: int, milliseconds: int | None, now_s: float) -> "LatencyMeter":
        """Add requests that completed, and the time that they took together, if it is known."""
        if not requests or milliseconds is None:
            return self
        since_s = self.pending_since_s if self.pending_requests else now_s
        return _gathered(
            self.histogram,
            self.pending_requests + requests,
            self.pending_ms + milliseconds,
            since_s,
            now_s,
        )

    def settled(self, now_s: float) -> "LatencyMeter":
        """Say what was gathered if it has waited long enough."""
        if not self.pending_requests:
            return self
        return _gathered(
            self.histogram, self.pending_requests, self.pending_ms, self.pending_since_s, now_s
        )


def _gathered(
    histogram: Histogram, requests: int, milliseconds: int, since_s: float, now_s: float
) -> LatencyMeter:
    """Move what was gathered into the histogram if it is enough, or has waited long enough."""
    if milliseconds < ENOUGH_MS and now_s - since_s < LONGEST_WAIT_S:
        return LatencyMeter(histogram, requests, milliseconds, since_s)
    return LatencyMeter(histogram.observe(milliseconds / 1000 / requests, requests))
