"""Throttling detection: whether a limiter makes the requests of a disk wait, and at which limit.

A limiter below the guest has two signs: requests wait, and they complete at the rate of the limit.
Neither is sufficient alone, because requests wait at any busy disk, and a program may request any
rate. iowait and PSI are not used: they miss I/O submitted by libaio.

If the limit is known, the load of the last windows must be 1. If it is not, the rate must be as
constant as only a limiter makes it (the variance of a shaped stream collapses while there is a
backlog), and more than one request must be in flight: with one at a time, a limiter and a disk of
constant service time cannot be distinguished.

Sources: Kanuparthy and Dovrolis, "ShaperProbe: end-to-end detection of ISP traffic shaping using
active methods" (IMC 2011), for level shifts of a token bucket; the throttle windows of 100 ms in
https://yandex.cloud/en/docs/compute/concepts/storage-read-write.
"""

from itertools import accumulate
from typing import Literal, get_args

import msgspec

from disksla.limits import Charge, Limits
from disksla.verdict.interval import Interval
from disksla.verdict.window import ENOUGH_REQUESTS, WindowSum, sum_recent_windows, sum_windows

LimitKind = Literal["iops", "bandwidth", "unknown"]
LIMIT_KINDS: tuple[LimitKind, ...] = get_args(LimitKind)
ThrottleLevel = Literal["base", "burst", "unknown"]

WAIT_S = 0.001
WAIT_SHARE = 0.25
"""Requests of a window waited if their time in excess of the service time is more than WAIT_S plus
this share of the service time: truncated milliseconds and varying service times explain less."""
MIN_WAIT_SHARE = 0.02
"""Shortest waiting, as a share of a window: requests of one batch wait for each other without any
limiter."""
IN_FLIGHT_WINDOWS = 3
"""A throttled disk has requests in flight at the end of at least one of this many windows. A disk
that a limiter above it (a cgroup) feeds in batches has none most of the time."""
OCCUPIED_SHARE = 0.25
"""While the service time is unknown, requests waited if they took more than this share of a window
in total."""
MIN_LATENCY_S = 0.001
"""Shortest mean latency of requests that an unknown limit throttles."""
MAX_SPAN_WINDOWS = 10
"""Longest span of windows whose rate is compared with the limit."""
FLAT_WINDOWS = 20
"""Windows needed to detect an unknown limit by its constant rate."""
OUTLIERS = 2
"""Windows, of FLAT_WINDOWS, that a late sample may have distorted."""
FLAT_REQUESTS = 2
FLAT_SHARE = 0.005
"""A rate is constant if the cumulative sum differs from a straight line by at most FLAT_REQUESTS
requests plus FLAT_SHARE of a window. The sum of a disk that is only busy drifts off with time."""
INTERMITTENT_WINDOWS = 10
MIN_REACHED_WINDOWS = 2
MIN_INTERMITTENT_LOAD = 0.75
MAX_INTERMITTENT_LOAD = 2.0
TRAILING_REQUESTS = 2
"""Intermittent throttling of a varying load. A window in which requests waited is throttled if

1. its load is at least MIN_INTERMITTENT_LOAD;
2. of the last INTERMITTENT_WINDOWS, at least MIN_REACHED_WINDOWS but not all reached the limit;
3. the load of all of them together does not exceed the limit, and none exceeds
   MAX_INTERMITTENT_LOAD, because at most two windows of the limiter fall into one window;
4. it or the window before reached the limit: what waited there may have completed here;
5. not: more than TRAILING_REQUESTS were in flight before it and none after it, because then the
   requests that waited belong to the window before.
"""


class Throttle(msgspec.Struct, frozen=True, gc=False):
    """Where a disk is throttled."""

    level: ThrottleLevel
    """At its baseline, at its burst rate, or at a rate that is not in the terms."""
    limit: LimitKind


