"""Latency histogram of one disk and direction, from the mean latency of windows.

The kernel sums the time of completed requests and prints whole milliseconds, so the difference of
two samples is off by up to one millisecond: negligible for a hundred slow requests, half of the
value for ten fast ones (Documentation/admin-guide/iostats.rst). Windows are therefore summed until
that error is small, or until a second has passed.
"""

import msgspec

from disksla.histogram import Histogram

LATENCY_BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
)  # fmt: skip
"""Bounds that include the latencies that providers promise: 0.5 ms, 1 ms, 3 ms and 20 ms."""

ENOUGH_MS = 20
"""One millisecond is 5 % of this."""
LONGEST_WAIT_S = 1.0


class LatencyMeter(msgspec.Struct, frozen=True, gc=False):
    """Latency histogram, and the requests that are not in it yet."""

    histogram: Histogram = Histogram.empty(LATENCY_BOUNDS_S)
    """Seconds per request: the mean of each group of windows, counted once per request."""
    pending_requests: int = 0
    pending_ms: int = 0
    pending_since_s: float = 0.0
    """Monotonic time at which the first pending request was added."""

    def add(self, requests: int, milliseconds: int | None, now_s: float) -> "LatencyMeter":
        """Add completed requests and the sum of their time; nothing if that is unknown."""
        if not requests or milliseconds is None:
            return self
        since_s = self.pending_since_s if self.pending_requests else now_s
        return _observed(
            self.histogram,
            self.pending_requests + requests,
            self.pending_ms + milliseconds,
            since_s,
            now_s,
        )

    def with_overdue(self, now_s: float) -> "LatencyMeter":
        """Move pending requests into the histogram if LONGEST_WAIT_S has passed."""
        if not self.pending_requests:
            return self
        return _observed(
            self.histogram, self.pending_requests, self.pending_ms, self.pending_since_s, now_s
        )


def _observed(
    histogram: Histogram, requests: int, milliseconds: int, since_s: float, now_s: float
) -> LatencyMeter:
    """Observe pending requests if their time is enough or old enough; else keep them pending."""
    if milliseconds < ENOUGH_MS and now_s - since_s < LONGEST_WAIT_S:
        return LatencyMeter(histogram, requests, milliseconds, since_s)
    return LatencyMeter(histogram.observe(milliseconds / 1000 / requests, requests))
