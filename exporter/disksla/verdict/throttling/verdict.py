"""The verdict on each window of a disk."""

from typing import Literal, get_args

import msgspec

from disksla.base.units import MIB
from disksla.kernel.procfs import CloseSample
from disksla.promise.catalogue import Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.throttling.bucket import MEMORY_S
from disksla.verdict.throttling.observation import BUSY_SHARE, Observation, observe
from disksla.verdict.throttling.pauses import LONGEST_WINDOW_S
from disksla.verdict.throttling.promise import is_below_promise, is_limited_below, tested_promise
from disksla.verdict.throttling.second import Second, second_of
from disksla.verdict.throttling.signs import SIGNS, FoundLimiter, Sign, find, is_as_when_looked_at
from disksla.verdict.throttling.throttle import UNKNOWN_LIMIT, Ceiling, MachineWindow, Throttle

Verdict = Literal["idle", "unproven", "met", "throttled", "below", "stalled"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
LIMITED_VERDICTS: tuple[Verdict, ...] = ("throttled", "below", "stalled")
"""Requests waited for the disk, so a load that waits for them may ask for more than was served."""

FAR_SHARE, LEAST_INFLIGHT = 0.25, 0.5
"""A disk that serves less than this share of its promise, with fewer requests than this in flight
on average, is not looked at closer."""
SHARED_SILENCE_S = 3.0
SHARED_BYTES = 16 * MIB
"""A request of each of sixteen clients: NFS has them of up to 1 MiB."""


class WindowVerdict(msgspec.Struct, frozen=True, gc=False):
    """The verdict on one window, with its evidence."""

    verdict: Verdict
    throttle: Throttle | None = None
    """The limit, if throttled."""
    wait_s: float = 0.0
    """Throttle wait in I/O-seconds: the time that requests which completed took, as far as the
    disk was throttled."""
    throttled_share: float = 1.0
    """Share of the window in which requests waited, if throttled."""
    otherwise: Verdict = "unproven"
    """Verdict on the rest of the window, if throttled."""
    instead: Verdict = "unproven"
    """Verdict on all of it where the provider counts that nothing throttled it."""
    is_seen: bool = False
    """Throttled, and the limiter is seen by its pauses, at a rate that is certain."""


class DetectorState(msgspec.Struct, frozen=True, gc=False):
    """State of the detector after a window."""

    seconds: tuple[Second, ...] = ()
    """The last seconds that are decided, within MEMORY_S."""
    pending: tuple[Observation, ...] = ()
    """Windows that are not decided: those of the present second, and silent ones before it."""
    close: CloseSample | None = None
    """The last close sample, if it is of the last window."""
    silent_s: float = 0.0
    """Time since a request completed, with requests in flight."""
    busy_since_s: float | None = None
    """Since when requests were in flight for BUSY_SHARE of each second, or since the load changed;
    None if they were not."""
    ceiling: Ceiling | None = None
    """The rate at which the disk was throttled last. No verdict reads it."""
    is_explained: bool = False
    """A closer look would show nothing more of the last second: the disk was far below its limits
    and served its requests at once, or it was at one of which it is known that it is even."""

    def pauses_since(self, from_s: float) -> int:
        """Return how many pauses that may be those of a limiter ended later, or have not ended."""
        return sum(
            pause.steps > 1 and pause.end_s > from_s
            for second in self.seconds
            for pause in second.pauses
        )


def classify(
    detector: DetectorState,
    window: Interval,
    close: tuple[CloseSample, ...],
    limits: Limits,
    tolerance: float,
    machine: MachineWindow = MachineWindow(),  # noqa: B008 -- frozen
    signs: frozenset[Sign] = SIGNS,
) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state of the detector after a window, and the verdicts that are decided now.

    Windows are decided when their second ends, the oldest first. Those after the last completion
    wait for the next, for `longest_silence_s` at most.
    """
    silent_s = detector.silent_s + window.seconds if _is_silent(window) else 0.0
    if _is_idle(window) and not detector.pending:
        return _after_idle(detector), (WindowVerdict("idle"),)
    observation = observe(window, detector.close, close)
    pending = (*detector.pending, observation)
    state = msgspec.structs.replace(
        detector,
        pending=pending,
        close=close[-1] if close else None,
        silent_s=silent_s,
        busy_since_s=_busy_since(detector, window),
    )
    if silent_s > longest_silence_s(limits):
        return _stalled(state)
    # A second ends at a whole number, so that any two detectors judge the same windows together.
    if len(pending) == 1 or int(window.end_s) == int(pending[-2].window.end_s):
        return state, ()
    return _decided(state, limits, tolerance, machine, signs)


def longest_silence_s(limits: Limits) -> float:
    """Return for how long requests may be in flight and none be done, unless the disk is stalled.

    A limiter has windows of up to a second. A storage that others use, too, may take longer for a
    large request, and for theirs in between: as long as its limits let SHARED_BYTES pass.
    """
    if limits.shared_by is None:
        return LONGEST_WINDOW_S
    rates = (limits.rates.read_bytes_per_second, limits.rates.write_bytes_per_second)
    return max([SHARED_SILENCE_S, *(SHARED_BYTES / rate for rate in rates if rate)])


def after_gap(detector: DetectorState) -> DetectorState:
    """Return the state that remains valid after a gap."""
    return DetectorState(ceiling=detector.ceiling)


def _after_idle(detector: DetectorState) -> DetectorState:
    return msgspec.structs.replace(detector, close=None, silent_s=0.0, busy_since_s=None)


def _busy_since(detector: DetectorState, window: Interval) -> float | None:
    """Return since when requests are in flight for much of the time."""
    is_busy = window.busy_ms >= 1000 * BUSY_SHARE * window.seconds
    if is_busy or (window.inflight_before and window.inflight):
        return detector.busy_since_s or window.end_s
    return detector.busy_since_s


def _stalled(state: DetectorState) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state after windows in which nothing completed for too long, and all verdicts."""
    stalled_from_s = state.pending[-1].window.end_s - state.silent_s
    verdicts = tuple(
        WindowVerdict("stalled" if each.window.end_s > stalled_from_s + 1e-6 else "unproven")
        for each in state.pending
    )
    return msgspec.structs.replace(state, pending=()), verdicts


def _decided(
    state: DetectorState,
    limits: Limits,
    tolerance: float,
    machine: MachineWindow,
    signs: frozenset[Sign],
) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state after the windows of a second that has ended, and their verdicts."""
    *ended, next_one = state.pending
    silent: list[Observation] = []
    while ended and state.silent_s and _is_silent(ended[-1].window):
        silent.insert(0, ended.pop())
    if not ended:
        return state, ()
    number = int(ended[-1].window.end_s)
    kept = tuple(each for each in state.seconds if each.number > number - MEMORY_S)
    second = second_of(number, tuple(ended), kept, limits)
    seconds = (*kept, second)
    if machine.group is not None and machine.group.second != number:
        machine = msgspec.structs.replace(machine, group=None)
    is_busy = second.busy_share >= BUSY_SHARE
    found = find(seconds, limits, tolerance, machine.group, signs) if is_busy else None
    verdicts = _verdicts(second, found, limits, tolerance, machine)
    after = msgspec.structs.replace(
        state,
        seconds=_without_unneeded_windows(seconds),
        pending=(*silent, next_one),
        busy_since_s=_looked_at_since(state, seconds) if is_busy else None,
        ceiling=_ceiling(state, found),
        is_explained=_is_explained(second, found, limits),
    )
    if _is_idle(next_one.window):  # it is the only one that is pending
        return msgspec.structs.replace(_after_idle(after), pending=()), (
            *verdicts,
            WindowVerdict("idle"),
        )
    return after, verdicts


def _without_unneeded_windows(seconds: tuple[Second, ...]) -> tuple[Second, ...]:
    """Return the seconds, the third last without its windows if no sign needs them any more.

    Signs need those within LONGEST_WINDOW_S of a pause, and those that were looked at.
    """
    third = [each._replace(observations=()) for each in seconds[-3:-2] if not each.is_close]
    if not third or any(each.pauses for each in seconds[-5:]):
        return seconds
    return (*seconds[:-3], *third, *seconds[-2:])


def _looked_at_since(state: DetectorState, seconds: tuple[Second, ...]) -> float | None:
    """Return since when a busy disk is busy, or since when its load is another."""
    return state.busy_since_s if is_as_when_looked_at(seconds) else state.pending[-1].window.end_s


def _is_silent(window: Interval) -> bool:
    return window.inflight > 0 and not (window.requests or window.has_flushes or window.discards)


def _is_idle(window: Interval) -> bool:
    return not (window.inflight or window.requests or window.has_flushes or window.discards)


def _is_below(
    second: Second,
    found: FoundLimiter | None,
    limits: Limits,
    tolerance: float,
    machine: MachineWindow,
) -> bool:
    """Return whether a disk gave less than is promised in a second.

    One whose machine is at its limit did not. If a limiter is seen, no queue depth is needed, but
    it has to be the disk's own.
    """
    if machine.group is not None and machine.group.throttle is not None:
        return False
    if found is None:
        windows = [each.window for each in second.observations]
        return is_below_promise(windows, second.served, limits, tolerance)
    if found.throttle != UNKNOWN_LIMIT or found.served is None or not machine.is_known:
        return False
    return all(is_limited_below(served, limits) for served in (found.served, second.served))


def _verdicts(
    second: Second,
    found: FoundLimiter | None,
    limits: Limits,
    tolerance: float,
    machine: MachineWindow,
) -> tuple[WindowVerdict, ...]:
    """Return the verdict on each window of a second."""
    windows = [each.window for each in second.observations]
    if _is_below(second, found, limits, tolerance, machine):
        return tuple(WindowVerdict("idle" if _is_idle(each) else "below") for each in windows)
    if found is None:
        return tuple(_verdict(window, 0.0, None, limits, tolerance) for window in windows)
    is_else_below = _is_below(second, None, limits, tolerance, machine)
    return tuple(
        _verdict(window, seconds, found, limits, tolerance, is_else_below=is_else_below)
        for window, seconds in zip(windows, found.throttled_s, strict=True)
    )


def _verdict(
    window: Interval,
    throttled_s: float,
    found: FoundLimiter | None,
    limits: Limits,
    tolerance: float,
    *,
    is_else_below: bool = False,
) -> WindowVerdict:
    data = window.without_flushes()
    otherwise: Verdict = "idle"
    if not _is_idle(window):
        otherwise = tested_promise(data, limits, tolerance)
    if found is None or not throttled_s:
        return WindowVerdict(otherwise)
    share = min(1.0, throttled_s / window.seconds)
    return WindowVerdict(
        verdict="throttled",
        throttle=found.throttle,
        wait_s=share * data.took_s,
        throttled_share=share,
        otherwise=otherwise,
        instead="below" if is_else_below and otherwise != "idle" else otherwise,
        is_seen=found.sign == "pauses" and found.is_certain,
    )


def _is_explained(second: Second, found: FoundLimiter | None, limits: Limits) -> bool:
    """Return whether a closer look would show nothing more of a second."""
    if found is not None:
        return found.sign == "bucket" and limits.limiter.kind == "even"
    served = second.served.without_flushes()
    load = load_of(served, limits.promise_charges)
    # A limiter far below the promise serves as little, but requests wait for it.
    is_waiting = served.took_s >= LEAST_INFLIGHT * served.seconds
    return load is not None and load < FAR_SHARE and not is_waiting


def _ceiling(state: DetectorState, found: FoundLimiter | None) -> Ceiling | None:
    """Return the ceiling after a second; the last one stays where no rate of this one is known."""
    if found is None or found.served is None:
        return state.ceiling
    served = found.served
    iops = served.requests / served.seconds if found.is_certain else None
    before = None if state.ceiling is None else state.ceiling.last_iops
    return Ceiling(found.throttle, iops, served.bytes / served.seconds, found.window_s, before)
