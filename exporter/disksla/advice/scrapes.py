"""What a load asked for, from the counters of scrapes: between two of them, as a range.

A scrape has what completed since the one before, and the highest rate of a window of 100 ms within
the last PEAK_S. When it completed is not known, so its rate may have been as high as that; without
that rate, or after a longer time, all may have completed in one window.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from disksla.advice.closed_loop import ClosedLoop, ThrottledTime, closed_loop_of, steady_iops
from disksla.advice.demand import NOTHING, Demand, DemandWindow
from disksla.limits import NO_LIMITS, Limits, Work

PEAK_S = 60.0
"""Seconds for which the highest rates are those of a scrape."""
_WINDOW_S = 0.1
"""Shortest time of a rate."""
_THROUGHOUT = 0.9
"""Share of a step in which a disk is throttled throughout."""


class ScrapedCounters(NamedTuple):
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
    wait_s: float = 0.0
    """I/O-seconds that requests took while the disk was throttled; zero if it is not known."""
    machine_s: float = 0.0
    """Time in which a limit of the machine throttled the disk."""
    peak: Work | None = None
    """Highest rates per second; None if they are not known."""


class _Step(NamedTuple):
    """What one disk, or several together, did between two scrapes."""

    seconds: float
    least: Work
    """With the fewest data writes."""
    most: Work
    throttled_s: float
    limited_s: float
    wait_s: float
    """While the disk was throttled; zero if a limit of the machine throttled it as well."""
    peak: Work | None
    """Highest rates per second; None if they are not known, or not those of all of the time."""


def demand_of_scrapes(*disks: Sequence[ScrapedCounters], limits: Limits = NO_LIMITS) -> Demand:
    """Return what was asked of disks with these limits together between their scrapes.

    Disks of one daemon have scrapes at the same times. Time in which a counter was reset is left
    out.
    """
    steps: defaultdict[tuple[float, float], list[_Step]] = defaultdict(list)
    for scrapes in disks:
        for before, after in pairwise(scrapes):
            if _is_continued(before, after):
                steps[before.timestamp_s, after.timestamp_s].append(_step(before, after))
    together = [_beside(steps[times]) for times in sorted(steps)]
    demand = Demand(tuple(window for step in together for window in _windows(step)))
    return demand._replace(loop=_loop(together, steady_iops(demand.work, limits)))


def _loop(steps: Sequence[_Step], limit_iops: float) -> ClosedLoop | None:
    """Return the closed loop that was throttled, if it was one.

    What was served while the disk was throttled is known of steps that were throttled throughout.
    """
    throttled = [
        ThrottledTime(
            step.seconds,
            step.least.reads + step.least.writes,
            step.most.reads + step.most.writes,
            step.wait_s,
        )
        for step in steps
        if step.wait_s and step.throttled_s >= _THROUGHOUT * step.seconds
    ]
    return closed_loop_of(throttled, sum(step.seconds for step in steps), limit_iops)


def _is_continued(before: ScrapedCounters, after: ScrapedCounters) -> bool:
    """Return whether no counter was reset."""
    counters = ("reads", "writes", "read_bytes", "written_bytes", "throttled_s", "limited_s")
    return all(getattr(before, name) <= getattr(after, name) for name in counters)


def _step(before: ScrapedCounters, after: ScrapedCounters) -> _Step:
    seconds = after.timestamp_s - before.timestamp_s
    limited_s = min(seconds, after.limited_s - before.limited_s)
    least, most = _work(before, after)
    is_by_machine = after.machine_s != before.machine_s
    return _Step(
        seconds=seconds,
        least=least,
        most=most,
        throttled_s=min(limited_s, after.throttled_s - before.throttled_s),
        limited_s=limited_s,
        wait_s=0.0 if is_by_machine else max(0.0, after.wait_s - before.wait_s),
        peak=after.peak if seconds <= PEAK_S else None,
    )


def _beside(steps: Sequence[_Step]) -> _Step:
    """Return what several disks did in the same time.

    When within it each of them was throttled is not known: at least one was for the longest of
    these times, and perhaps one after the other was limited.
    """
    least = most = NOTHING
    peak: Work | None = NOTHING
    for step in steps:
        least, most = least.plus(step.least), most.plus(step.most)
        peak = None if peak is None or step.peak is None else peak.plus(step.peak)
    return _Step(
        seconds=steps[0].seconds,
        least=least,
        most=most,
        throttled_s=max(step.throttled_s for step in steps),
        limited_s=min(steps[0].seconds, sum(step.limited_s for step in steps)),
        wait_s=sum(step.wait_s for step in steps),
        peak=peak,
    )


def _windows(step: _Step) -> Iterator[DemandWindow]:
    """Yield the time that was limited, and the rest. Both may have all that completed."""
    least, most = step.least, step.most
    requests = most.reads + most.writes
    if step.limited_s:
        share = step.limited_s / step.seconds
        yield DemandWindow(
            step.limited_s,
            NOTHING.plus(least, share),
            NOTHING.plus(most, share),
            step.throttled_s,
            is_limited=True,
            requests=requests * share,
            most_requests=math.inf,
        )
    rest_s = step.seconds - step.limited_s
    if rest_s:
        share = rest_s / step.seconds
        busy_s = _busy_s(most, step.peak, rest_s)
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


def _work(before: ScrapedCounters, after: ScrapedCounters) -> tuple[Work, Work]:
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
