"""Which sign of a limiter is seen in the last seconds of a disk, and how long requests waited."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from disksla.base.counts import total
from disksla.promise.catalogue import Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.throttling.admitted import Admitted, admitted
from disksla.verdict.throttling.bucket import (
    EVIDENCE_S,
    SLOWER,
    Followed,
    LimitBucket,
    buckets_of,
    limiting_rate,
)
from disksla.verdict.throttling.observation import data_s, is_active
from disksla.verdict.throttling.pauses import (
    LONGEST_WINDOW_S,
    ON_TIME_SHARE,
    Clock,
    Pause,
    find_clock,
)
from disksla.verdict.throttling.second import Second
from disksla.verdict.throttling.throttle import (
    UNKNOWN_LIMIT,
    SharedWindow,
    Throttle,
    binding_limit,
    limit_at,
)

Sign = Literal["pauses", "bucket"]
SIGNS: frozenset[Sign] = frozenset(get_args(Sign))

FEW_REQUESTS = 12
"""In a window. A disk may serve so many at a time."""
LONGEST_SERVICE_S = 0.05
"""Of a request. A disk may serve a queue so many at a time, in as constant a time."""
ONE_WINDOW = 0.1
"""Requests take one window each, if their mean latency differs from it by no more than this."""
LOOKED_SECONDS = 4
SAME_LOAD = 1.25
"""Where a disk is not looked at, what was seen of it holds for seconds in which it serves no more
and no less by this ratio."""


class FoundLimiter(NamedTuple):
    """What was found in the last second."""

    throttle: Throttle
    sign: Sign
    throttled_s: tuple[float, ...]
    """Of each of its windows."""
    served: Interval | None = None
    """What the limiter admitted in a time, if that is known."""
    is_certain: bool = False
    """Whether the number of requests in it is certain; that of bytes is."""
    window_s: float | None = None
    """Window of the limiter."""


def find(
    seconds: Sequence[Second],
    limits: Limits,
    tolerance: float,
    group: SharedWindow | None = None,
    signs: frozenset[Sign] = SIGNS,
) -> FoundLimiter | None:
    """Return what throttled a disk in the last of its seconds; None if nothing did.

    `seconds` are those within MEMORY_S; `group` is the same second of its group, if it is in one.
    """
    found = _paused(seconds, limits, tolerance, group) if "pauses" in signs else None
    if found is None and "bucket" in signs:
        found = _at_bucket(seconds, limits) or _at_limit_of_group(seconds[-1], limits, group)
    return found


def _paused(
    seconds: Sequence[Second], limits: Limits, tolerance: float, group: SharedWindow | None
) -> FoundLimiter | None:
    last = seconds[-1]
    ended = [pause for second in seconds for pause in second.pauses if not pause.is_open]
    clock = find_clock(ended)
    if clock is None:
        return None
    steps = _steps(seconds)
    if _is_of_program(ended, steps):
        return None
    full = admitted(steps, ended, clock)
    if last.is_close or not _is_looked_at(seconds):
        spans = list(_throttled_spans(seconds[-2:], clock))
        throttled_s = tuple(
            _within(spans, each.window) / each.seen_share for each in last.observations
        )
    else:
        share = _share(seconds, clock)
        throttled_s = tuple(
            share * each.window.seconds * is_active(each.window) for each in last.observations
        )
    if not any(throttled_s):
        return None
    served, is_certain = (None, False) if full is None else (full.served, full.is_certain)
    throttle = UNKNOWN_LIMIT if full is None else _named(full, limits, tolerance, group)
    if throttle == UNKNOWN_LIMIT:
        if full is None or _may_be_served(full, clock, seconds):
            return None
        throttle, served = _in_turns(full, limits, tolerance)
    return FoundLimiter(
        throttle=throttle,
        sign="pauses",
        throttled_s=throttled_s,
        served=served,
        is_certain=is_certain,
        window_s=clock.window_s,
    )


def _may_be_served(full: Admitted, clock: Clock, seconds: Sequence[Second]) -> bool:
    """Return whether a disk may be as slow by itself: few requests, for one window each."""
    served = total([second.served for second in seconds])
    latency_s = served.without_flushes().took_s / max(1, served.requests)
    is_one_each = abs(latency_s / clock.window_s - 1) < ONE_WINDOW
    is_queue = clock.window_s < LONGEST_SERVICE_S and latency_s > clock.window_s
    return full.requests < FEW_REQUESTS and (is_one_each or is_queue)


def _is_of_program(pauses: Sequence[Pause], steps: Sequence[Interval]) -> bool:
    """Return whether the clock may be that of a program: it makes requests at the ends of pauses.

    Then a slow request was in flight, and the program made others, which the disk served at once.
    """
    lasting = [pause for pause in pauses if pause.steps > 1]
    risen_s = [
        step.end_s - step.seconds / 2
        for step in steps
        if step.is_pause and step.inflight > step.inflight_before
    ]
    first_at = [  # 0 at the begin of a pause, 1 at its end
        (within_s[0] - pause.begin_s) / (pause.at_s - pause.begin_s)
        for pause in lasting
        if (within_s := [at_s for at_s in risen_s if pause.begin_s <= at_s <= pause.last_s])
    ]
    late = sum(at > ON_TIME_SHARE for at in first_at)
    return late >= max(ON_TIME_SHARE * len(first_at), len(lasting) / 2)


def _at_limit_of_group(
    last: Second, limits: Limits, group: SharedWindow | None
) -> FoundLimiter | None:
    """Return the limit of the group of a disk whose bucket makes requests wait."""
    if group is None or not group.waited_share or group.throttle is None:
        return None
    if (load_of(last.served, group.charges) or 0.0) < group.least_load:
        return None
    throttled_s = tuple(group.waited_share * data_s(each.window) for each in last.observations)
    if not any(throttled_s):
        return None
    near = limit_at(_without_flushes(last.served), limits, SLOWER)
    return FoundLimiter(near or group.throttle, "bucket", throttled_s)


def _at_bucket(seconds: Sequence[Second], limits: Limits) -> FoundLimiter | None:
    """Return the limit of the terms whose bucket makes requests wait: of several, the longest."""
    last = seconds[-1]
    recent = [second for second in seconds if second.number > last.number - EVIDENCE_S]
    busy_s = [second.busy_share * second.served.seconds for second in recent]
    found: tuple[LimitBucket, Followed, float] | None = None
    longest_s = 0.0
    for index, bucket in enumerate(buckets_of(limits)):
        followed = last.buckets[index]
        if followed is None or sum(followed.waited_s) <= longest_s:
            continue
        rate = limiting_rate([second.buckets[index] for second in recent], busy_s, bucket)
        if rate is not None:
            longest_s, found = sum(followed.waited_s), (bucket, followed, rate)
    if found is None:
        return None
    bucket, followed, rate = found
    waited = [
        each.window
        for each, waited_s in zip(last.observations, followed.waited_s, strict=True)
        if waited_s > each.window.seconds / 2
    ]
    served = total(waited) if waited else None
    if served is not None:  # what kind of requests, at the rate of all pieces
        served = (_without_flushes if bucket.has_empty else _with_all)(served)
        used_s = served.cost_s(bucket.charge)
        served = msgspec.structs.replace(served, seconds=used_s / rate) if used_s else None
    return FoundLimiter(
        throttle=Throttle(bucket.level, binding_limit(last.served, (bucket.charge,))),
        sign="bucket",
        throttled_s=followed.waited_s,
        served=served,
        is_certain=not last.served.flushes,
    )


def _is_looked_at(seconds: Sequence[Second]) -> bool:
    return any(second.is_close for second in seconds)


def _without_flushes(served: Interval) -> Interval:
    return msgspec.structs.replace(served.without_flushes(), flushes=0)


def _with_all(served: Interval) -> Interval:
    return msgspec.structs.replace(served, flushes=0)


def _named(
    full: Admitted, limits: Limits, tolerance: float, group: SharedWindow | None
) -> Throttle:
    """Return the limit of a limiter that is seen, by what it admits in its windows.

    Of few large requests, one may be in the wrong window; of many, one window may be wrong.
    """
    own = limit_at(full.served, limits, tolerance)
    if own is None and full.requests < FEW_REQUESTS:
        own = limit_at(full.served, limits, tolerance + 1 / max(1, full.served.requests))
    elif own is None and full.windows and limits.burst is None:
        by_size = sorted(full.windows, key=lambda window: (window.bytes, window.requests))
        own = limit_at(by_size[len(by_size) // 2], limits, tolerance)
    if own is not None:
        return own
    return group.throttle if group is not None and group.throttle else UNKNOWN_LIMIT


def _in_turns(full: Admitted, limits: Limits, tolerance: float) -> tuple[Throttle, Interval]:
    """Return the limit of the newest window, and what was served at it, if a burst began or ended.

    Then each window is at the baseline or at the burst, but for one in four that is of both.
    """
    at = [(limit_at(each, limits, tolerance), each) for each in full.windows]
    known = [throttle for throttle, _ in at if throttle is not None]
    if limits.burst is None or 4 * len(known) < 3 * max(1, len(at)):
        return UNKNOWN_LIMIT, full.served
    return known[0], total([each for throttle, each in at if throttle == known[0]])


def is_as_when_looked_at(seconds: Sequence[Second]) -> bool:
    """Return whether the last second is like one in which the disk was looked at, if any."""
    return not _is_looked_at(seconds) or bool(_alike(seconds, LONGEST_WINDOW_S))


def _alike(seconds: Sequence[Second], window_s: float) -> list[Second]:
    """Return the seconds of the last look that are like the last second.

    Where the disk was flushed, the rate of each is a range, and one that both may have is enough.
    """
    # A window of the limiter more or less may fall into a second.
    most, (fewest, all_now) = SAME_LOAD + window_s, seconds[-1].requests_per_second
    looked = [second for second in seconds if second.is_close][-LOOKED_SECONDS:]
    return [
        second
        for second in looked
        if second.requests_per_second[0] <= most * all_now
        and fewest <= most * second.requests_per_second[1]
    ]


def _share(seconds: Sequence[Second], clock: Clock) -> float:
    """Return the throttled share of the time in which the disk was looked at and active.

    Only seconds count that are like the last one.
    """
    alike = _alike(seconds, clock.window_s)
    active_s = sum(
        each.seen_share * each.window.seconds
        for second in alike
        for each in second.observations
        if is_active(each.window)
    )
    if not active_s:
        return 0.0
    first, last = seconds.index(alike[0]), seconds.index(alike[-1])
    spans = list(_throttled_spans(seconds[max(0, first - 1) : last + 1], clock))
    return min(1.0, sum(_within(spans, second.served) for second in alike) / active_s)


def _throttled_spans(seconds: Sequence[Second], clock: Clock) -> Iterable[tuple[float, float]]:
    """Yield begin and end of each time in which requests waited.

    That is pauses that end on time, or have not ended.
    """
    steps, at = _steps(seconds), 0
    pauses = [pause for second in seconds[:-1] for pause in second.pauses if not pause.is_open]
    for pause in (*pauses, *seconds[-1].pauses):
        is_lasting = pause.is_open and pause.seconds <= clock.window_s
        if not is_lasting and clock.number(pause, slack=2) is None:
            continue
        from_s = pause.at_s - clock.window_s
        served: list[Interval] = []
        while at < len(steps) and steps[at].end_s <= pause.last_s:
            if steps[at].end_s > from_s and not steps[at].is_pause:
                served.append(steps[at])
            at += 1
        # Requests waited before it, too, when more were in flight than completed until it began.
        left = 0
        for step in reversed(served):
            if step.inflight > left and step.end_s < pause.begin_s:
                yield step.end_s - step.seconds / 2, step.end_s + step.seconds / 2
            left += step.requests
        yield pause.at_s - pause.seconds, pause.at_s


def _within(spans: Iterable[tuple[float, float]], window: Interval) -> float:
    """Return how long the spans are within a window."""
    begin_s = window.end_s - window.seconds
    within_s = sum(
        max(0.0, min(end_s, window.end_s) - max(start_s, begin_s)) for start_s, end_s in spans
    )
    return min(window.seconds, within_s)


def _steps(seconds: Iterable[Second]) -> list[Interval]:
    return [step for second in seconds for each in second.observations for step in each.steps]
