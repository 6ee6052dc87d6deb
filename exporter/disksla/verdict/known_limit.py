"""Throttling at a limit of the terms: the curve of what was served lies on the limit."""

from disksla.limits import Charge, Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.parameters import P
from disksla.verdict.service_time import is_busy, is_one_by_one
from disksla.verdict.span import (
    Span,
    last_span,
    last_spans,
    rate_uncertainty,
    span_of,
    ticks_of,
)
from disksla.verdict.throttle import LimitKind, Throttle, ThrottleLevel


def throttled_at_limit(
    waiting: tuple[Interval, ...],
    was_throttled: ThrottleLevel | None,
    limits: Limits,
    tolerance: float,
    tick_s: float,
) -> Throttle | None:
    """Return the limit of the terms at which a disk is throttled; None if it is not.

    `waiting` are the last releases in which requests waited. The first is left out if there are
    others, because it may contain two windows of the limiter, or tokens saved in its bucket.
    `was_throttled` is the level at which the disk was throttled in the release before.
    """
    if not _has_backlog(waiting[-P.in_flight_releases :]):
        return None
    waiting = waiting[1:] or waiting
    if was_throttled is None and exceeds_limit(waiting, limits, tolerance, tick_s):
        waiting = _since_excess(waiting, limits, tolerance, tick_s)
        if len(waiting) < P.releases_after_excess:
            return None
    for level, least, most in (
        ("base", limits.promise_charges, limits.throttled_charges),
        ("burst", limits.burst_charges, limits.burst_throttled_charges),
    ):
        lies_on_limit = _lies_on_limit(waiting, least, most, tolerance, tick_s)
        if lies_on_limit or (lies_on_limit is None and was_throttled == level):
            limit = binding_limit(last_span(waiting), limits.enforced_charges)
            return Throttle("base" if level == "base" else "burst", limit)
    return None


