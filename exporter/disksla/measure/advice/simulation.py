"""The share of the time in which a load would have been throttled under other limits.

Theory. Let x be what arrives in a window of d seconds, in seconds of one limit (its *cost*): a
limit serves d seconds of it in d seconds. It is a token bucket of rate 1. The limits of a disk are
buckets all of which a request has to pass, so requests wait as long as one of them has no tokens
(Le Boudec and Thiran, "Network Calculus", 2001, chapter 1: the least of several arrival curves).
What the guest cannot know is how the load reacts. So there are two ends.

- **Least: a load that waits (closed loop)** and gives up what it has no time for. A window whose
  cost exceeds the tokens by e takes d + e seconds, of which requests wait e. Nothing of the excess
  is left for the next window. So e / (d + e) of the window are throttled.
  The limiter saves tokens for BUCKET_S, credits are full, and data writes are the fewest.
- **Most: a load that keeps coming (open loop).** The excess is a backlog, and requests wait until
  it is served (Lindley's recursion). Nothing is saved, credits are empty, all writes count, and a
  window whose cost exceeds d is throttled from its beginning. A load that waits and makes up for
  it, so that all takes longer, may wait for a larger share: the sum of e, divided by that of
  d + e. The larger of both counts.

Less is known of time in which the disk was throttled, below its promise or stalled (*limited*):
the load may have asked for more than it was given.

- Least: it asked for nothing more. Under limits that are not above what it was given, it waits as
  it did, and longer by e.
- Most: all the time, it asked for what it was given while the disk was not throttled, and a
  quarter more. If the disk was throttled all the time, there is no bound. Limits below it throttle
  all of that time.

So the range is narrow for limits below those of the recording, and wide for limits above those
that throttled the load: there, the recording does not contain the answer.

Between two scrapes, the rate within a window is not even (`scrapes`). If it is n times the mean at
the highest, least is what remains if as much as possible is served at the limit, and the rest at
the highest rate: e / (d + e) / n. Most is a burst at the highest rate, which waits until it is
served.

Both ends are zero where no window costs more than it has, and grow as limits shrink. Least is
never above most, and credits make neither larger. Within a window, requests are taken to be evenly
spread: a limiter whose windows are much shorter than those of a sample throttles more.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import gt
from typing import NamedTuple

import msgspec

from disksla.measure.advice.demand import Demand, DemandWindow
from disksla.promise.catalogue import Bucket, Charge, Limits, Work

BUCKET_S = 0.1
"""Tokens that limiters without credits save at most, in seconds of the limit: the windows of
100 ms of several providers, and a tenth of a second in QEMU."""
_RESOURCES = {"iops": "iops", "bandwidth": "bytes", "service": "service_seconds"}


class ShareRange(NamedTuple):
    """Shares of a time, 0 to 1."""

    least: float
    most: float


class _Tokens(NamedTuple):
    """The bucket of one charge, and the credits that pay for what exceeds it."""

    charge: Charge
    depth_s: float
    """Tokens that are saved while the rate is not used."""
    level_s: float
    reserve_s: float = 0.0
    """Credits with a fill rate of their own."""
    reserve_level_s: float = 0.0
    fill_ratio: float = 0.0
    """Fill rate of the reserve, relative to the limit."""
    drain_ratio: float = 0.0
    """What a burst drains of the reserve at least, relative to the limit."""


class _Trial(NamedTuple):
    """A bucket on which windows are tried, with what each of them costs."""

    bucket: _Tokens
    costs_s: Sequence[float]


def throttled_share(demand: Demand, limits: Limits, tolerance_ratio: float) -> ShareRange:
    """Return the share of the time in which limits would have throttled a load.

    `tolerance_ratio` is that of the verdicts: by how much less than a limit a load is at it.
    """
    return ShareRange(
        least_share(demand, limits, tolerance_ratio), most_share(demand, limits, tolerance_ratio)
    )


def least_share(demand: Demand, limits: Limits, tolerance_ratio: float) -> float:
    """Return the share of a load that waits. Limited windows count as if they were at a limit."""
    windows, at_limit = demand.windows, 1 / (1 - tolerance_ratio)
    works = [each.least for each in windows]
    factors = [at_limit if each.is_limited else 1.0 for each in windows]
    trials = _trials(windows, works, factors, _buckets(limits, is_least=True))
    if not trials:
        return 0.0
    throttled_s = 0.0
    for window, excess in zip(windows, _largest(windows, trials), strict=True):
        if excess:
            waits_s = excess + window.throttled_s
            whole_s = window.seconds + excess
            throttled_s += window.seconds * waits_s / (whole_s * window.burst_times)
    return throttled_s / demand.seconds


def most_share(demand: Demand, limits: Limits, tolerance_ratio: float) -> float:
    """Return the share of a load that keeps coming, or makes up for it later."""
    windows, at_limit = demand.windows, 1 / (1 - tolerance_ratio)
    works = [each.most for each in windows]
    factors = [
        max(at_limit, each.most_times) if each.is_limited else each.burst_times for each in windows
    ]
    trials = _trials(windows, works, factors, _buckets(limits, is_least=False))
    if not trials:
        return 0.0
    from_start_s, to_end_s = [0.0] * len(windows), [0.0] * len(windows)
    for bucket, _ in trials:
        for number, (start_s, end_s) in enumerate(_waits(windows, bucket)):
            from_start_s[number] = max(from_start_s[number], start_s)
            to_end_s[number] = max(to_end_s[number], end_s)
    waits_s = map(sum, zip(from_start_s, to_end_s, strict=True))
    open_s = closed_s = longer_s = 0.0
    for window, excess, waited_s in zip(windows, _largest(windows, trials), waits_s, strict=True):
        if window.is_limited and excess:
            open_s += window.seconds
            cost_s = max(window.most.cost_s(bucket.charge) for bucket, _ in trials)
            longer = max(0.0, cost_s * at_limit - window.seconds)
            closed_s += window.seconds + longer
        else:
            open_s += min(waited_s, window.seconds)
            longer = (
                excess if window.burst_times == 1 else 0.0
            )  # where it bursts, a backlog is more
            closed_s += longer
        longer_s += longer
    return max(open_s / demand.seconds, closed_s / (demand.seconds + longer_s))


def _trials(
    windows: Sequence[DemandWindow],
    works: Sequence[Work],
    factors: Sequence[float],
    buckets: Iterable[_Tokens],
) -> list[_Trial]:
    """Return the buckets that a window costs more than it has; others never throttle."""
    lengths_s = [each.seconds for each in windows]
    trials = (_Trial(bucket, _costs_s(works, factors, bucket.charge)) for bucket in buckets)
    return [trial for trial in trials if any(map(gt, trial.costs_s, lengths_s))]


def _costs_s(works: Iterable[Work], factors: Iterable[float], charge: Charge) -> list[float]:
    """Return what windows cost of a limit, in seconds; `Work.cost_s` for many."""
    _, read_s, write_s, read_byte_s, written_byte_s = msgspec.structs.astuple(charge)
    return [
        factor
        * (
            read_s * work.reads
            + write_s * work.writes
            + read_byte_s * work.read_bytes
            + written_byte_s * work.written_bytes
        )
        for work, factor in zip(works, factors, strict=True)
    ]


def _largest(windows: Sequence[DemandWindow], trials: Iterable[_Trial]) -> list[float]:
    """Return the largest excess of each window over all buckets."""
    largest = [0.0] * len(windows)
    for trial in trials:
        largest = list(map(max, _excesses(windows, trial), largest))
    return largest


def _excesses(windows: Iterable[DemandWindow], trial: _Trial) -> Iterator[float]:
    """Yield the cost for which a bucket has no tokens, window by window; nothing is carried on."""
    bucket = trial.bucket
    level_s, reserve_level_s = bucket.level_s, bucket.reserve_level_s
    for window, cost_s in zip(windows, trial.costs_s, strict=True):
        excess_s, level_s, reserve_level_s = _pay(
            bucket, level_s, reserve_level_s, window.seconds, cost_s
        )
        yield excess_s


def _waits(windows: Iterable[DemandWindow], bucket: _Tokens) -> Iterator[tuple[float, float]]:
    """Yield how long there is a backlog, from the start of each window and up to its end."""
    level_s, reserve_level_s = bucket.level_s, bucket.reserve_level_s
    backlog_s = 0.0
    for window in windows:
        seconds, cost_s = window.seconds, window.most.cost_s(bucket.charge)
        excess_s, level_s, reserve_level_s = _pay(
            bucket, level_s, reserve_level_s, seconds, backlog_s + cost_s
        )
        if window.burst_times > 1 and cost_s * window.burst_times > seconds:
            yield min(seconds, backlog_s + cost_s), 0.0
        elif not backlog_s:
            yield 0.0, _after_onset_s(bucket, seconds, cost_s, excess_s) if excess_s else 0.0
        elif excess_s or cost_s >= seconds:
            yield seconds, 0.0
        else:
            yield min(seconds, backlog_s / (1 - cost_s / seconds)), 0.0
        backlog_s = excess_s


def _after_onset_s(bucket: _Tokens, seconds: float, cost_s: float, excess_s: float) -> float:
    """Return the rest of a window after the tokens that were saved are used up."""
    rate = 1.0 if bucket.drain_ratio else 1 + bucket.fill_ratio
    saved_s = max(0.0, cost_s - excess_s - rate * seconds)
    return seconds - saved_s / (cost_s / seconds - rate)


def _pay(
    bucket: _Tokens, level_s: float, reserve_level_s: float, seconds: float, cost_s: float
) -> tuple[float, float, float]:
    """Return what cannot be paid for in a window, and the levels after it."""
    spare_s = level_s + seconds - cost_s
    reserve_level_s += bucket.fill_ratio * seconds
    if spare_s >= 0:
        return 0.0, min(bucket.depth_s, spare_s), min(bucket.reserve_s, reserve_level_s)
    drained_s = max(-spare_s, bucket.drain_ratio * seconds)
    paid_share = min(1.0, reserve_level_s / drained_s)
    reserve_level_s = min(bucket.reserve_s, reserve_level_s - paid_share * drained_s)
    return -spare_s * (1 - paid_share), 0.0, reserve_level_s


def _buckets(limits: Limits, *, is_least: bool) -> list[_Tokens]:
    """Return the buckets that requests have to pass, for one end of the range."""
    burst = limits.burst
    base = limits.enforced_charges if is_least else limits.promise_charges
    peak = limits.burst_throttled_charges if is_least else limits.burst_charges
    depth_s = BUCKET_S if is_least else 0.0
    plain, bursting = (
        [_Tokens(charge, depth_s, depth_s) for charge in charges] for charges in (base, peak)
    )
    if burst is None or (burst.length == "unknown" and not is_least):
        return plain
    if burst.length != "credits":
        return bursting
    with_credits = [
        _with_credits(charge, bucket, is_least=is_least)
        for charge in base
        for bucket in burst.buckets
        if bucket.resource in {"service_seconds", _RESOURCES[charge.limit]}
    ]
    paid = {each.charge for each in with_credits}
    return bursting + with_credits + [each for each in plain if each.charge not in paid]


def _with_credits(charge: Charge, bucket: Bucket, *, is_least: bool) -> _Tokens:
    """Return the bucket of a charge whose credits are full, or empty at the other end."""
    capacity_s = bucket.capacity / bucket.base_per_second
    level_s = capacity_s if is_least else 0.0
    depth_s = BUCKET_S if is_least else 0.0
    if bucket.drain == "use":
        return _Tokens(charge, max(depth_s, capacity_s), max(depth_s, level_s))
    fill_ratio = bucket.fill_per_second / bucket.base_per_second
    drain_ratio = 0.0
    if bucket.drain == "constant":
        drain_ratio = bucket.peak_per_second / bucket.base_per_second - 1
    return _Tokens(
        charge=charge,
        depth_s=depth_s,
        level_s=depth_s,
        reserve_s=capacity_s,
        reserve_level_s=level_s,
        fill_ratio=fill_ratio,
        drain_ratio=drain_ratio,
    )
