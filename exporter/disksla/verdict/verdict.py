"""The verdict on each window of a disk, with its evidence.

Exactly one of:

| verdict | meaning |
|---|---|
| idle | no I/O and nothing in flight |
| unproven | the load asks for less than the promise and is served: nothing can be said |
| met | load at or above the promise, and the disk is not held back |
| throttled | the disk is held at its limit while requests wait |
| below | requests wait, deep enough for the promise to apply, and the disk gives less |
| stalled | requests in flight and nothing completes |
"""

import math
from typing import Literal, get_args

import msgspec

from disksla.limits import Limits, promised_share
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.service_time import ServiceTime
from disksla.verdict.throttling import (
    Throttle,
    ThrottleLevel,
    has_waiting,
    throttled_at_flat_rate,
    throttled_at_limit,
    throttled_intermittently,
    wait_s,
)
from disksla.verdict.window import (
    ENOUGH_REQUESTS,
    MOST_WINDOWS,
    WindowSum,
    sum_recent_windows,
    sum_windows,
)

Verdict = Literal["idle", "unproven", "met", "throttled", "below", "stalled"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

BELOW_WINDOWS = 10
BELOW_MOST = 7
"""So many of the last windows have to be below the promise, and all of them together."""
USUAL_DEPTH = 32
"""Requests in flight at which providers and fio's users test a disk, where terms say nothing."""
DEEP_SHARE = 0.9
"""A queue of 32 is sometimes seen while some requests are being replaced."""
MOST_PIECES = 8
"""Into which a large request is split: few devices take less than 128 KiB of 1 MiB at once."""
EXPECTED_COMPLETIONS = 3.0
"""So many requests have to be missing before silence is a stall."""
LEAST_SILENT = 2
"""A sample just before a limiter lets go sees nothing of it; the next one sees twice as much."""
SILENT_WINDOWS = 5
"""Silence so long is a stall of a disk of which nothing can be expected yet."""
LOW_LOAD = 0.5
LOW_WINDOWS = 3
FEW = 14
"""With so low a load for so long, and fewer requests in flight than any promise asks for, a disk
is neither held nor below its promise."""
LITTLE_LOAD = 0.8
FIRST_LOAD = 1.1
SHORT_SHARE = 0.25
"""What has to hold of a window before service times are learned from it."""
CEILING_LEAST = 5
"""Windows of waiting before a rate is taken for a ceiling."""
PROOF_WINDOWS = 3
"""A load that varies may have the rate of a limit in one window by chance."""
CEILING_WINDOWS = 600
CEILING_CHANGE_SHARE = 0.1
"""A rate that is so far from the ceiling begins another one."""
CEILING_SHARE = 0.02
"""A disk held at a rate this near to its ceiling is held at the ceiling."""


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen held, from what was served while it was."""

    throttle: Throttle
    windows: int
    seconds: float
    requests: int
    bytes: int

    @property
    def iops(self) -> float:
        """Reads and writes per second."""
        return self.requests / self.seconds

    @property
    def bytes_per_second(self) -> float:
        """Bytes per second, read and written."""
        return self.bytes / self.seconds

    def is_near(self, iops: float, bytes_per_second: float, tolerance: float) -> bool:
        """Tell whether this is the rate, in requests or in bytes."""
        return (
            abs(iops - self.iops) <= tolerance * self.iops
            or abs(bytes_per_second - self.bytes_per_second) <= tolerance * self.bytes_per_second
        )

    def plus(self, throttle: Throttle, window: Interval) -> "Ceiling":
        """Add a window; what is older than a minute fades."""
        age = 2 if self.windows >= CEILING_WINDOWS else 1
        return Ceiling(
            throttle,
            self.windows // age + 1,
            self.seconds / age + window.seconds,
            self.requests // age + window.reads + window.writes,
            self.bytes // age + window.read_bytes + window.written_bytes,
        )


class DetectorState(msgspec.Struct, frozen=True, gc=False):
    """What earlier windows mean for the verdict on the next."""

    windows: tuple[Interval, ...] = ()
    """The last ones, without a break."""
    run: int = 0
    """In how many of them, up to the last, requests waited."""
    silent: int = 0
    """Windows since a request completed, while some were in flight."""
    requests_per_window: float = 0.0
    """That completed before the silence; 0 if none ever did."""
    service: ServiceTime = ServiceTime()
    """How long requests take of themselves."""
    ceiling: Ceiling | None = None
    throttled_level: ThrottleLevel | None = None
    """At which level, if requests waited at a limit in the last one."""
    low: int = 0
    """In how many windows, up to the last, the load was low."""
    throttled_windows: int = 0
    """In how many windows, up to the last, the disk was held at that level."""


class WindowVerdict(msgspec.Struct, frozen=True, gc=False):
    """What is said of one window."""

    verdict: Verdict
    throttle: Throttle | None = None
    """At which limit, if throttled."""
    wait_s: float = 0.0
    """I/O-seconds that throttling added. The kernel tells of them when a request completes, which
    may be in the window after the last in which the disk was held."""
    is_confirmed: bool = False
    """The disk was held at that level for several windows: that is no chance any more."""


def classify(
    detector: DetectorState, window: Interval, limits: Limits, tolerance: float, tick_s: float
) -> tuple[DetectorState, WindowVerdict]:
    """Give the verdict on a window, and what it means for the next."""
    completed = window.reads + window.writes
    if not completed and not window.inflight:
        return after_gap(detector), WindowVerdict("idle")
    windows = (*detector.windows[1 - MOST_WINDOWS :], window)
    if not completed:
        silent, per_window = detector.silent + 1, detector.requests_per_window
        if _is_stall(silent, per_window):
            stuck = DetectorState((), 0, silent, per_window, detector.service, detector.ceiling)
            return stuck, WindowVerdict("stalled")
    else:
        silent = 0
        span = sum_recent_windows(windows)
        per_window = span.requests / span.windows
    load = load_of(window, limits.promise_charges)
    low = detector.low + 1 if load is not None and load < LOW_LOAD else 0
    service = _service(detector, window, limits)
    waiting_shows = has_waiting(window, service.floor_s)
    waited = wait_s(window, service.floor_s)
    trailing_s = waited if detector.throttled_level else 0.0
    if not (waiting_shows or (detector.throttled_level and window.inflight)):
        calm = DetectorState(windows, 0, silent, per_window, service, detector.ceiling, low=low)
        return calm, WindowVerdict(_unhindered(window, load, limits, tolerance), wait_s=trailing_s)
    run = min(detector.run + 1, len(windows))
    if window.inflight < FEW and (
        low >= MOST_WINDOWS or (low >= LOW_WINDOWS and completed >= ENOUGH_REQUESTS)
    ):  # far from any limit: nothing of what follows can be
        far = DetectorState(windows, run, silent, per_window, service, detector.ceiling, low=low)
        return far, WindowVerdict("unproven", wait_s=trailing_s)
    waiting = windows[-run:]
    was_throttled = detector.throttled_level if window.inflight else None
    throttle = throttled_at_limit(windows, run, was_throttled, limits, tolerance, tick_s)
    throttled_level = throttle.level if throttle is not None and waiting_shows else None
    throttle = throttle or throttled_intermittently(windows, limits, tolerance, tick_s)
    flat = throttled_at_flat_rate(waiting) if throttle is None else None
    is_below = throttle is None and _is_below(waiting, limits, tolerance, tick_s)
    if not limits.promise_charges:
        throttle = flat or _at_ceiling(detector.ceiling, waiting, tick_s)
    ceiling = _ceiling(detector.ceiling, throttle or flat, waiting)
    throttled_windows = (
        0
        if throttled_level is None
        else 1 + (detector.throttled_windows if throttled_level == detector.throttled_level else 0)
    )
    busy = DetectorState(
        windows, run, silent, per_window, service, ceiling, throttled_level, low, throttled_windows
    )
    if throttle is not None:
        is_confirmed = throttled_windows >= PROOF_WINDOWS
        return busy, WindowVerdict("throttled", throttle, waited, is_confirmed)
    unhindered = _unhindered(window, load, limits, tolerance)
    return busy, WindowVerdict("below" if is_below else unhindered, wait_s=trailing_s)


def _is_stall(silent: int, per_window: float) -> bool:
    """Tell whether nothing completed for longer than can be by chance."""
    if not per_window:
        return silent >= SILENT_WINDOWS
    return silent >= LEAST_SILENT and silent * per_window >= EXPECTED_COMPLETIONS


def after_gap(detector: DetectorState) -> DetectorState:
    """Give what is left of the past after a gap, or after the disk slept."""
    return DetectorState(service=detector.service, ceiling=detector.ceiling)


def _service(detector: DetectorState, window: Interval, limits: Limits) -> ServiceTime:
    """Learn how long requests take of themselves, where none of them can have been held.

    That is a window with little load, after one in which nothing waited, or the first after a
    break: what a limiter holds then is still in flight.
    """
    requests = window.reads + window.writes
    if detector.run or not requests or window.read_ms is None or window.write_ms is None:
        return detector.service
    took_ms = window.read_ms + window.write_ms
    load = load_of(window, limits.burst_charges or limits.promise_charges)
    if load is None:
        can_be_held = window.inflight > 0
    elif detector.windows:
        can_be_held = load >= LITTLE_LOAD
    else:  # by Little's law, requests held from now on take so much longer
        held_ms = window.inflight * window.seconds * 1000
        can_be_held = load > FIRST_LOAD or (
            load >= LITTLE_LOAD and took_ms > SHORT_SHARE * held_ms
        )
    return detector.service if can_be_held else detector.service.plus(requests, took_ms)


def _unhindered(window: Interval, load: float | None, limits: Limits, tolerance: float) -> Verdict:
    """Give the verdict on a disk that is not held: it reached what was promised, or not."""
    least = limits.promised_shares[-1].share if limits.promised_shares else 1.0
    if load is None or load < least * (1 - tolerance):
        return "unproven"
    kept = _kept_share(sum_windows((window,)), limits)
    return "met" if kept >= 1 - tolerance else "unproven"


def _kept_share(span: WindowSum, limits: Limits) -> float:
    """Give what was served as a share of what is promised to requests of this size."""
    if not span.requests:
        return 0.0
    share = promised_share(limits.promised_shares, span.bytes // span.requests)
    return max(
        (span.load((charge,)) or 0.0) / (share if charge.limit == "iops" else 1.0)
        for charge in limits.promise_charges
    )


def _is_below(
    waiting: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> bool:
    """Tell whether a load that the promise applies to has been given less for a second."""
    last = waiting[-BELOW_WINDOWS:]
    if len(last) < BELOW_WINDOWS or not limits.promise_charges:
        return False
    span = sum_windows(last)
    depth = _needed_depth(span, limits)
    if depth is None or sum(window.inflight for window in last) < DEEP_SHARE * depth * len(last):
        return False
    low = sum(1 for window in last if _kept_share(sum_windows((window,)), limits) < 1 - tolerance)
    kept = _kept_share(span, limits)
    return low >= BELOW_MOST and kept < 1 - tolerance - span.doubt(tick_s)


def _needed_depth(span: WindowSum, limits: Limits) -> int | None:
    """Give the requests in flight at which the promise holds; None if it does not for this size.

    A promise by request size says nothing of larger requests, until they are so large that the
    promise of bandwidth holds. The kernel splits large requests, and merges those of a stream: so
    pieces of them will do, if as much is in flight as the conditions ask for.
    """
    request_bytes = span.bytes / max(1, span.requests)
    iops, bandwidth = limits.iops_conditions, limits.bandwidth_conditions
    if bandwidth is not None and request_bytes * MOST_PIECES >= bandwidth.request_bytes:
        pieces = max(1.0, bandwidth.request_bytes / request_bytes)
        return math.ceil((bandwidth.queue_depth or USUAL_DEPTH) * pieces)
    if limits.promised_shares and request_bytes > limits.promised_shares[-1].request_bytes:
        return None
    return (iops.queue_depth if iops is not None else None) or USUAL_DEPTH


def _at_ceiling(
    ceiling: Ceiling | None, waiting: tuple[Interval, ...], tick_s: float
) -> Throttle | None:
    """Tell whether a shallow load is served at the rate at which a deeper one was held."""
    if ceiling is None:
        return None
    span = sum_recent_windows(waiting[1:] or waiting)
    rates = span.requests / span.seconds, span.bytes / span.seconds
    return (
        ceiling.throttle if ceiling.is_near(*rates, CEILING_SHARE + span.doubt(tick_s)) else None
    )


def _ceiling(
    known: Ceiling | None, throttle: Throttle | None, waiting: tuple[Interval, ...]
) -> Ceiling | None:
    """Add the window before the last to the ceiling, or begin another if the rate is another.

    The last window may be that in which a load ended. Whether the rate is another is told by the
    last windows without the highest and the lowest of them, which a late sample may have spoilt.
    """
    settled = waiting[:-1]
    if throttle is None or len(settled) < CEILING_LEAST:
        return known
    mean_s = sum(window.seconds for window in settled) / len(settled)
    iops = _typical([window.reads + window.writes for window in settled]) / mean_s
    rate = _typical([window.read_bytes + window.written_bytes for window in settled]) / mean_s
    if known is not None and known.is_near(iops, rate, CEILING_CHANGE_SHARE):
        return known.plus(throttle, settled[-1])
    span = sum_recent_windows(settled)
    return Ceiling(throttle, span.windows, span.seconds, span.requests, span.bytes)


def _typical(amounts: list[int]) -> float:
    left_out = 1 + len(amounts) // MOST_WINDOWS
    middle = sorted(amounts)[left_out:-left_out]
    return sum(middle) / len(middle)