def has_waiting(window: Interval, service_s: float) -> bool:
    """Return whether requests waited in a window, beyond `service_s` each (0 if unknown)."""
    requests = window.reads + window.writes
    if window.inflight and (window.inflight > 1 or not requests):
        return True
    if not service_s:
        return wait_s(window, 0.0) > OCCUPIED_SHARE * window.seconds
    explained_s = WAIT_S + WAIT_SHARE * requests * service_s
    return wait_s(window, service_s) > max(explained_s, MIN_WAIT_SHARE * window.seconds)


def wait_s(window: Interval, service_s: float) -> float:
    """Return the I/O-seconds that completed requests waited, beyond `service_s` each."""
    took_s = ((window.read_ms or 0) + (window.write_ms or 0)) / 1000
    return max(0.0, took_s - (window.reads + window.writes) * service_s)


def throttled_at_limit(
    windows: tuple[Interval, ...],
    waiting_windows: int,
    was_throttled: ThrottleLevel | None,
    limits: Limits,
    tolerance: float,
    tick_s: float,
) -> Throttle | None:
    """Return the limit of the terms at which a disk is throttled; None if it is not.

    Requests waited in the last `waiting_windows` of `windows`. The first of these is left out if
    there are others, because it may contain two windows of the limiter, or tokens saved in its
    bucket. `was_throttled` is the level at which the disk was throttled in the window before.

    A sample taken while a limiter admits the requests of a window counts a part of them, which
    differs from sample to sample. Such windows are uneven (0, 60, 30 instead of 30, 30, 30). But
    between two samples that counted equal parts the rate is that of the limit, so one span of the
    last windows at the limit is sufficient. A disk that was throttled remains so while no span
    differs from the limit by more than one window.
    """
    if not any(window.inflight for window in windows[-IN_FLIGHT_WINDOWS:]):
        return None
    waiting = windows[1 - waiting_windows :] if waiting_windows > 1 else windows[-1:]
    for level, least, most in (
        ("base", limits.promise_charges, limits.throttled_charges),
        ("burst", limits.burst_charges, limits.burst_throttled_charges),
    ):
        if least and _is_throttled(
            waiting, least, most, tolerance, tick_s, was_throttled=was_throttled == level
        ):
            limit = binding_limit(sum_recent_windows(waiting), limits.enforced_charges)
            return Throttle("base" if level == "base" else "burst", limit)
    return None


def _is_throttled(
    waiting: tuple[Interval, ...],
    least: tuple[Charge, ...],
    most: tuple[Charge, ...],
    tolerance: float,
    tick_s: float,
    *,
    was_throttled: bool,
) -> bool:
    """Return whether one of the last spans is at a limit, and no shorter one is far from it.

    Far is more than one window. Without a span of either kind, return `was_throttled`.
    """
    shortest = sum_recent_windows(waiting).windows
    for number in range(shortest, max(shortest, min(len(waiting), MAX_SPAN_WINDOWS)) + 1):
        span = sum_windows(waiting[-number:])
        uncertainty = span.uncertainty(tick_s)
        if _is_at(span, least, most, tolerance, uncertainty):
            return True
        if abs((span.load(most) or 0.0) - 1) * number > 1 + tolerance + uncertainty:
            return False
    return was_throttled


def _is_at(
    span: WindowSum,
    least: tuple[Charge, ...],
    most: tuple[Charge, ...],
    tolerance: float,
    uncertainty: float,
) -> bool:
    """Return whether a load is within the bounds of a limit."""
    reached = (span.load(least) or 0.0) * (1 + uncertainty) >= 1 - tolerance
    return reached and (span.load(most) or 0.0) <= 1 + tolerance + uncertainty


