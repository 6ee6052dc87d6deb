"""Whether a disk is held at its limit.

A limiter below the guest shows in two things at once: requests wait, and the rate at which they
are served is that of the limit. Neither says it alone. Requests wait at any busy disk, and any
rate may be asked for; iowait and PSI miss whatever is done asynchronously.

Where the limit is known, the load of the last windows has to be 1. Where it is not, the rate has
to be as flat as only a limiter is (the variance of a shaped stream collapses while there is a
backlog), and more than one request has to be in flight: one at a time, a limiter and a disk of
constant service time look alike.

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
"""Requests of a window waited if, together, they took so much longer than service does: longer
than whole milliseconds and the scatter of service times explain."""
LEAST_WAIT_SHARE = 0.02
"""Of a window: what comes in bunches waits for itself for a moment, below no limit at all."""
SEEN_WINDOWS = 3
"""At the end of one of so many windows, at least, something is in flight at a disk that is held;
at one that is fed in bunches, by a limiter above it, nothing is for most of the time."""
OCCUPIED_SHARE = 0.25
"""While service times are not known, a disk at which something is in flight for so much of a
window is taken to let requests wait."""
LEAST_LATENCY_S = 0.001
"""At an unknown limit, requests take at least so long: a queue that is served in less is short."""
MOST_SPANS = 10
"""Windows over which the rate of a limit is looked for."""
FLAT_WINDOWS = 20
OUTLIERS = 2
"""Windows, of the flat ones, that a late sample may have spoilt."""
FLAT_REQUESTS = 2
FLAT_SHARE = 0.005
"""A rate is flat if what was served stays so near to a straight line, in requests and in shares
of a window. A disk that is merely busy wanders off it, the farther the longer one looks."""
TOUCHED_WINDOWS = 10
TOUCHED_LEAST = 2
TOUCHED_LOAD = 0.75
TOUCHED_HIGHEST = 2.0
TRAILING = 2
"""A load that varies is held for parts of windows: while, of the last windows, at least two but
not all were at the limit, and all together not above it, one with so much load that made requests
wait was, if it was at the limit or the one before it: what waited then may have completed in it.
Into one of ours fall two windows of the limiter at most, so that none of ours can hold more.
It was not if more than TRAILING were in flight before it and none is after it: those that waited
in it belong to the window before."""


class Throttle(msgspec.Struct, frozen=True, gc=False):
    """A disk is held."""

    level: ThrottleLevel
    """At its base rate, at its burst rate, or at a rate of which nothing is known."""
    limit: LimitKind


def has_waiting(window: Interval, floor_s: float) -> bool:
    """Tell whether requests waited in a window, beyond `floor_s` of service each."""
    requests = window.reads + window.writes
    if window.inflight and (window.inflight > 1 or not requests):
        return True
    if not floor_s:
        return wait_s(window, 0.0) > OCCUPIED_SHARE * window.seconds
    explained_s = WAIT_S + WAIT_SHARE * requests * floor_s
    return wait_s(window, floor_s) > max(explained_s, LEAST_WAIT_SHARE * window.seconds)


def wait_s(window: Interval, floor_s: float) -> float:
    """Give the I/O-seconds that requests completed in a window had waited, service apart."""
    took_s = ((window.read_ms or 0) + (window.write_ms or 0)) / 1000
    return max(0.0, took_s - (window.reads + window.writes) * floor_s)


def throttled_at_limit(
    windows: tuple[Interval, ...],
    run: int,
    was_throttled: ThrottleLevel | None,
    limits: Limits,
    tolerance: float,
    tick_s: float,
) -> Throttle | None:
    """Tell whether a disk is held at a limit of its terms.

    In the last `run` of `windows` requests waited. The first of them is left out if there are
    others: it may hold two windows of the limiter, or what its bucket had saved. `was_held` is
    the level at which the disk was held in the window before.

    A sample at the very moment at which a limiter lets go sees part of what it lets go, another
    part each time. Such windows are uneven (0, 60, 30 for 30, 30, 30), but from one sample to a
    later one that saw as large a part, the rate is that of the limit: any of the last spans tells.
    A disk that was held still is, as long as no span is more than one window's worth off.
    """
    if not any(window.inflight for window in windows[-SEEN_WINDOWS:]):
        return None
    waiting = windows[1 - run :] if run > 1 else windows[-1:]
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
    """Tell whether any of the last spans is at a limit, and none is a whole window off it."""
    shortest = sum_recent_windows(waiting).windows
    for number in range(shortest, max(shortest, min(len(waiting), MOST_SPANS)) + 1):
        span = sum_windows(waiting[-number:])
        doubt = span.doubt(tick_s)
        if _is_at(span, least, most, tolerance, doubt):
            return True
        if abs((span.load(most) or 0.0) - 1) * number > 1 + tolerance + doubt:
            return False
    return was_throttled


def _is_at(
    span: WindowSum,
    least: tuple[Charge, ...],
    most: tuple[Charge, ...],
    tolerance: float,
    doubt: float,
) -> bool:
    """Tell whether a load is at a limit, or within the band between two."""
    reached = (span.load(least) or 0.0) * (1 + doubt) >= 1 - tolerance
    return reached and (span.load(most) or 0.0) <= 1 + tolerance + doubt


def throttled_intermittently(
    windows: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> Throttle | None:
    """Tell whether a load that varies touched a limit of the terms in its last window.

    Where there is a burst, what is above the base is no sign of a limit.
    """
    last = windows[-TOUCHED_WINDOWS:]
    if limits.burst_charges or not limits.promise_charges or len(last) < TOUCHED_WINDOWS:
        return None
    window, whole = sum_windows(last[-1:]), sum_windows(last)
    most = 1 + tolerance + whole.doubt(tick_s)
    served_the_queue = last[-2].inflight > TRAILING and not last[-1].inflight
    if (
        served_the_queue
        or (window.load(limits.promise_charges) or 0.0) < TOUCHED_LOAD
        or (whole.load(limits.throttled_charges) or 0.0) > most
    ):
        return None
    touched = []
    for each in last:
        span = sum_windows((each,))
        load, doubt = span.load(limits.promise_charges) or 0.0, span.doubt(tick_s)
        if load > TOUCHED_HIGHEST + tolerance + doubt:
            return None
        touched.append(load >= 1 - tolerance - doubt)
    varies = TOUCHED_LEAST <= sum(touched) < TOUCHED_WINDOWS
    if not varies or not any(touched[-2:]):
        return None
    return Throttle("base", binding_limit(window, limits.enforced_charges))


def throttled_at_flat_rate(windows: tuple[Interval, ...]) -> Throttle | None:
    """Tell whether a disk is held at a rate that nobody told us, by its flatness.

    `windows` are the last ones, in all of which requests waited.
    """
    last = windows[-FLAT_WINDOWS:]
    if len(last) < FLAT_WINDOWS or any(window.inflight < 2 for window in last):  # noqa: PLR2004
        return None
    span = sum_windows(last)
    took_s = sum(wait_s(window, 0.0) for window in last)
    if span.requests < ENOUGH_REQUESTS or took_s < LEAST_LATENCY_S * span.requests:
        return None
    reads = [window.reads for window in last]
    writes = [window.writes for window in last]
    requests = [read + written for read, written in zip(reads, writes, strict=True)]
    amounts = [window.read_bytes + window.written_bytes for window in last]
    even = [1 / len(last)] * len(last)
    timely = [window.seconds / span.seconds for window in last]
    for values, quantum in (
        (requests, 1.0),
        (amounts, span.bytes / span.requests),
        (reads, 1.0),
        (writes, 1.0),
    ):
        if _flat(values, even, quantum) or _flat(values, timely, quantum):
            return Throttle("unknown", "unknown")
    return None


def binding_limit(span: WindowSum, charges: tuple[Charge, ...]) -> LimitKind:
    """Tell which limit a load is nearest to: that on requests or that on bytes.

    A budget of service has both in one: the larger part names it.
    """
    fullest: LimitKind = "unknown"
    most_s = -1.0
    for charge in charges:
        requests_s = charge.read_s * span.reads + charge.write_s * span.writes
        bytes_s = charge.read_byte_s * span.read_bytes + charge.written_byte_s * span.written_bytes
        if requests_s + bytes_s > most_s:
            most_s = requests_s + bytes_s
            if charge.limit == "service":
                fullest = "iops" if requests_s >= bytes_s else "bandwidth"
            else:
                fullest = charge.limit
    return fullest


def _flat(values: list[int], shares: list[float], quantum: float) -> bool:
    """Tell whether the sum of values follows the sum of shares, which are 1 together.

    A limiter with windows of its own lets go as much in each of ours, whenever exactly we look;
    one that drips does by the time between.
    """
    total = sum(values)
    served = accumulate(values)
    line = [total * due - done for due, done in zip(accumulate(shares), served, strict=True)]
    middle = sorted(line)[OUTLIERS // 2 : -OUTLIERS // 2]
    spread = middle[-1] - middle[0]
    return total > 0 and spread <= FLAT_REQUESTS * quantum + FLAT_SHARE * total / len(values)
