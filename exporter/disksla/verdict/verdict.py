"""The verdict on each window of a disk, with its evidence."""

import math
from typing import Literal, get_args

import msgspec

from disksla.limits import Limits
from disksla.verdict.burst_depth import ServedCurve, with_burst
from disksla.verdict.ceiling import Ceiling, ceiling_after
from disksla.verdict.constant_rate import NO_LINE, Line
from disksla.verdict.finding import NOTHING_FOUND, Finding, Rules, Seen, find
from disksla.verdict.interval import Interval, WriteCounts
from disksla.verdict.known_limit import (
    exceeds_limit,
    is_far_below,
    stays_at_limit,
    throttled_charges,
)
from disksla.verdict.limiter_window import is_due, window_length_s
from disksla.verdict.parameters import P
from disksla.verdict.promise import tested_promise
from disksla.verdict.service_time import (
    ServiceTime,
    has_long_wait,
    has_waiting,
    is_busy,
    is_one_at_most,
    is_single,
    most_in_service,
    took_s,
    wait_s,
)
from disksla.verdict.throttle import (
    MACHINE_LIMITS,
    UNKNOWN_LIMIT,
    LimitKind,
    SharedThrottle,
    SharedWindow,
    Throttle,
)
from disksla.verdict.usual_time import UsualTime

