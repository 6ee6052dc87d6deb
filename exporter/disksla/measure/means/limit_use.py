"""For how long a disk ran at which of its limits, by means of intervals.

The law. An interval ran at a limit if its load is from 1.2 % below it to the excess of the limiter
above it, half a request or more was in flight on average, and so it is in the interval before or
after it. That a limiter made requests wait is not known: a disk whose load is so much by chance
looks the same, and one that was throttled for a part of an interval is missed.

Credits are those of `verdict.credits`, whose bounds hold for intervals of any length: they allow
for any order of the requests in one. What ran at a limit is no sign of a throttle, so they follow
from what was used alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from disksla.measure.means.mean import MOST_INFLIGHT, Mean
from disksla.promise.catalogue import Charge, Limits, Resource
from disksla.verdict.credits import CreditLevel, open_account, throttled_by
from disksla.verdict.interval import load_of
from disksla.verdict.throttling import LimitKind, Throttle, ThrottleLevel, binding_limit

BELOW_RATIO = 0.012
"""By how much less than a limit a load is at it: of 89 published rates at a limit, all but a few
are at most 1 % below it (docs/limiters.md)."""
LEAST_INFLIGHT = 0.5
HIGH, NEAR = 0.8, 0.95
"""Loads above which time is added up."""
EMPTY_RATIO = 0.01
_SHORTEST_S = 0.1
_APART_S = 1.5
"""Two intervals with less than this between them follow each other: agents round times."""

_Levels = tuple[CreditLevel, ...]


class AtLimit(msgspec.Struct, frozen=True):
    """Intervals that follow each other and ran at a limit."""

    start_s: float
    end_s: float
    level: ThrottleLevel
    limit: LimitKind

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.end_s - self.start_s


class Latency(msgspec.Struct, frozen=True):
    """What requests took on average in some intervals; None if there were none, or unknown."""

    request_s: float | None = None
    read_s: float | None = None
    write_s: float | None = None


class CreditsSeen(msgspec.Struct, frozen=True):
    """Burst credits of one resource, in shares of the capacity.

    The estimate is a half at first, and none where the disk ran at its baseline.
    """

    resource: Resource
    capacity_credits: float
    lower_ratio: float
    """At the end, as the next two."""
    upper_ratio: float
    estimate_ratio: float
    empty_s: float
    """Time in which not even the upper bound was 1 % of the capacity."""
    maybe_empty_s: float
    """Time in which the estimate was less than that."""


class LimitUse(msgspec.Struct, frozen=True):
    """What a disk, or disks together, did in intervals, relative to limits."""

    start_s: float
    end_s: float
    seconds: float
    """Time that is in intervals."""
    interval_s: float
    """Usual length of an interval."""
    at_limit: tuple[AtLimit, ...]
    """In order of time."""
    largest_load: float | None
    """Without limits None; as the times above loads."""
    largest_timestamp_s: float
    """End of the interval with the largest load or, without limits, the most requests."""
    largest_iops: float
    largest_bytes_per_second: float
    high_s: float
    near_s: float
    beyond_s: float
    """Time in which it did more than any limit permits."""
    latency_at_limit: Latency
    latency_otherwise: Latency
    credits: tuple[CreditsSeen, ...] = ()

    @property
    def at_limit_s(self) -> float:
        """Time at a limit."""
        return sum(each.seconds for each in self.at_limit)


class _Judged(NamedTuple):
    """An interval, with what is known of it."""

    mean: Mean
    throttle: Throttle | None
    """The limit that it ran at."""
    levels: _Levels
    """Credits after it."""

    @property
    def seconds(self) -> float:
        return self.mean.interval.seconds

    def load(self, charges: tuple[Charge, ...]) -> float:
        """Return the load at least."""
        return min(load_of(case, charges) or 0.0 for case in self.mean.cases)


def use_of_limits(means: Sequence[Mean], limits: Limits) -> LimitUse:
    """Return for how long a disk with these limits ran at them; there is one interval at least."""
    judged = _judged(means, limits)
    intervals = [mean.interval for mean in means]
    burst = limits.burst
    most_charges = limits.burst_throttled_charges or limits.throttled_charges
    is_unlimited = burst is not None and burst.length == "unlimited"
    charges = most_charges if is_unlimited else limits.throttled_charges
    loads = [(each.load(charges), each) for each in judged]
    beyond = 1 + limits.limiter.excess_ratio
    largest_load, largest = max(loads, key=lambda each: (each[0], each[1].mean.interval.requests))
    return LimitUse(
        start_s=means[0].start_s,
        end_s=means[-1].end_s,
        seconds=_seconds(judged),
        interval_s=sorted(each.seconds for each in intervals)[len(intervals) // 2],
        at_limit=tuple(_stretches(judged)),
        largest_load=largest_load if charges else None,
        largest_timestamp_s=largest.mean.end_s,
        largest_iops=max(each.requests / each.seconds for each in intervals),
        largest_bytes_per_second=max(each.bytes / each.seconds for each in intervals),
        high_s=_seconds(each for load, each in loads if load > HIGH),
        near_s=_seconds(each for load, each in loads if load > NEAR),
        beyond_s=_seconds(each for each in judged if each.load(most_charges) > beyond),
        latency_at_limit=_latency(each.mean for each in judged if each.throttle is not None),
        latency_otherwise=_latency(each.mean for each in judged if each.throttle is None),
        credits=tuple(_credits_seen(judged, number) for number in range(len(limits.buckets))),
    )


def is_at_limit(means: Sequence[Mean], limits: Limits) -> list[bool]:
    """Return of each interval whether a disk with these limits was at one of them."""
    return [each.throttle is not None for each in _judged(means, limits)]


def _seconds(judged: Iterable[_Judged]) -> float:
    return sum(each.seconds for each in judged)


def _judged(means: Sequence[Mean], limits: Limits) -> list[_Judged]:
    """Return the intervals, with the limit at which each was with one beside it."""
    alone = list(_each_alone(means, limits))
    judged = [each._replace(throttle=None) for each in alone]
    for number, (before, after) in enumerate(pairwise(alone)):
        levels = {each.throttle and each.throttle.level for each in (before, after)}
        if None not in levels and len(levels) == 1 and _follows(before.mean, after.mean):
            judged[number : number + 2] = before, after
    return judged


def _each_alone(means: Sequence[Mean], limits: Limits) -> Iterator[_Judged]:
    """Yield the intervals, each with the limit that its rate was.

    Nothing is known of the credits at the start. What is throttled at a baseline has an estimate
    of none left.
    """
    account = open_account(limits, means[0].start_s)
    for mean in means:
        if account is None:
            yield _Judged(mean, _limit_at(mean, limits, ()), ())
            continue
        if mean.start_s - account.at_s >= _APART_S:
            account = account.after_gap(limits, None, mean.start_s, MOST_INFLIGHT)
        seconds = max(mean.end_s - account.at_s, _SHORTEST_S)
        cases = sorted(mean.cases, key=lambda each: load_of(each, limits.enforced_charges) or 0.0)
        least, most = (replace(each, seconds=seconds) for each in (cases[0], cases[-1]))
        if most.flushes:
            least = most.with_fewest_writes(None)
        fewest = None if least == most else least
        account = account.after_window(limits, most, None, mean.end_s, fewest)
        throttle = _limit_at(mean, limits, account.levels(limits, most))
        if throttle is not None:
            account = account.at_baseline(limits.buckets, throttle)
        yield _Judged(mean, throttle, account.levels(limits, most))


def _limit_at(mean: Mean, limits: Limits, levels: _Levels) -> Throttle | None:
    """Return the limit that an interval alone was at; None if at none."""
    if mean.inflight < LEAST_INFLIGHT:
        return None
    burst = limits.burst
    has_base = burst is None or burst.length != "unlimited"
    all_charges: tuple[tuple[ThrottleLevel, tuple[Charge, ...]], ...] = (
        ("base", limits.throttled_charges if has_base else ()),
        ("burst", limits.burst_throttled_charges),
    )
    for level, charges in all_charges:
        loads = [load_of(case, charges) or 0.0 for case in mean.cases]
        is_at = [1 - BELOW_RATIO <= load <= 1 + limits.limiter.excess_ratio for load in loads]
        # Of requests that are not told apart, no case is more likely than another.
        if any(is_at) if mean.is_told_apart else all(is_at):
            throttle = Throttle(level, binding_limit(mean.cases[is_at.index(True)], charges))
            if level == "burst" or not _has_credits(throttle, limits, levels):
                return throttle
    return None


def _has_credits(throttle: Throttle, limits: Limits, levels: _Levels) -> bool:
    """Return whether the buckets of a limit were certainly not empty: it is not the baseline's."""
    of_limit = [
        level.ratio(level.lower_credits) > EMPTY_RATIO
        for bucket, level in zip(limits.buckets, levels, strict=True)
        if throttled_by(bucket, throttle) is not None
    ]
    return bool(of_limit) and all(of_limit)


