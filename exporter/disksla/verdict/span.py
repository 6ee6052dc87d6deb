"""Spans of releases of a disk: sums, in which one request more or less makes little difference."""

import math
from collections.abc import Iterator

import msgspec

from disksla.limits import Charge, load_ratio
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P


class Span(msgspec.Struct, frozen=True, gc=False):
    """Sum of consecutive releases of a disk."""

    releases: int
    seconds: float
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    shortest_s: float
    """Duration of the shortest release; infinite without releases."""
    longest_s: float

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def rates(self) -> tuple[float, float]:
        """Requests and bytes per second."""
        return self.requests / self.seconds, self.bytes / self.seconds

    def plus(self, release: Interval) -> "Span":
        """Return the span with one more release."""
        return Span(
            self.releases + 1,
            self.seconds + release.seconds,
            self.reads + release.reads,
            self.writes + release.writes,
            self.read_bytes + release.read_bytes,
            self.written_bytes + release.written_bytes,
            min(self.shortest_s, release.seconds),
            max(self.longest_s, release.seconds),
        )

    def load(self, charges: tuple[Charge, ...]) -> float | None:
        """Return the load of the span, as a ratio of the limits; None without limits."""
        return load_ratio(
            charges, self.seconds, self.reads, self.writes, self.read_bytes, self.written_bytes
        )

    def uncertainty(self, tick_s: float) -> float:
        """Return the share by which a rate over this span may be wrong."""
        return rate_uncertainty(self.requests, self.seconds, tick_s)

    def uncertainty_of_releases(self, tick_s: float) -> float:
        """Return the same for a limiter with long windows, of which releases are the ends.

        Each was at any time in the last window of samples that it has.
        """
        is_long = self.releases > 1 and ticks_of(self.shortest_s, tick_s) > 1
        return self.uncertainty(tick_s) + (tick_s / self.seconds if is_long else 0.0)


def rate_uncertainty(requests: int, seconds: float, tick_s: float) -> float:
    """Return the share by which the rate of requests in a time may be wrong.

    One request more or less may fall into it. And a limiter with windows has admitted a whole
    number of windows, so a late or early sample changes the duration but not the requests.
    """
    due_s = ticks_of(seconds, tick_s) * tick_s
    return 1 / max(1, requests) + abs(seconds - due_s) / due_s


def ticks_of(seconds: float, tick_s: float) -> int:
    """Return how many samples are due in a time, at least 1."""
    return max(1, round(seconds / tick_s))


def span_of(releases: tuple[Interval, ...]) -> Span:
    """Return the sum of all releases."""
    seconds = longest_s = 0.0
    shortest_s = math.inf
    reads = writes = read_bytes = written_bytes = 0
    for release in releases:
        release_s = release.seconds
        seconds += release_s
        shortest_s = min(shortest_s, release_s)
        longest_s = max(longest_s, release_s)
        reads += release.reads
        writes += release.writes
        read_bytes += release.read_bytes
        written_bytes += release.written_bytes
    return Span(
        len(releases), seconds, reads, writes, read_bytes, written_bytes, shortest_s, longest_s
    )


def last_span(releases: tuple[Interval, ...]) -> Span:
    """Return the sum of as many of the last releases as have enough requests, or of all."""
    requests = 0
    for number in range(1, len(releases) + 1):
        release = releases[-number]
        requests += release.reads + release.writes
        if requests >= P.enough_requests:
            return span_of(releases[-number:])
    return span_of(releases)


def last_spans(releases: tuple[Interval, ...], most: int) -> Iterator[Span]:
    """Yield the last span, and those with one more release each, up to `most` releases."""
    span = last_span(releases)
    yield span
    for number in range(span.releases + 1, min(len(releases), most) + 1):
        span = span.plus(releases[-number])
        yield span


def last_seconds(releases: tuple[Interval, ...], seconds: float) -> tuple[Interval, ...]:
    """Return as few of the last releases as take that long; all if they take less."""
    for number in range(1, len(releases)):
        seconds -= releases[-number].seconds
        if seconds <= 0:
            return releases[-number:]
    return releases
