"""What a load asked of a disk, or of the disks of a group, window by window."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, groupby, pairwise
from typing import Literal, NamedTuple

from disksla.base.counts import total
from disksla.measure.advice.closed_loop import (
    ClosedLoop,
    ThrottledTime,
    closed_loop_of,
    steady_iops,
)
from disksla.promise.catalogue import NO_LIMITS, Limits, Work
from disksla.state.pipeline import WindowRecord
from disksla.verdict.throttling import LIMITED_VERDICTS, MACHINE_LIMITS

_MARGIN = 1.25
"""Requests that wait while a disk is throttled may be served faster than the others by this."""

_MOST_TIMES = 1e9
"""Of a load whose rate has no known bound."""

_FEWEST_REQUESTS = 4
"""Of a window whose mean time of a request counts."""

NOTHING = Work()


class Served(NamedTuple):
    """What completed in one window, and whether the disk limited it."""

    end_s: float
    seconds: float
    least: Work
    """With the fewest data writes."""
    most: Work
    """With all writes, empty flushes among them where these are not counted apart."""
    requests: int
    """Reads and writes as the kernel counts."""
    inflight: int
    """Requests in flight at the end."""
    throttled_s: float
    is_limited: bool
    most_requests: float
    """Requests that may have completed if nothing had made them wait; infinite if unknown."""
    took_s: float = 0.0
    """I/O-seconds that the data requests took which completed."""
    is_by_machine: bool = False
    """Whether a limit of the machine throttled them."""


class DemandWindow(NamedTuple):
    """What arrived in one window, or in several of a kind that follow each other."""

    seconds: float
    least: Work
    most: Work
    throttled_s: float
    """Time in which requests waited for a limiter."""
    is_limited: bool
    """Throttled, below or stalled: the load may have asked for more."""
    requests: float
    """Requests that completed."""
    most_requests: float
    """Requests that may have completed if nothing had made them wait; infinite if unknown."""
    burst_times: float = 1.0
    """How many times the mean rate the highest rate within it may have been."""

    @property
    def most_times(self) -> float:
        """How many times as much as was served the load may have asked for."""
        times = self.most_requests / max(self.requests, 1 / _MOST_TIMES)
        return max(1.0, min(times, _MOST_TIMES))


class Demand(NamedTuple):
    """What a load asked for in a period."""

    windows: tuple[DemandWindow, ...]
    loop: ClosedLoop | None = None
    """None unless it was a closed loop, throttled for most of the time."""
    limited: Literal["throttled", "at its limit"] = "throttled"
    """What is known of limited time: verdicts, or means that were at a limit."""

    @property
    def seconds(self) -> float:
        """Assessed time."""
        return sum(window.seconds for window in self.windows)

    @property
    def limited_share(self) -> float:
        """Share of the time in which the load may have asked for more than was served."""
        limited_s = sum(window.seconds for window in self.windows if window.is_limited)
        return limited_s / self.seconds if self.windows else 0.0

    @property
    def throttled_share(self) -> float:
        """Share of the time in which the disk was throttled, by the verdicts."""
        throttled_s = sum(window.throttled_s for window in self.windows)
        return throttled_s / self.seconds if self.windows else 0.0

    @property
    def shown_share(self) -> float:
        """Share of the time in which the disk was throttled, or of means at a limit."""
        return self.throttled_share if self.limited == "throttled" else self.limited_share

    @property
    def work(self) -> Work:
        """All that was asked for, with the most data writes."""
        return total((window.most for window in self.windows), NOTHING)


def served_of(records: Iterable[WindowRecord]) -> list[Served]:
    """Return what one disk served, in the order of its windows; gaps are left out."""
    windows = [record for record in records if record.window_s and record.verdict is not None]
    return [_served(record) for record in windows]


def total_served(disks: Iterable[Sequence[Served]]) -> list[Served]:
    """Return what several disks served as one, window by window."""
    by_end: defaultdict[float, list[Served]] = defaultdict(list)
    for windows in disks:
        for window in windows:
            by_end[window.end_s].append(window)
    return [_beside(by_end[end_s]) for end_s in sorted(by_end)]


def demand_of(windows: Sequence[Served], limits: Limits = NO_LIMITS) -> Demand:
    """Return what was asked for in windows that follow each other, of disks with these limits.

    Requests arrive when they become in flight: those that arrived until the end of a window are
    those that completed and those in flight. Their size and direction are those of the requests
    that complete next.
    """
    arrived = [
        DemandWindow(
            *(window.seconds, least, most, window.throttled_s),
            *(window.is_limited, window.requests, window.most_requests),
        )
        for window, (least, most) in zip(windows, _arrivals(windows), strict=True)
    ]
    number = count()

    def kind(window: DemandWindow) -> int | str:
        """Return a key of windows that follow each other and are as good as one.

        Nothing arrives in idle ones. What is served in limited ones depends on when the limiter
        lets requests pass, so that only their sum says what was asked for. Others are each its
        own.
        """
        if window.is_limited:
            return "limited"
        return "idle" if window.most == NOTHING else next(number)

    whole = Demand(tuple(_merged(list(each)) for _, each in groupby(arrived, kind)))
    return whole._replace(loop=_loop(windows, steady_iops(whole.work, limits)))


def _loop(windows: Sequence[Served], limit_iops: float) -> ClosedLoop | None:
    """Return the closed loop that was throttled, if it was one.

    What a request takes without a limiter is the least mean of windows at most half as busy as
    the limit, that begin and end without a request: what waits for a limiter is still there.
    """
    throttled = []
    for each in windows:
        if each.throttled_s and not each.is_by_machine:
            share = min(1.0, each.throttled_s / each.seconds)  # what completed is even in it
            parts = each.seconds, each.least.requests, each.most.requests, each.took_s
            throttled.append(ThrottledTime(*(share * part for part in parts)))
    loop = closed_loop_of(throttled, sum(each.seconds for each in windows), limit_iops)
    if loop is None:
        return None
    free_s = (
        each.took_s / each.requests
        for before, each in pairwise(windows)
        if not (before.is_limited or each.is_limited or before.inflight or each.inflight)
        and _FEWEST_REQUESTS <= each.requests <= loop.served_iops * each.seconds / 2
    )
    return loop._replace(service_s=min(min(free_s, default=0.0), loop.request_s))


def _served(record: WindowRecord) -> Served:
    seconds, throttled_s = record.window_s or 0.0, record.throttled_s or 0.0
    reads, writes = record.reads or 0, record.writes or 0
    flushes = 0 if record.is_exact else record.flushes or 0
    read_bytes, written_bytes = record.read_bytes or 0, record.written_bytes or 0
    fewest = max(writes - flushes, min(1, written_bytes))
    if flushes and (record.inflight or 0) > 1:  # merged; each follows a data write
        fewest = min(fewest, -(-writes // 2))
    is_limited = record.verdict in LIMITED_VERDICTS
    most_requests = requests = float(reads + writes)
    if is_limited:  # those that completed did so in the part in which it was not throttled
        most_requests, free_s = math.inf, seconds - throttled_s
        if throttled_s and free_s > 0:
            most_requests = max(requests, _MARGIN * requests * seconds / free_s)
    return Served(
        end_s=record.monotonic_s,
        seconds=seconds,
        least=Work(reads, fewest, read_bytes, written_bytes),
        most=Work(reads, writes, read_bytes, written_bytes),
        requests=reads + writes,
        inflight=record.inflight or 0,
        throttled_s=throttled_s,
        is_limited=is_limited,
        most_requests=most_requests,
        took_s=record.took_s or 0.0,
        is_by_machine=record.limit in MACHINE_LIMITS.values(),
    )


def _beside(windows: Sequence[Served]) -> Served:
    return Served(
        end_s=windows[0].end_s,
        seconds=max(window.seconds for window in windows),
        least=total(window.least for window in windows),
        most=total(window.most for window in windows),
        requests=sum(window.requests for window in windows),
        inflight=sum(window.inflight for window in windows),
        throttled_s=max(window.throttled_s for window in windows),
        is_limited=any(window.is_limited for window in windows),
        most_requests=sum(window.most_requests for window in windows),
        took_s=sum(window.took_s for window in windows),
        is_by_machine=any(window.is_by_machine for window in windows),
    )


def _arrivals(windows: Sequence[Served]) -> Iterator[tuple[Work, Work]]:
    """Yield what arrived in each window, with the fewest and with the most data writes."""
    completed = arrived = 0
    at = 0
    taken = 0.0
    for window in windows:
        completed += window.requests
        until = max(arrived, completed + window.inflight)
        missing, arrived = float(until - arrived), until
        least = most = NOTHING
        while missing > 0 and at < len(windows):
            source = windows[at]
            part = min(missing, source.requests - taken)
            if source.requests:
                least += source.least * (part / source.requests)
                most += source.most * (part / source.requests)
            missing, taken = missing - part, taken + part
            if taken >= source.requests:
                at, taken = at + 1, 0.0
        yield least, most


def _merged(windows: Sequence[DemandWindow]) -> DemandWindow:
    """Return windows of a kind as one."""
    if len(windows) == 1:
        return windows[0]
    return DemandWindow(
        seconds=sum(window.seconds for window in windows),
        least=total(window.least for window in windows),
        most=total(window.most for window in windows),
        throttled_s=sum(window.throttled_s for window in windows),
        is_limited=windows[0].is_limited,
        requests=sum(window.requests for window in windows),
        most_requests=sum(window.most_requests for window in windows),
    )
