"""Latency histogram of one disk and direction, from the mean latency of windows.

The kernel sums the time of completed requests and prints whole milliseconds, so the difference of
two samples is off by up to one millisecond: negligible for a hundred slow requests, half of the
value for ten fast ones (Documentation/admin-guide/iostats.rst). Windows are therefore summed until
that error is small, or until a second has passed.
"""

from collections.abc import Iterable

import msgspec

from disksla.base.histogram import Histogram

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

    def plus(self, completed: Iterable[tuple[int, int | None, float]]) -> "LatencyMeter":
        """Add completed requests: their number, the sum of their time in ms, and when.

        Those whose time is not known are left out. Requests stay pending until their time is
        enough, or old enough.
        """
        requests, milliseconds = self.pending_requests, self.pending_ms
        since_s, observed = self.pending_since_s, []
        for number, took_ms, now_s in completed:
            if took_ms is None or not (number or requests):
                continue
            since_s = since_s if requests else now_s
            requests += number
            milliseconds += took_ms if number else 0
            if milliseconds >= ENOUGH_MS or now_s - since_s >= LONGEST_WAIT_S:
                observed.append((milliseconds / 1000 / requests, requests))
                requests = milliseconds = 0
        histogram = self.histogram.observe_all(observed) if observed else self.histogram
        return LatencyMeter(histogram, requests, milliseconds, since_s if requests else 0.0)

    def with_overdue(self, now_s: float) -> "LatencyMeter":
        """Move pending requests into the histogram if LONGEST_WAIT_S has passed."""
        return self.plus([(0, 0, now_s)]) if self.pending_requests else self
