"""What a load asked for, from the counters of scrapes: between two of them, as a range.

A scrape has what completed since the one before, and the highest rate of a window of 100 ms within
the last PEAK_S. When it completed is not known, so its rate may have been as high as that; without
that rate, or after a longer time, all may have completed in one window.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from disksla.advice.demand import NOTHING, Demand, DemandWindow, Work

PEAK_S = 60.0
"""Seconds for which the highest rates are those of a scrape."""
_WINDOW_S = 0.1
"""Shortest time of a rate."""


class Scrape(NamedTuple):
    """Counters of one disk at one time, and its highest rates."""

    timestamp_s: float
    reads: float
    writes: float
    """As the kernel counts."""
    read_bytes: float
    written_bytes: float
    flushes: float = 0.0
    data_writes: float | None = None
    """Counted exactly; None if they are not."""
    throttled_s: float = 0.0
    limited_s: float = 0.0
    """Time in which the disk was throttled, below its promise or stalled."""
    peak: Work | None = None
    """Highest rates per second; None if they are not known."""


def demand_of_scrapes(scrapes: Sequence[Scrape]) -> Demand:
    """Return what was asked for between scrapes, in order of time.

    Time in which a counter was reset is left out.
    """
    return Demand(
        tuple(
            window
            for before, after in pairwise(scrapes)
            if _is_continued(before, after)
            for window in _windows(before, after)
        )
    )


def _is_continued(before: Scrape, after: Scrape) -> bool:
    """Return whether no counter was reset."""
    counters = ("reads", "writes", "read_bytes", "written_bytes", "throttled_s", "limited_s")
    return all(getattr(before, name) <= getattr(after, name) for name in counters)


def _windows(before: Scrape, after: Scrape) -> Iterator[DemandWindow]:
    """Yield the time that was limited, and the rest. Both may have all that completed."""
    seconds = after.timestamp_s - before.timestamp_s
    least, most = _work(before, after)
    requests = most.reads + most.writes
    limited_s = min(seconds, after.limited_s - before.limited_s)
    if limited_s:
        throttled_s = min(limited_s, after.throttled_s - before.throttled_s)
        share = limited_s / seconds
        yield DemandWindow(
            limited_s,
            NOTHING.plus(least, share),
            NOTHING.plus(most, share),
            throttled_s,
            is_limited=True,
            requests=requests * share,
            most_requests=math.inf,
        )
    rest_s = seconds - limited_s
    if rest_s:
        peak = after.peak if seconds <= PEAK_S else None
        share = rest_s / seconds
        busy_s = _busy_s(most, peak, rest_s)
        yield DemandWindow(
            rest_s,
            NOTHING.plus(least, share),
            most,
            0.0,
            is_limited=False,
            requests=requests,
            most_requests=requests,
            burst_times=rest_s / busy_s,
        )


def _work(before: Scrape, after: Scrape) -> tuple[Work, Work]:
    """Return what completed between two scrapes, with the fewest and the most data writes.

    Flushes are counted before the writes that they follow, and merged, so that half of the writes
    is certain.
    """
    reads, writes = after.reads - before.reads, after.writes - before.writes
    flushes = max(0.0, after.flushes - before.flushes)
    fewest = min(max(0.0, writes - flushes), writes / 2) if flushes else writes
    if before.data_writes is not None and after.data_writes is not None:
        fewest = writes = max(0.0, after.data_writes - before.data_writes)
    read_bytes = after.read_bytes - before.read_bytes
    written_bytes = after.written_bytes - before.written_bytes
    return (
        Work(reads, fewest, read_bytes, written_bytes),
        Work(reads, writes, read_bytes, written_bytes),
    )


def _busy_s(work: Work, peak: Work | None, longest_s: float) -> float:
    """Return the least time in which work arrived, at the highest rates.

    These are of requests that completed; in a window, one more of them may have arrived.
    """
    if peak is None:
        return min(_WINDOW_S, longest_s)
    requests = work.reads + work.writes
    needed_s = [
        amount / (rate + amount / requests / _WINDOW_S)
        for amount, rate in zip(work, peak, strict=True)
        if amount
    ]
    return min(max([_WINDOW_S, *needed_s]), longest_s)