def _follows(before: Mean, after: Mean) -> bool:
    return after.start_s - before.end_s < _APART_S


def _stretches(judged: Sequence[_Judged]) -> Iterator[AtLimit]:
    """Yield the times at a limit."""
    inside: list[_Judged] = []
    for each, following in pairwise([*judged, None]):
        if each is None or each.throttle is None:
            continue
        inside.append(each)
        is_last = following is None or following.throttle != each.throttle
        if is_last or (following is not None and not _follows(each.mean, following.mean)):
            throttle = each.throttle
            start_s = inside[0].mean.start_s
            yield AtLimit(start_s, each.mean.end_s, throttle.level, throttle.limit)
            inside = []


def _latency(means: Iterable[Mean]) -> Latency:
    """Return what requests took in intervals."""
    busy = [mean for mean in means if mean.interval.requests]
    if not busy:
        return Latency()
    whole = reduce(add, (mean.interval for mean in busy))
    return Latency(
        sum(mean.took_s for mean in busy) / whole.requests,
        _per_request(whole.read_ms, whole.reads),
        _per_request(whole.write_ms, whole.writes),
    )


def _per_request(took_ms: int | None, requests: int) -> float | None:
    return None if took_ms is None or not requests else took_ms / 1000 / requests


def _credits_seen(judged: Sequence[_Judged], bucket: int) -> CreditsSeen:
    """Return what is known of the credits of a bucket over all intervals."""
    levels = [(each, each.levels[bucket]) for each in judged]
    last = levels[-1][1]
    return CreditsSeen(
        resource=last.resource,
        capacity_credits=last.capacity_credits,
        lower_ratio=last.ratio(last.lower_credits),
        upper_ratio=last.ratio(last.upper_credits),
        estimate_ratio=last.ratio(last.estimate_credits),
        empty_s=_seconds(
            each for each, level in levels if level.ratio(level.upper_credits) < EMPTY_RATIO
        ),
        maybe_empty_s=_seconds(
            each for each, level in levels if level.ratio(level.estimate_credits) < EMPTY_RATIO
        ),
    )