def throttled_intermittently(
    windows: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> Throttle | None:
    """Return the limit of the terms that a varying load reached in the last window; None if none.

    With a burst, a load above the baseline is not evidence of a limit.
    """
    last = windows[-INTERMITTENT_WINDOWS:]
    if limits.burst_charges or not limits.promise_charges or len(last) < INTERMITTENT_WINDOWS:
        return None
    window, whole = sum_windows(last[-1:]), sum_windows(last)
    most = 1 + tolerance + whole.uncertainty(tick_s)
    served_the_queue = last[-2].inflight > TRAILING_REQUESTS and not last[-1].inflight
    if (
        served_the_queue
        or (window.load(limits.promise_charges) or 0.0) < MIN_INTERMITTENT_LOAD
        or (whole.load(limits.throttled_charges) or 0.0) > most
    ):
        return None
    reached_limit = []
    for each in last:
        span = sum_windows((each,))
        load, uncertainty = span.load(limits.promise_charges) or 0.0, span.uncertainty(tick_s)
        if load > MAX_INTERMITTENT_LOAD + tolerance + uncertainty:
            return None
        reached_limit.append(load >= 1 - tolerance - uncertainty)
    varies = MIN_REACHED_WINDOWS <= sum(reached_limit) < INTERMITTENT_WINDOWS
    if not varies or not any(reached_limit[-2:]):
        return None
    return Throttle("base", binding_limit(window, limits.enforced_charges))


def throttled_at_flat_rate(windows: tuple[Interval, ...]) -> Throttle | None:
    """Return an unknown limit if the rate is constant; None if it is not.

    `windows` are the last windows, in all of which requests waited.
    """
    last = windows[-FLAT_WINDOWS:]
    if len(last) < FLAT_WINDOWS or any(window.inflight < 2 for window in last):  # noqa: PLR2004
        return None
    span = sum_windows(last)
    took_s = sum(wait_s(window, 0.0) for window in last)
    if span.requests < ENOUGH_REQUESTS or took_s < MIN_LATENCY_S * span.requests:
        return None
    reads = [window.reads for window in last]
    writes = [window.writes for window in last]
    requests = [read + written for read, written in zip(reads, writes, strict=True)]
    amounts = [window.read_bytes + window.written_bytes for window in last]
    equal_shares = [1 / len(last)] * len(last)
    time_shares = [window.seconds / span.seconds for window in last]
    for values, quantum in (
        (requests, 1.0),
        (amounts, span.bytes / span.requests),
        (reads, 1.0),
        (writes, 1.0),
    ):
        if _is_flat(values, equal_shares, quantum) or _is_flat(values, time_shares, quantum):
            return Throttle("unknown", "unknown")
    return None


def binding_limit(span: WindowSum, charges: tuple[Charge, ...]) -> LimitKind:
    """Return the limit that a load uses most: that of requests or that of bytes.

    A budget shared in time has one charge for both; the larger part of it decides.
    """
    binding: LimitKind = "unknown"
    largest_s = -1.0
    for charge in charges:
        requests_s = charge.read_s * span.reads + charge.write_s * span.writes
        bytes_s = charge.read_byte_s * span.read_bytes + charge.written_byte_s * span.written_bytes
        if requests_s + bytes_s > largest_s:
            largest_s = requests_s + bytes_s
            if charge.limit == "service":
                binding = "iops" if requests_s >= bytes_s else "bandwidth"
            else:
                binding = charge.limit
    return binding


def _is_flat(values: list[int], shares: list[float], quantum: float) -> bool:
    """Return whether the sum of `values` follows the sum of `shares`, whose total is 1.

    A limiter with windows admits the same amount in every window of the sampler, whenever it
    samples; one without windows admits an amount in proportion to the time between samples.
    """
    total = sum(values)
    deviations = [
        total * share - value
        for share, value in zip(accumulate(shares), accumulate(values), strict=True)
    ]
    kept = sorted(deviations)[OUTLIERS // 2 : -OUTLIERS // 2]
    spread = kept[-1] - kept[0]
    return total > 0 and spread <= FLAT_REQUESTS * quantum + FLAT_SHARE * total / len(values)