def may_be_throttled(
    waiting: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> bool:
    """Return whether requests have waited for too short to know whether a limit throttles them."""
    if not waiting or sum(release.seconds for release in waiting) > P.longest_limiter_window_s:
        return False
    last = waiting[-P.in_flight_releases :]
    if not _has_backlog(last, least=1):
        return False
    lies_on_limit = _lies_on_limit(
        waiting[1:] or waiting,
        limits.promise_charges,
        limits.throttled_charges,
        tolerance,
        tick_s,
    )
    return lies_on_limit is None or (lies_on_limit and not _has_backlog(last))


def exceeds_limit(
    waiting: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> bool:
    """Return whether more was served than the limit admits, by more than one release.

    That is not evidence against a limit with a burst, or with windows longer than the samples:
    it may have admitted two of them.
    """
    if limits.burst_charges or not waiting:
        return False
    span = span_of(waiting[-P.longest_span :])
    if ticks_of(span.longest_s, tick_s) > 1:
        return False
    return _differs(span, span.load(limits.throttled_charges) or 0.0, tolerance, tick_s) > 0


def _since_excess(
    waiting: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> tuple[Interval, ...]:
    """Return the last releases, of which none exceeds the limit."""
    loads = (
        (load_of(release, limits.throttled_charges) or 0.0)
        - rate_uncertainty(release.reads + release.writes, release.seconds, tick_s)
        for release in reversed(waiting)
    )
    exceeding = (number for number, load in enumerate(loads) if load > 1 + tolerance)
    return waiting[len(waiting) - next(exceeding, len(waiting)) :]


def _has_backlog(last: tuple[Interval, ...], least: int = 2) -> bool:
    """Return whether requests were in flight between releases, or for long in each of them.

    Or they followed one another in nearly all, and in `least` of them. A disk that a limiter above
    it (a cgroup) feeds in batches has none of these most of the time; in a single release, a slow
    batch looks the same.
    """
    if any(release.inflight for release in last):
        return True
    if last and all(map(is_busy, last)):
        return True
    return sum(map(is_one_by_one, last)) >= max(least, len(last) - 1)


def _lies_on_limit(
    waiting: tuple[Interval, ...],
    least: tuple[Charge, ...],
    most: tuple[Charge, ...],
    tolerance: float,
    tick_s: float,
) -> bool | None:
    """Return whether the curve is on the line of a limit, and nowhere far from it.

    It is on the line if one of the last spans has the rate of the limit. It is far from it if a
    shorter span differs by more than the requests of one release: a sample that is taken while a
    limiter serves the requests of a window counts a part of them, which differs from sample to
    sample (0, 60, 30 instead of 30, 30, 30). Otherwise it is where it was before: None.
    """
    if not least:
        return False
    for span in last_spans(waiting, P.longest_span):
        uncertainty = span.uncertainty_of_releases(tick_s)
        load = span.load(most) or 0.0
        if load <= 1 + tolerance + uncertainty and _reaches(span, least, tolerance, uncertainty):
            return True
        if _differs(span, load, tolerance, tick_s):
            return False
    return None


def _differs(span: Span, load: float, tolerance: float, tick_s: float) -> int:
    """Return 1 or -1 if a load is above or below the limit by more than one release, else 0."""
    one_s = max(tick_s, span.longest_s) * (1 + tolerance + span.uncertainty_of_releases(tick_s))
    above_s = (load - 1) * span.seconds
    return (above_s > one_s) - (above_s < -one_s)


def _reaches(span: Span, least: tuple[Charge, ...], tolerance: float, uncertainty: float) -> bool:
    """Return whether a load is at least that of a limit."""
    return (span.load(least) or 0.0) * (1 + uncertainty) >= 1 - tolerance


def throttled_now_and_then(
    releases: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> Throttle | None:
    """Return the limit that a varying load reached in the last release; None if none.

    Some of the last releases reached the limit, but not all, and all together do not exceed it.
    The last one reached it, or the one before did: what waited there may have completed here. With
    a burst, a load above the baseline is not evidence of a limit.
    """
    last = releases[-P.varying_releases :]
    if limits.burst_charges or not limits.promise_charges or len(last) < P.varying_releases:
        return None
    over = [_over_limit(release, limits, tolerance, tick_s) for release in last[-2:]]
    if max(over) < 0:
        return None
    over = [_over_limit(release, limits, tolerance, tick_s) for release in last]
    reached = sum(each >= 0 for each in over)
    whole = span_of(last)
    most = 1 + tolerance + whole.uncertainty(tick_s)
    if not 2 <= reached < len(last):  # noqa: PLR2004 -- more than once, but not always
        return None
    if max(over) > P.varying_peak_ratio or (whole.load(limits.throttled_charges) or 0.0) > most:
        return None
    return Throttle("base", binding_limit(span_of(last[-1:]), limits.enforced_charges))


def _over_limit(release: Interval, limits: Limits, tolerance: float, tick_s: float) -> float:
    """Return by how much the load of a release exceeds the lowest that reaches the limit.

    That of very few requests may be anything: one more or less is all that there is.
    """
    requests = release.reads + release.writes
    if requests < P.varying_requests:
        return -1.0
    load = load_of(release, limits.promise_charges) or 0.0
    return load - (1 - tolerance - rate_uncertainty(requests, release.seconds, tick_s))


def reaches_limit(release: Interval, limits: Limits, tolerance: float, tick_s: float) -> bool:
    """Return whether the load of a release is at the limit, or beyond it."""
    return _over_limit(release, limits, tolerance, tick_s) >= 0


def stays_at_limit(
    releases: tuple[Interval, ...], limits: Limits, tolerance: float, tick_s: float
) -> bool:
    """Return whether each of the last releases is at the same limit, as while it throttles."""
    last = releases[-P.confirmed_ticks :]
    return len(last) == P.confirmed_ticks and any(
        all(_is_at_limit(release, *charges, tolerance, tick_s) for release in last)
        for charges in (
            (limits.promise_charges, limits.throttled_charges),
            (limits.burst_charges, limits.burst_throttled_charges),
        )
    )


def _is_at_limit(
    release: Interval,
    least: tuple[Charge, ...],
    most: tuple[Charge, ...],
    tolerance: float,
    tick_s: float,
) -> bool:
    requests = release.reads + release.writes
    uncertainty = tolerance + rate_uncertainty(requests, release.seconds, tick_s)
    lowest, highest = load_of(release, least) or 0.0, load_of(release, most) or 0.0
    return lowest >= 1 - uncertainty and highest <= 1 + uncertainty


def is_near_limit(release: Interval, limits: Limits, tolerance: float, tick_s: float) -> bool:
    """Return whether the load of a release is near the limit, but no burst beyond it."""
    over = _over_limit(release, limits, tolerance, tick_s)
    return -P.varying_near_share <= over <= P.varying_peak_ratio


def is_far_below(release: Interval, limits: Limits, tolerance: float, tick_s: float) -> bool:
    """Return whether a release is so far below the limits that it reaches none by uncertainty.

    No span of such releases does: its load is at most that of the highest, and in
    `_lies_on_limit` at most 3.4 times that (one request more, a sample half a tick early or late,
    and a third for the limiter's window). With flushes, the load is not certain.
    """
    if release.flushes or reaches_limit(release, limits, tolerance, tick_s):
        return False
    most = P.far_below_share * (1 - tolerance)
    promise, burst = limits.promise_charges, limits.burst_charges
    return (load_of(release, promise) or 0.0) < most and (load_of(release, burst) or 0.0) < most


def throttled_charges(limits: Limits, level: ThrottleLevel) -> tuple[Charge, ...]:
    """Return the charges at which a disk is throttled at its baseline or in its burst."""
    return limits.burst_throttled_charges if level == "burst" else limits.throttled_charges


def binding_limit(span: Span, charges: tuple[Charge, ...]) -> LimitKind:
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
