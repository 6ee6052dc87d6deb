"""The verdict on each window of a disk, with its evidence.

A window has exactly one verdict:

| verdict | meaning |
|---|---|
| idle | no I/O and nothing in flight |
| unproven | the load is less than the promise and is served: the promise is not tested |
| met | the load is at or above the promise, and nothing throttles |
| throttled | a limiter makes requests wait, at the limit of the disk or at an unknown one |
| below | requests wait, deep enough for the promise to apply, and the disk gives less |
| stalled | requests are in flight and none completes |
"""

import math
from collections.abc import Callable
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
    MAX_WINDOWS,
    WindowSum,
    sum_recent_windows,
    sum_windows,
)

Verdict = Literal["idle", "unproven", "met", "throttled", "below", "stalled"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

BELOW_WINDOWS = 10
MIN_BELOW_WINDOWS = 7
"""A disk is below its promise if its rate over the last BELOW_WINDOWS is, and so is the rate of at
least this many of them."""
DEFAULT_DEPTH = 32
"""Queue depth at which a promise applies if the terms have none: providers and fio users test a
disk with it."""
DEEP_SHARE = 0.9
"""Share of the queue depth that suffices, because a sample may be taken while completed requests
are replaced."""
MAX_PIECES = 8
"""Pieces that a large request may be split into: few devices accept less than 128 KiB of 1 MiB."""
EXPECTED_COMPLETIONS = 3.0
"""Completions that must be missing before windows without completions are a stall."""
MIN_SILENT_WINDOWS = 2
"""Shortest stall: a sample just before a limiter admits requests counts none of them, and the next
sample counts twice as many."""
SILENT_WINDOWS = 5
"""Windows without completions that are a stall if the rate before is unknown."""
LOW_LOAD = 0.5
LOW_WINDOWS = 3
FEW_IN_FLIGHT = 14
"""A disk is neither throttled nor below its promise if its load was below LOW_LOAD for LOW_WINDOWS
with enough requests, or for MAX_WINDOWS, and if fewer requests are in flight than any promise
requires."""
LEARNING_LOAD = 0.8
FIRST_LEARNING_LOAD = 1.1
THROTTLED_SHARE = 0.25
"""Service times are learned from windows with a load below LEARNING_LOAD. The first window after a
break may have a load up to FIRST_LEARNING_LOAD, if its requests took at most THROTTLED_SHARE of
the time that throttled requests would have taken."""
MIN_CEILING_WINDOWS = 5
"""Windows with waiting that are needed to determine a ceiling."""
CONFIRMATION_WINDOWS = 3
"""Windows needed to confirm a limit: a varying load may have its rate in one window by chance."""
CEILING_WINDOWS = 600
"""Windows after which older ones count half."""
CEILING_CHANGE_SHARE = 0.1
"""A rate that differs from the ceiling by more than this starts another ceiling."""
CEILING_SHARE = 0.02
"""A rate that differs from the ceiling by less than this is at the ceiling."""


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen throttled, from the requests that it served then."""

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
        """Return whether a rate is that of the ceiling, in requests or in bytes."""
        return (
            abs(iops - self.iops) <= tolerance * self.iops
            or abs(bytes_per_second - self.bytes_per_second) <= tolerance * self.bytes_per_second
        )

    def plus(self, throttle: Throttle, window: Interval) -> "Ceiling":
        """Return the ceiling with one more window; windows older than a minute lose weight."""
        age = 2 if self.windows >= CEILING_WINDOWS else 1
        return Ceiling(
            throttle,
            self.windows // age + 1,
            self.seconds / age + window.seconds,
            self.requests // age + window.reads + window.writes,
            self.bytes // age + window.read_bytes + window.written_bytes,
        )


class DetectorState(msgspec.Struct, frozen=True, gc=False):
    """State of the detector after a window, for the verdict on the next."""

    windows: tuple[Interval, ...] = ()
    """The last windows, without a break."""
    waiting_windows: int = 0
    """How many of them, counted from the last, had requests that waited."""
    silent_windows: int = 0
    """Windows since a request completed, with requests in flight."""
    requests_per_window: float = 0.0
    """Requests per window before those; 0 if none ever completed."""
    service: ServiceTime = ServiceTime()
    ceiling: Ceiling | None = None
    throttled_level: ThrottleLevel | None = None
    """Level of the limit in the last window; None if requests did not wait at a limit."""
    low_windows: int = 0
    """Consecutive windows, up to the last, with a low load."""
    throttled_windows: int = 0
    """Consecutive windows, up to the last, throttled at `throttled_level`."""


class WindowVerdict(msgspec.Struct, frozen=True, gc=False):
    """The verdict on one window, with its evidence."""

    verdict: Verdict
    throttle: Throttle | None = None
    """The limit, if throttled."""
    wait_s: float = 0.0
    """Throttle wait in I/O-seconds. The kernel counts the time of a request on completion, which
    may be in the window after the last throttled one."""
    is_confirmed: bool = False
    """The disk was throttled at that level for several windows, so it is not by chance."""


def classify(
    detector: DetectorState, window: Interval, limits: Limits, tolerance: float, tick_s: float
) -> tuple[DetectorState, WindowVerdict]:
    """Return the state of the detector after a window, and the verdict on that window."""
    completed = window.reads + window.writes
    if not completed and not window.inflight:
        return after_gap(detector), WindowVerdict("idle")
    windows = (*detector.windows[1 - MAX_WINDOWS :], window)
    if not completed:
        silent, per_window = detector.silent_windows + 1, detector.requests_per_window
        if _is_stall(silent, per_window):
            stalled = DetectorState((), 0, silent, per_window, detector.service, detector.ceiling)
            return stalled, WindowVerdict("stalled")
    else:
        silent = 0
        span = sum_recent_windows(windows)
        per_window = span.requests / span.windows
    load = load_of(window, limits.promise_charges)
    low = detector.low_windows + 1 if load is not None and load < LOW_LOAD else 0
    data = window.without_flushes()
    service = _service(detector, window, limits)
    is_waiting = has_waiting(data, service.shortest_s)
    trailing_s = wait_s(data, service.shortest_s) if detector.throttled_level else 0.0
    if not (is_waiting or (detector.throttled_level and window.inflight)):
        not_waiting = DetectorState(
            windows, 0, silent, per_window, service, detector.ceiling, low_windows=low
        )
        verdict = _verdict_without_throttling(data, limits, tolerance)
        return not_waiting, WindowVerdict(verdict, wait_s=trailing_s)
    run = min(detector.waiting_windows + 1, len(windows))
    if window.inflight < FEW_IN_FLIGHT and (
        low >= MAX_WINDOWS or (low >= LOW_WINDOWS and completed >= ENOUGH_REQUESTS)
    ):  # far from any limit: neither throttled nor below
        far = DetectorState(
            windows, run, silent, per_window, service, detector.ceiling, low_windows=low
        )
        return far, WindowVerdict("unproven", wait_s=trailing_s)
    waiting = windows[-run:]
    was_throttled = detector.throttled_level if window.inflight else None
    counts = _counts(windows)
    throttle, counted = _first(
        lambda each: throttled_at_limit(each, run, was_throttled, limits, tolerance, tick_s),
        counts,
    )
    throttled_level = throttle.level if throttle is not None and is_waiting else None
    if throttle is None:
        throttle, counted = _first(
            lambda each: throttled_intermittently(each, limits, tolerance, tick_s), counts
        )
    flat = None
    if throttle is None:
        flat, counted = _first(lambda each: throttled_at_flat_rate(each[-run:]), counts)
    is_below = throttle is None and _is_below(waiting, limits, tolerance, tick_s)
    if not limits.promise_charges:
        throttle = flat or _at_ceiling(detector.ceiling, counted[-run:], tick_s)
    ceiling = _ceiling(detector.ceiling, throttle or flat, counted[-run:])
    throttled_windows = (
        0
        if throttled_level is None
        else 1 + (detector.throttled_windows if throttled_level == detector.throttled_level else 0)
    )
    busy = DetectorState(
        windows, run, silent, per_window, service, ceiling, throttled_level, low, throttled_windows
    )
    if throttle is not None:
        is_confirmed = throttled_windows >= CONFIRMATION_WINDOWS
        waited_s = wait_s(counted[-1], service.shortest_s)
        return busy, WindowVerdict("throttled", throttle, waited_s, is_confirmed)
    verdict = _verdict_without_throttling(data, limits, tolerance)
    return busy, WindowVerdict("below" if is_below else verdict, wait_s=trailing_s)


def _counts(windows: tuple[Interval, ...]) -> tuple[tuple[Interval, ...], ...]:
    """Return the windows as often as their data writes may be counted: both ends of the range.

    A limiter charges data writes only. Whichever end it explains is believed.
    """
    if not any(window.flushes for window in windows):
        return (windows,)
    return tuple(window.without_flushes() for window in windows), windows


def _first(
    detect: Callable[[tuple[Interval, ...]], Throttle | None],
    counts: tuple[tuple[Interval, ...], ...],
) -> tuple[Throttle | None, tuple[Interval, ...]]:
    """Return the first limit that is detected, and the windows in which it is; else no limit."""
    for windows in counts:
        throttle = detect(windows)
        if throttle is not None:
            return throttle, windows
    return None, counts[-1]


def _is_stall(silent_windows: int, per_window: float) -> bool:
    """Return whether windows without completions are more than chance explains."""
    if not per_window:
        return silent_windows >= SILENT_WINDOWS
    missing = silent_windows * per_window
    return silent_windows >= MIN_SILENT_WINDOWS and missing >= EXPECTED_COMPLETIONS


def after_gap(detector: DetectorState) -> DetectorState:
    """Return the state that remains valid after a gap, or after the disk was idle."""
    return DetectorState(service=detector.service, ceiling=detector.ceiling)


def _service(detector: DetectorState, window: Interval, limits: Limits) -> ServiceTime:
    """Return the service time, learned from this window if none of its requests was throttled.

    That is a window with a low load after one without waiting, or the first after a break, when
    requests that a limiter makes wait are still in flight. Windows with flushes are left out: how
    many of their writes had data is not known.
    """
    requests = window.reads + window.writes
    if (
        detector.waiting_windows
        or not requests
        or window.flushes
        or window.read_ms is None
        or window.write_ms is None
    ):
        return detector.service
    took_ms = window.read_ms + window.write_ms
    load = load_of(window, limits.burst_charges or limits.promise_charges)
    if load is None:
        may_be_throttled = window.inflight > 0
    elif detector.windows:
        may_be_throttled = load >= LEARNING_LOAD
    else:  # by Little's law, throttled requests would take this long in total
        throttled_ms = window.inflight * window.seconds * 1000
        may_be_throttled = load > FIRST_LEARNING_LOAD or (
            load >= LEARNING_LOAD and took_ms > THROTTLED_SHARE * throttled_ms
        )
    return detector.service if may_be_throttled else detector.service.plus(requests, took_ms)


def _verdict_without_throttling(window: Interval, limits: Limits, tolerance: float) -> Verdict:
    """Return "met" if the load reached the promise, else "unproven"."""
    load = load_of(window, limits.promise_charges)
    least = limits.promised_shares[-1].share if limits.promised_shares else 1.0
    if load is None or load < least * (1 - tolerance):
        return "unproven"
    share = _share_of_promise(sum_windows((window,)), limits)
    return "met" if share >= 1 - tolerance else "unproven"


def _share_of_promise(span: WindowSum, limits: Limits) -> float:
    """Return the rate as a share of the promise for requests of this size."""
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
    """Return whether a load that the promise applies to was served below it for a second."""
    last = waiting[-BELOW_WINDOWS:]
    if len(last) < BELOW_WINDOWS or not limits.promise_charges:
        return False
    span = sum_windows(last)
    depth = _needed_depth(span, limits)
    if depth is None or sum(window.inflight for window in last) < DEEP_SHARE * depth * len(last):
        return False
    below = sum(
        1 for window in last if _share_of_promise(sum_windows((window,)), limits) < 1 - tolerance
    )
    share = _share_of_promise(span, limits)
    return below >= MIN_BELOW_WINDOWS and share < 1 - tolerance - span.uncertainty(tick_s)


def _needed_depth(span: WindowSum, limits: Limits) -> int | None:
    """Return the queue depth at which a promise applies; None if none applies to this size.

    A promise by request size does not cover larger requests, until they are so large that the
    promise of bandwidth applies. The kernel splits large requests and merges sequential ones, so
    pieces of them count, if as many bytes are in flight as the conditions require.
    """
    request_bytes = span.bytes / max(1, span.requests)
    iops, bandwidth = limits.iops_conditions, limits.bandwidth_conditions
    if bandwidth is not None and request_bytes * MAX_PIECES >= bandwidth.request_bytes:
        pieces = max(1.0, bandwidth.request_bytes / request_bytes)
        return math.ceil((bandwidth.queue_depth or DEFAULT_DEPTH) * pieces)
    if limits.promised_shares and request_bytes > limits.promised_shares[-1].request_bytes:
        return None
    return (iops.queue_depth if iops is not None else None) or DEFAULT_DEPTH


def _at_ceiling(
    ceiling: Ceiling | None, waiting: tuple[Interval, ...], tick_s: float
) -> Throttle | None:
    """Return the limit of the ceiling if a load, even a shallow one, is served at its rate."""
    if ceiling is None:
        return None
    span = sum_recent_windows(waiting[1:] or waiting)
    rates = span.requests / span.seconds, span.bytes / span.seconds
    return (
        ceiling.throttle
        if ceiling.is_near(*rates, CEILING_SHARE + span.uncertainty(tick_s))
        else None
    )


def _ceiling(
    before: Ceiling | None, throttle: Throttle | None, waiting: tuple[Interval, ...]
) -> Ceiling | None:
    """Return the ceiling with the window before the last, or a new one if the rate has changed.

    The last window is left out because the load may have ended in it. The rate is compared without
    the highest and the lowest windows, which a late sample may have distorted.
    """
    settled = waiting[:-1]
    if throttle is None or len(settled) < MIN_CEILING_WINDOWS:
        return before
    mean_s = sum(window.seconds for window in settled) / len(settled)
    iops = _trimmed_mean([window.reads + window.writes for window in settled]) / mean_s
    rate = _trimmed_mean([window.read_bytes + window.written_bytes for window in settled]) / mean_s
    if before is not None and before.is_near(iops, rate, CEILING_CHANGE_SHARE):
        return before.plus(throttle, settled[-1])
    span = sum_recent_windows(settled)
    return Ceiling(throttle, span.windows, span.seconds, span.requests, span.bytes)


def _trimmed_mean(amounts: list[int]) -> float:
    trimmed = 1 + len(amounts) // MAX_WINDOWS
    kept = sorted(amounts)[trimmed:-trimmed]
    return sum(kept) / len(kept)