Verdict = Literal["idle", "unproven", "met", "throttled", "below", "stalled"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


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
    throttled_share: float = 1.0
    """Share of the window in which requests waited, if throttled."""
    otherwise: Verdict = "unproven"
    """Verdict on the rest of the window, if throttled."""
    is_by_provider: bool = False
    """Below the promise, if the provider did not count a limit of the machine."""


_UNPROVEN = WindowVerdict("unproven")


class DetectorState(msgspec.Struct, frozen=True, gc=False):
    """State of the detector after a window, for the verdict on the next."""

    releases: tuple[Interval, ...] = ()
    """The last releases, without a break."""
    data: tuple[Interval, ...] = ()
    """The same without flushes."""
    flushes: int = 0
    """How many of them, counted from the last, may differ."""
    inflight: int | None = None
    """Requests in flight at the end of the last window; None after a gap."""
    inflight_before: int | None = None
    """The same before the last release."""
    waiting: int = 0
    """How many releases, counted from the last, had requests that waited."""
    far_below: int = 0
    """How many of them were far below the limits of the terms."""
    is_waiting: bool = False
    """Requests waited in the last one, and not only may have."""
    silent_s: float = 0.0
    """Time since a request completed, with requests in flight."""
    silence_s: float = 0.0
    """Time without completions with which the last release began."""
    service: ServiceTime = ServiceTime()
    usual: UsualTime = UsualTime()
    served: ServedCurve = ServedCurve()
    """Up to the end of the window, which is added before `classify`."""
    ceiling: Ceiling | None = None
    throttle: Throttle | None = None
    """The limit of the terms in the last release; None if requests did not wait at one."""
    throttled: int = 0
    """Consecutive releases, up to the last, throttled at the level of `throttle`."""
    uncounted_s: float = 0.0
    """Throttled time of the last release beyond its duration."""
    flush_share: float | None = None
    """Share of the flushes that the limiter does not count, if it counts others; kept while the
    disk is flushed."""
    lines: tuple[Line, Line] = (NO_LINE, NO_LINE)
    """The last releases on a straight line: with data writes only, and with all writes."""
    lines_before: tuple[Line, Line] = (NO_LINE, NO_LINE)
    """The same before the last release, if that began with silence: it may be continued."""
    is_suspected: bool = False
    """Since requests wait, an unknown limiter seemed to admit them all."""
    undecided: tuple[WindowVerdict | None, ...] = ()
    """Verdicts on the last windows if no constant rate is found (and their wait if one is); None
    for silent ones, which get the verdict of the next release."""


def classify(
    detector: DetectorState,
    window: Interval,
    limits: Limits,
    tolerance: float,
    tick_s: float,
    group: SharedWindow | None = None,
    counted: LimitKind | None = None,
    *,
    is_group: bool = False,
) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state of the detector after a window, and the verdicts that are decided now.

    These are the verdicts on the undecided windows and on this one, the oldest first, as far as
    they are decided. The others remain undecided, for P.longest_wait_s at most. `group` is
    the same window of the group of the disk, if it is in one. `counted` is the limit of the
    machine that the provider counts, if it does: there, a disk below its promise is throttled.
    The window may be that of a group itself (`is_group`).
    """
    longest_silence_s = P.longest_limiter_window_s + tick_s
    if not window.reads + window.writes:
        state, verdicts = _without_completion(detector, window, longest_silence_s)
    else:
        rules = Rules(limits, tolerance, tick_s, group, counted, is_group)
        state, verdicts = _with_completions(detector, window, longest_silence_s, rules)
    oldest = state.undecided[0] if state.undecided else None
    if oldest is not None and len(state.undecided) > P.longest_wait_s / tick_s:
        verdicts = (_without_limit(oldest),)
        state = msgspec.structs.replace(state, undecided=state.undecided[1:])
    return state, verdicts


def shared_throttle(
    detector: DetectorState,
    decided: tuple[WindowVerdict, ...],
    limits: Limits,
    seconds: float,
    *,
    is_machine: bool = True,
) -> SharedThrottle | None:
    """Return where a group is throttled in its last window, for the verdicts on its disks.

    `decided` are the verdicts of `classify` on the group, and `seconds` is the window. None if it
    is not throttled at a limit that is known. The limit is that of the machine if `is_machine`,
    else that of all disks of a type.
    """
    throttle = decided[-1].throttle if decided else None
    if throttle is None or throttle.limit not in MACHINE_LIMITS:
        return None
    return SharedThrottle(
        Throttle(throttle.level, MACHINE_LIMITS[throttle.limit]) if is_machine else throttle,
        decided[-1].throttled_share * seconds,
        detector.data,
        throttled_charges(limits, throttle.level),
    )


def after_gap(detector: DetectorState, inflight: int | None = None) -> DetectorState:
    """Return the state that remains valid after a gap, or after the disk was idle.

    `inflight` are the requests in flight at its end, if that is known.
    """
    return DetectorState(
        inflight=inflight,
        service=detector.service,
        usual=detector.usual,
        served=detector.served,
        ceiling=detector.ceiling,
    )


def _with_completions(
    detector: DetectorState, window: Interval, longest_silence_s: float, rules: Rules
) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state and the verdicts after a window in which requests completed."""
    if _continues(detector, window, rules.tick_s):
        silence_s, lines = detector.silence_s, detector.lines_before
        whole = detector.releases[-1].plus(window)
        state, own, found = _judge(_reopened(detector), whole, window, rules)
    else:
        silence_s = detector.silent_s if detector.silent_s <= longest_silence_s else 0.0
        lines, release = detector.lines, window
        if silence_s:
            release = msgspec.structs.replace(window, seconds=window.seconds + silence_s)
        state, own, found = _judge(detector, release, release, rules)
    if silence_s:
        state = msgspec.structs.replace(state, silence_s=silence_s, lines_before=lines)
        if found.throttle is None and len(state.releases) > P.straight_releases:
            found = msgspec.structs.replace(found, is_open=True)  # the rest may be in the next one
    undecided = detector.undecided
    if found.throttle is None and _exceeds_limit(state, rules, undecided):
        own = _not_throttled(own)
        undecided = tuple(each and _not_throttled(each) for each in undecided)
    if found.is_open:
        silent = msgspec.structs.replace(own, wait_s=0.0)
        undecided = (*(each or silent for each in undecided), own)
        return msgspec.structs.replace(state, undecided=undecided), ()
    return state, _decided(undecided, own, found)


def _is_throttled(verdict: WindowVerdict | None) -> bool:
    return verdict is not None and verdict.verdict == "throttled"


def _exceeds_limit(
    state: DetectorState, rules: Rules, undecided: tuple[WindowVerdict | None, ...]
) -> bool:
    """Return whether releases after undecided throttled ones exceed the limit of the terms."""
    if not any(map(_is_throttled, undecided)):
        return False
    later = state.releases[len(state.releases) - state.waiting + 1 :]
    return exceeds_limit(later, rules.limits, rules.tolerance_ratio, rules.tick_s)


def _not_throttled(verdict: WindowVerdict) -> WindowVerdict:
    """Return the verdict on the load alone, where it was throttled."""
    return WindowVerdict(verdict.otherwise) if _is_throttled(verdict) else verdict


def _continues(detector: DetectorState, window: Interval, tick_s: float) -> bool:
    """Return whether a window has the rest of the release before it.

    A sample was taken while the limiter let requests pass after a silence, which takes less time
    than the silence. If they follow one another, it may take longer: they do not wait, so they
    take much less time than there is for each.
    """
    if not detector.silence_s or detector.silent_s:
        return False
    whole = detector.releases[-1].plus(window)
    released_s = whole.seconds - detector.silence_s
    if released_s < max(detector.silence_s, 2 * tick_s) + tick_s / 2:
        return True
    if whole.seconds > P.longest_limiter_window_s + tick_s / 2:
        return False
    due_s = whole.seconds * (window.reads + window.writes) / (whole.reads + whole.writes)
    waits = took_s(window) > P.low_load_share * due_s
    return not waits and is_one_at_most(detector.inflight_before or 0, whole, tick_s)


def _reopened(detector: DetectorState) -> DetectorState:
    """Return the state without the last release."""
    return msgspec.structs.replace(
        detector,
        releases=detector.releases[:-1],
        data=detector.data[:-1],
        inflight=detector.inflight_before,
        waiting=max(0, detector.waiting - 1),
        far_below=max(0, detector.far_below - 1),
        throttled=max(0, detector.throttled - 1),
        lines=detector.lines_before,
    )


def _without_completion(
    detector: DetectorState, window: Interval, longest_silence_s: float
) -> tuple[DetectorState, tuple[WindowVerdict, ...]]:
    """Return the state and the verdicts after a window in which no request completed.

    Where data writes are counted exactly, flushes may have completed.
    """
    if not window.inflight:
        own = WindowVerdict("unproven" if window.has_flushes else "idle")
        return after_gap(detector, 0), _ended(detector.undecided, _UNPROVEN, own)
    silent_s = detector.silent_s + window.seconds
    if silent_s <= longest_silence_s:
        undecided = (*detector.undecided, None)
        return msgspec.structs.replace(detector, silent_s=silent_s, undecided=undecided), ()
    if window.has_flushes:  # it serves them, and there is nothing else to serve
        return after_gap(detector), _ended(detector.undecided, _UNPROVEN, _UNPROVEN)
    stalled = msgspec.structs.replace(after_gap(detector), silent_s=silent_s)
    return stalled, _ended(detector.undecided, WindowVerdict("stalled"), WindowVerdict("stalled"))


def _decided(
    undecided: tuple[WindowVerdict | None, ...], own: WindowVerdict, found: Finding
) -> tuple[WindowVerdict, ...]:
    """Return the verdicts on undecided windows and on the release after them.

    A limit that covers them has throttled all, but those below the promise. If it is unknown, the
    first of them had the rate of a limit of the terms by chance.
    """
    if not undecided:
        return (own,)
    silent = msgspec.structs.replace(own, wait_s=0.0)
    if not found.covers_undecided:
        return _ended(undecided, silent, own)
    return (*(_covered(each or silent, own) for each in undecided), own)


def _covered(earlier: WindowVerdict, own: WindowVerdict) -> WindowVerdict:
    """Return the verdict on an undecided window which a limit that is found later throttled."""
    if earlier.verdict == "below":
        return earlier
    if earlier.verdict != "throttled":
        return msgspec.structs.replace(own, wait_s=earlier.wait_s)
    throttle = UNKNOWN_LIMIT if own.throttle == UNKNOWN_LIMIT else earlier.throttle
    return msgspec.structs.replace(earlier, throttle=throttle)


def _ended(
    undecided: tuple[WindowVerdict | None, ...], silent: WindowVerdict, last: WindowVerdict
) -> tuple[WindowVerdict, ...]:
    """Return the verdicts on undecided windows, if no constant rate was found, and the last."""
    return (*(_without_limit(each or silent) for each in undecided), last)


def _without_limit(verdict: WindowVerdict) -> WindowVerdict:
    """Return an undecided verdict if no limit was found: only throttled requests waited."""
    return verdict if _is_throttled(verdict) else msgspec.structs.replace(verdict, wait_s=0.0)


def _judge(
    detector: DetectorState, release: Interval, part: Interval, rules: Rules
) -> tuple[DetectorState, WindowVerdict, Finding]:
    """Return the state after a release, the verdict on it, and what was found.

    The verdict is on the `part` of the release that has none yet.
    """
    group_load = 0.0 if rules.group is None else rules.group.load_ratio
    service = detector.service.learned(detector.inflight, release, rules.limits, group_load)
    if part is not release:
        service = service.learned_from_rest(part, rules.limits)
    counts, flushes = _counted(detector, release)
    usual = _usual(detector, counts, rules)
    data = part.without_flushes()
    otherwise = tested_promise(data, rules.limits, rules.tolerance_ratio)
    if _none_waits(counts, service):
        state = DetectorState(
            counts[-1],
            counts[0],
            flushes,
            inflight=0,
            inflight_before=detector.inflight,
            service=service,
            usual=usual,
            served=detector.served,
            ceiling=detector.ceiling,
            flush_share=detector.flush_share if flushes else None,
        )
        return state, WindowVerdict(otherwise), NOTHING_FOUND
    applied = usual if usual.mean_s and _applies(detector, counts, rules) else None
    service_s = max(service.shortest_s, applied.mean_s) if applied else service.shortest_s
    seen = _see(detector, counts, flushes, service_s, rules, applied)
    found = find(seen, rules)
    if found.throttle is None:
        uncounted_s = 0.0
        own = _unthrottled(detector, found, data, service_s, otherwise, is_waiting=seen.is_waiting)
    else:
        own, uncounted_s = _throttled(
            detector, found, release, part, service_s, rules.tick_s, otherwise
        )
    if rules.counted is not None:
        own = _with_counted(own, rules.counted, data, detector.inflight, service_s, found)
    state = DetectorState(
        seen.releases,
        seen.data,
        seen.flushes,
        release.inflight,
        detector.inflight,
        seen.waiting,
        seen.far_below,
        seen.is_waiting,
        service=service,
        usual=usual,
        served=detector.served,
        ceiling=_ceiling(detector, seen, found, rules),
        throttle=found.throttle if found.is_steady else None,
        throttled=len(found.run) if found.is_steady else 0,
        uncounted_s=uncounted_s,
        flush_share=found.flush_share or (seen.flush_share if seen.flushes else None),
        is_suspected=found.is_suspected or (seen.is_suspected and seen.waiting > 0),
        lines=seen.lines,
    )
    return state, own, found


def _unthrottled(
    detector: DetectorState,
    found: Finding,
    data: Interval,
    service_s: float,
    otherwise: Verdict,
    *,
    is_waiting: bool,
) -> WindowVerdict:
    """Return the verdict on a part of a release in which nothing throttles the disk.

    `data` is that part without flushes. If the disk was throttled in the release before, those
    that waited there have completed in this one. What was in flight after a gap has waited for
    another reason.
    """
    verdict: Verdict = "below" if found.is_below else otherwise
    if detector.throttle is not None and detector.inflight and is_waiting:
        waited_s = wait_s(data, service_s)
        share = min(1.0, waited_s / detector.inflight / data.seconds)
        return WindowVerdict(
            "throttled", detector.throttle, waited_s, throttled_share=share, otherwise=verdict
        )
    may_wait = found.is_open and detector.inflight is not None
    return WindowVerdict(verdict, wait_s=wait_s(data, service_s) if may_wait else 0.0)


def _throttled(
    detector: DetectorState,
    found: Finding,
    release: Interval,
    part: Interval,
    service_s: float,
    tick_s: float,
    otherwise: Verdict,
) -> tuple[WindowVerdict, float]:
    """Return the verdict on a part of a throttled release, and the time that the next one counts.

    If the verdicts on the other parts of the release wait, all have its mean.
    """
    counted = part.without_flushes() if found.counts_data else part
    timed = release if found.covers_undecided and not found.counts_data else counted
    throttled_s = _throttled_s(timed, detector.inflight, service_s, found)
    throttled_s *= part.seconds / timed.seconds
    time_s = detector.uncounted_s + min(found.longest_s, throttled_s)
    share = min(1.0, time_s / part.seconds)
    own = WindowVerdict(
        "throttled",
        found.throttle,
        wait_s(counted, service_s),
        found.is_steady and _is_confirmed(found.run, tick_s),
        share,
        otherwise,
    )
    return own, min(tick_s, max(0.0, time_s - share * part.seconds))


def _none_waits(counts: WriteCounts, service: ServiceTime) -> bool:
    """Return whether no request waits after the last release, or waited in it.

    So it is for most releases of a light load, and no limit has to be looked for. The usual
    latency is no shorter than the service time, and need not be known.
    """
    if counts[-1][-1].inflight or not service.shortest_s:
        return False
    return not has_long_wait(counts[0][-1], service.shortest_s)


def _counted(detector: DetectorState, release: Interval) -> tuple[WriteCounts, int]:
    """Return the last releases with the one that has just ended, and how many may have flushes.

    They are counted from the last on.
    """
    releases = (*detector.releases[1 - P.kept_releases :], release)
    flushes = len(releases) if release.flushes else max(0, detector.flushes - 1)
    if not flushes:
        return (releases,), 0
    data = (*detector.data[1 - P.kept_releases :], release.without_flushes())
    return (data, releases), flushes


def _usual(detector: DetectorState, counts: WriteCounts, rules: Rules) -> UsualTime:
    """Return the usual latency after a release; it counts if no known limit throttles it."""
    if rules.group is not None:
        is_light = rules.shared is None and rules.group.load_ratio <= P.low_load
        if detector.releases and is_light and is_single(detector.inflight, counts[-1][-1]):
            return detector.usual.plus(counts[0][-1])
    elif not rules.is_group:
        return detector.usual.learned(
            detector.inflight,
            counts,
            rules.limits,
            rules.tolerance_ratio,
            rules.tick_s,
        )
    return detector.usual


def _applies(detector: DetectorState, counts: WriteCounts, rules: Rules) -> bool:
    """Return whether requests of a release wait only if they take longer than usual.

    Those one at a time do while the group of the disk is throttled; without a group, those of a
    load that does not stay at the limit.
    """
    if rules.group is not None:
        return rules.shared is not None and is_single(detector.inflight, counts[-1][-1])
    return not any(
        stays_at_limit(releases, rules.limits, rules.tolerance_ratio, rules.tick_s)
        for releases in counts
    )


def _ceiling(detector: DetectorState, seen: Seen, found: Finding, rules: Rules) -> Ceiling | None:
    """Return the ceiling after what was found."""
    before = detector.ceiling
    if found.is_steady and not found.run:
        return None  # the number of data writes is known as a range only
    if not found.run:
        return before
    throttle = found.throttle or UNKNOWN_LIMIT
    charges = throttled_charges(rules.limits, throttle.level) if found.is_steady else ()
    waiting = found.run
    if seen.waiting and found.flush_share is None:
        waiting = (seen.data if found.counts_data else seen.releases)[-seen.waiting :]
    ceiling = ceiling_after(before, throttle, found.run, waiting, charges, rules.tick_s)
    if ceiling is None:
        return None
    if is_due(found.run):
        window_s = window_length_s(found.run, rules.tick_s)
        ceiling = msgspec.structs.replace(ceiling, window_s=window_s or ceiling.window_s)
    if ceiling is before or len(found.run) >= P.kept_releases:
        return ceiling  # unchanged, or the burst before it is known
    return with_burst(
        ceiling, detector.served, found.run, charges, rules.tolerance_ratio, rules.tick_s
    )


def _with_counted(
    own: WindowVerdict,
    limit: LimitKind,
    part: Interval,
    inflight_before: int | None,
    service_s: float,
    found: Finding,
) -> WindowVerdict:
    """Return the verdict where the provider counts a limit of the machine: never below."""
    if own.otherwise == "below":
        return msgspec.structs.replace(own, otherwise="unproven")
    if own.verdict != "below":
        return own
    waited_s = wait_s(part, service_s)
    throttled_s = _throttled_s(part, inflight_before, service_s, found)
    share = min(1.0, throttled_s / part.seconds)
    return WindowVerdict(
        "throttled",
        Throttle("base", limit),
        waited_s,
        throttled_share=share,
        is_by_provider=True,
    )


def _is_confirmed(run: tuple[Interval, ...], tick_s: float) -> bool:
    """Return whether releases at one limit are too many for chance."""
    return sum(release.seconds for release in run) > (P.confirmed_ticks - 0.5) * tick_s


def _throttled_s(
    release: Interval, inflight_before: int | None, service_s: float, found: Finding
) -> float:
    """Return the time of a throttled release in which at least one request waited, in seconds.

    If fewer requests completed than the several that were in flight before, some waited all the
    time. Otherwise those that were in flight waited together, each for that time, so it is the
    I/O-seconds of waiting by their number. Of a varying load, requests that arrive one after
    another wait until the same time, half as long on average as the first; they may have waited
    together while more are in flight at both samples than the service time explains (Little's
    law). Of one writer, one or two are in flight; how many a sample finds depends on its place in
    the limiter's window, so it is their mean. If none is, the time in which some were in flight
    counts, by the share of it that requests waited. A service time that explains most of what
    requests took is not believed where the rate is constant.
    """
    if release.read_ms is None:
        return release.seconds
    waited_s = wait_s(release, service_s)
    if found.throttle == UNKNOWN_LIMIT and waited_s < took_s(release) / 2:
        return release.seconds
    if found.flush_share is not None:
        return waited_s / max(1.0, took_s(release) / release.seconds)
    requests = release.reads + release.writes
    waiting = inflight_before or release.inflight / 2  # none, and then more and more
    together_s = waited_s / max(1, waiting)
    if 1 < waiting >= requests:
        together_s = max(release.seconds, waited_s / max(1, requests))
    if not waiting and is_busy(release):
        together_s = release.busy_ms / 1000 * waited_s / took_s(release)
    if not found.is_varying:
        return together_s
    in_turn_s = min(waited_s, math.sqrt(2 * waited_s * release.seconds / requests))
    in_flight = min(inflight_before or 0, release.inflight)
    may_wait_together = found.is_steady and in_flight > most_in_service(release, service_s)
    return max(in_turn_s, together_s) if may_wait_together else in_turn_s


def _see(
    detector: DetectorState,
    counts: WriteCounts,
    flushes: int,
    service_s: float,
    rules: Rules,
    usual: UsualTime | None,
) -> Seen:
    """Return the last releases, with the one that has just ended.

    `usual` is the usual latency, if requests wait only if they take longer.
    """
    data, releases = counts[0], counts[-1]
    release = releases[-1]
    if usual is not None and rules.group is None:
        is_waiting = usual.has_waiting(data[-1])
    else:
        is_waiting = has_waiting(data[-1], service_s)
    # After a release with waiting, one with a request in flight may be the rest of it.
    may_wait = is_waiting or (detector.is_waiting and release.inflight > 0)
    waiting = min(detector.waiting + 1, len(releases)) if may_wait else 0
    level = None
    if may_wait and detector.throttle is not None:
        run = releases[-1 - detector.throttled : -1]
        level = detector.throttle.level if _is_confirmed(run, rules.tick_s) else None
    far_below = 0
    if (
        may_wait
        and level is None
        and is_far_below(release, rules.limits, rules.tolerance_ratio, rules.tick_s)
    ):
        far_below = detector.far_below + 1
    lines = NO_LINE, NO_LINE
    if level is None and (waiting or release.inflight):
        with_data = with_all = detector.lines[0].plus(data[-1], rules.tick_s)
        if flushes:
            with_all = detector.lines[1].plus(release, rules.tick_s)
        lines = with_data, with_all
    return Seen(
        counts,
        flushes,
        waiting,
        is_waiting,
        detector.throttle,
        detector.throttled,
        level,
        lines,
        detector.flush_share,
        detector.is_suspected,
        detector.ceiling,
        far_below,
        service_s,
    )
