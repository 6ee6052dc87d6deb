"""Spans of releases of a disk: sums, in which one request more or less makes little difference."""

from typing import NamedTuple

from disksla.limits import Charge, load_ratio
from disksla.verdict.interval import Interval
from disksla.verdict.parameters import P


class Span(NamedTuple):
    """Sum of consecutive releases of a disk."""

    releases: int
    seconds: float
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    def load(self, charges: tuple[Charge, ...]) -> float | None:
        """Return the load of the span, as a ratio of the limits; None without limits."""
        return load_ratio(
            charges, self.seconds, self.reads, self.writes, self.read_bytes, self.written_bytes
        )

    def uncertainty(self, tick_s: float) -> float:
        """Return the share by which a rate over this span may be wrong.

        One request more or less may fall into it. And a limiter with windows has admitted a whole
        number of windows, so a late or early sample changes the duration but not the requests.
        """
        due_s = ticks_of(self.seconds, tick_s) * tick_s
        return 1 / max(1, self.requests) + abs(self.seconds - due_s) / due_s


def ticks_of(seconds: float, tick_s: float) -> int:
    """Return how many samples are due in a time, at least 1."""
    return max(1, round(seconds / tick_s))


def span_of(releases: tuple[Interval, ...]) -> Span:
    """Return the sum of all releases."""
    seconds = 0.0
    reads = writes = read_bytes = written_bytes = 0
    for release in releases:
        seconds += release.seconds
        reads += release.reads
        writes += release.writes
        read_bytes += release.read_bytes
        written_bytes += release.written_bytes
    return Span(len(releases), seconds, reads, writes, read_bytes, written_bytes)


def last_span(releases: tuple[Interval, ...]) -> Span:
    """Return the sum of as many of the last releases as have enough requests, or of all."""
    requests = 0
    for number in range(1, len(releases) + 1):
        release = releases[-number]
        requests += release.reads + release.writes
        if requests >= P.enough_requests:
            return span_of(releases[-number:])
    return span_of(releases)


def last_seconds(releases: tuple[Interval, ...], seconds: float) -> tuple[Interval, ...]:
    """Return as few of the last releases as take that long; all if they take less."""
    for number in range(1, len(releases)):
        seconds -= releases[-number].seconds
        if seconds <= 0:
            return releases[-number:]
    return releases
