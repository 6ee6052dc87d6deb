"""What throttles a disk, as far as its last releases tell."""

import math
from itertools import islice, pairwise

import msgspec

from disksla.limits import Charge, Limits
from disksla.verdict.ceiling import Ceiling, is_at_ceiling
from disksla.verdict.constant_rate import Line
from disksla.verdict.flush_share import (
    are_at_limit,
    explained_shares,
    has_several_writers,
    may_be_at_limit,
    without_share,
)
from disksla.verdict.interval import Interval, WriteCounts
from disksla.verdict.known_limit import (
    binding_limit,
    is_near_limit,
    may_be_throttled,
    throttled_at_limit,
    throttled_charges,
    throttled_now_and_then,
)
from disksla.verdict.late_samples import is_constant_but_late
from disksla.verdict.limiter_window import is_due, limiter_window
from disksla.verdict.parameters import P
from disksla.verdict.promise import is_below_promise
from disksla.verdict.service_time import (
    has_long_wait,
    have_requests_in_flight,
    is_one_at_most,
)
from disksla.verdict.span import last_seconds, span_of, ticks_of
from disksla.verdict.throttle import (
    UNKNOWN_LIMIT,
    LimitKind,
    SharedThrottle,
    SharedWindow,
    Throttle,
    ThrottleLevel,
)


class Rules(msgspec.Struct, frozen=True, gc=False):
    """What the releases of a disk are compared with."""

    limits: Limits
    tolerance_ratio: float
    tick_s: float
    group: SharedWindow | None = None
    """The same window of the group of the disk, if it is in one."""
    counted: LimitKind | None = None
    """Limit of the machine that the provider counts, if it does."""
    is_group: bool = False
    """The releases are those of a group of disks."""

    @property
    def shared(self) -> SharedThrottle | None:
        """Where the group of the disk is throttled, if it is."""
        return None if self.group is None else self.group.throttle


class Seen(msgspec.Struct, frozen=True, gc=False):
    """The last releases of a disk, and how many of them had requests that waited."""

    counts: WriteCounts
    flushes: int
    """How many of them, counted from the last, may differ."""
    waiting: int
    """0 if no request waited in the last one."""
    is_waiting: bool
    """Requests waited in the last release."""
    throttle: Throttle | None
    """The limit of the terms at which the disk was throttled before."""
    throttled: int
    """Releases for which it was."""
    level: ThrottleLevel | None
    """The level at which the disk was throttled before, if requests may still wait there."""
    lines: tuple[Line, Line]
    """The last releases on a straight line, without flushes and with them."""
    flush_share: float | None
    """Share of the flushes that the limiter did not count, if it counted others."""
    is_suspected: bool
    """Since requests wait, an unknown limiter seemed to admit them all."""
    ceiling: Ceiling | None
    far_below: int
    """How many releases, counted from the last, waited far below the limits of the terms."""
    service_s: float
    """What a request takes that does not wait; 0 if unknown."""

    @property
    def releases(self) -> tuple[Interval, ...]:
        """The last releases, as the kernel counts their writes."""
        return self.counts[-1]

    @property
    def data(self) -> tuple[Interval, ...]:
        """The same without flushes."""
        return self.counts[0]


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What was found in the last releases; the default is no throttling."""

    throttle: Throttle | None = None
    run: tuple[Interval, ...] = ()
    """Consecutive releases at one rate, as the limiter counts them; the last one among them."""
    counts_data: bool = False
    """The limiter counts the writes of the kernel less the flushes."""
    is_steady: bool = False
    """The rate is that of a limit of the terms."""
    is_varying: bool = False
    """The load touches the limit now and then; if it is steady, too, it did so before."""
    longest_s: float = math.inf
    """Longest time in which requests can have waited."""
    is_below: bool = False
    covers_undecided: bool = False
    """The releases before, whose verdicts wait, were throttled, too."""
    is_open: bool = False
    """The curve may yet turn out to be that of a limiter."""
    flush_share: float | None = None
    """Share of the flushes that are not counted, if some are and others are not."""
    is_suspected: bool = False
    """An unknown limiter admits all requests that wait, or may: look for it at each release."""


NOTHING_FOUND = Finding()


def find(seen: Seen, rules: Rules) -> Finding:
    """Return what throttles the disk, if anything does."""
    mixed = NOTHING_FOUND
    if seen.waiting:
        found = _at_known_limit(seen, rules) if seen.far_below < seen.waiting else None
        shared = rules.shared
        if shared is not None and not _binds(found, seen, rules, shared):
            return Finding(shared.throttle, counts_data=True, longest_s=shared.throttled_s)
        if found is not None:
            return found
        mixed = _with_mixed_writes(seen, rules)
        if mixed.throttle is not None:
            return mixed
        found = _now_and_then(seen, rules) if seen.far_below <= 1 else None
        if found is not None:
            return found
    found = _at_constant_rate(seen, rules)
    if found.throttle is None and (mixed.is_open or _may_be_throttled(seen, rules)):
        return msgspec.structs.replace(found, is_open=True)
    return found


def _binds(found: Finding | None, seen: Seen, rules: Rules, shared: SharedThrottle) -> bool:
    """Return whether a limit of the disk may throttle it, rather than that of its group.

    Where both are near, it is the one that is used more in the same time. That the disk is at its
    own limit may be seen some releases later than that the group is: it has fewer requests. And a
    sample that is late may hide it for a release, or the end of the load: after releases at its
    own limit, it suffices if it was used more until then. A group that is throttled uses its limit
    once; what it did beyond that were tokens saved before. So its first release does not show
    that a disk waits for it, unless the disk reached its own, or it took several samples.
    """
    if found is None and len(shared.releases) == 1:
        [first] = shared.releases
        if ticks_of(first.seconds, rules.tick_s) < P.confirmed_ticks:
            return True
    number = min(seen.waiting, P.longest_span)
    if found is None and number == P.longest_span and seen.throttle is None:
        return False
    releases = seen.data
    level: ThrottleLevel = "burst" if rules.limits.burst_charges else "base"
    if found is not None and found.throttle is not None:
        releases = seen.data if found.counts_data else seen.releases
        level = found.throttle.level
    charges = throttled_charges(rules.limits, level)
    if _uses_more(releases[-number:], charges, shared, rules.tick_s):
        return True
    if seen.level is None:
        return False
    earlier = msgspec.structs.replace(shared, releases=shared.releases[:-1])
    return _uses_more(releases[:-1][-number:], charges, earlier, rules.tick_s)


def _uses_more(
    releases: tuple[Interval, ...],
    charges: tuple[Charge, ...],
    shared: SharedThrottle,
    tick_s: float,
) -> bool:
    """Return whether a disk uses its limit as much as its group, or more, in the same time."""
    span = span_of(releases)
    beside = last_seconds(shared.releases, span.seconds - tick_s / 2)
    own = (span.load(charges) or 0.0) * (1 + span.uncertainty(tick_s))
    of_group = span_of(beside).load(shared.charges) or 0.0 if beside else 0.0
    return own >= (1 - P.same_load_share) * min(1.0, of_group)


def _at_known_limit(seen: Seen, rules: Rules) -> Finding | None:
    """Return the finding if a limit of the terms throttles; None if none does."""
    if seen.throttle is None and not seen.flushes and _is_on_another_line(seen, rules):
        return None
    if seen.flush_share is not None:
        found = _with_share(seen, seen.flush_share, rules)
        if found is not None:
            return found
    for releases in seen.counts:
        found = _steady(seen, releases, rules)
        if found is not None:
            return msgspec.structs.replace(found, counts_data=releases is not seen.releases)
    return None


def _is_on_another_line(seen: Seen, rules: Rules) -> bool:
    """Return whether the last releases are at a constant rate that is not the limit, or may be.

    A sample off that line, or one that was late, may have the rate of the limit by chance. A rate
    above the limit may be that of a burst.
    """
    line = seen.lines[0]
    if line.is_limiter(seen.releases, rules.tick_s):
        span = span_of(seen.releases[-line.releases :])
        tolerance = rules.tolerance_ratio + span.uncertainty(rules.tick_s)
        least = span.load(rules.limits.promise_charges)
        most = span.load(rules.limits.throttled_charges) or 0.0
        is_above = most > 1 + tolerance and not rules.limits.burst_charges
        return least is not None and (least < 1 - tolerance or is_above)
    return line.skipped > 0 and line.is_open(rules.tick_s)


def _with_mixed_writes(seen: Seen, rules: Rules) -> Finding:
    """Return the finding if a limit throttles and some of the flushes are empty writes."""
    if not seen.flushes:
        return NOTHING_FOUND
    last = seen.releases[-P.mixed_releases :]
    first = len(seen.releases) - seen.waiting + 1  # before, tokens may have been saved
    waiting = seen.releases[first:]
    if has_several_writers(last):
        charges = rules.limits.throttled_charges
        if not may_be_at_limit(last, charges, rules.tolerance_ratio):
            is_open = seen.waiting <= P.mixed_releases and are_at_limit(waiting, charges)
            return Finding(is_open=is_open)
        limit = binding_limit(span_of(last), rules.limits.enforced_charges)
        return Finding(
            Throttle("base", limit), counts_data=True, is_steady=True, covers_undecided=True
        )
    last = last_seconds(waiting, P.straight_s)
    shares = explained_shares(last, rules.limits.throttled_charges, rules.tick_s)
    if not shares.is_limiter(rules.tick_s):
        return Finding(is_open=shares.is_open(rules.tick_s))
    return _with_share(seen, shares.share, rules) or NOTHING_FOUND


def _with_share(seen: Seen, share: float, rules: Rules) -> Finding | None:
    """Return the finding if the last releases, without a share of the flushes, are on a limit."""
    found = _steady(seen, without_share(seen.releases, share), rules)
    if found is None:
        return None
    return msgspec.structs.replace(
        found, counts_data=True, covers_undecided=True, flush_share=share
    )


def _steady(seen: Seen, releases: tuple[Interval, ...], rules: Rules) -> Finding | None:
    """Return the finding if the last releases, with one count of their writes, are on a limit."""
    waiting = releases[-seen.waiting :]
    throttle = throttled_at_limit(
        waiting, seen.level, rules.limits, rules.tolerance_ratio, rules.tick_s
    )
    if throttle is None:
        return None
    before = 0
    if seen.throttle is not None and seen.throttle.level == throttle.level:
        before = seen.throttled
    is_varying = not seen.flushes and _is_varying(seen, rules)
    return Finding(
        throttle,
        releases[-1 - before :],
        is_steady=True,
        is_varying=is_varying,
        covers_undecided=not is_varying and _may_be_throttled(seen, rules, -1),
        is_open=_may_be_chance(seen, rules),
    )


def _may_be_throttled(seen: Seen, rules: Rules, end: int | None = None) -> bool:
    """Return whether a limit of the terms may throttle the releases with waiting, up to `end`."""
    if not seen.waiting or not _can_wait(seen, rules):
        return False
    waiting = seen.releases[-seen.waiting : end]
    return may_be_throttled(waiting, rules.limits, rules.tolerance_ratio, rules.tick_s)


def _can_wait(seen: Seen, rules: Rules) -> bool:
    """Return whether verdicts may wait until it is known whether a limit of the terms throttles.

    Not after several releases at a limit. Nor those on a group, for which its disks do not wait,
    or on a disk of a group, which may throttle it, too.
    """
    return seen.throttled <= 1 and not (seen.flushes or rules.group or rules.is_group)


def _may_be_chance(seen: Seen, rules: Rules) -> bool:
    """Return whether the last release may have the rate of the limit because it begins later.

    Requests wait since then, and the next releases may exceed the limit.
    """
    return seen.waiting == 1 and not rules.limits.burst_charges and _can_wait(seen, rules)


def _is_varying(seen: Seen, rules: Rules) -> bool:
    """Return whether requests that wait at a limit arrive whether or not others wait.

    Before they waited, the load was near the limit, and it was not that of a program that has one
    request at a time in flight.
    """
    if not seen.service_s or rules.limits.burst_charges:
        return False
    served = (
        release
        for release in seen.releases[: -seen.waiting]
        if is_near_limit(release, rules.limits, rules.tolerance_ratio, rules.tick_s)
        and not has_long_wait(release, seen.service_s)
    )
    if next(islice(served, P.varying_served - 1, None), None) is None:
        return False
    return not all(
        is_one_at_most(before.inflight, release, rules.tick_s)
        for before, release in pairwise(seen.releases)
    )


def _now_and_then(seen: Seen, rules: Rules) -> Finding | None:
    """Return the finding if a varying load reached a limit; None if it did not."""
    for releases in seen.counts:
        throttle = throttled_now_and_then(
            releases, rules.limits, rules.tolerance_ratio, rules.tick_s
        )
        if throttle is not None:
            counts_data = releases is not seen.releases
            return Finding(throttle, counts_data=counts_data, is_varying=True)
    return None


def _at_constant_rate(seen: Seen, rules: Rules) -> Finding:
    """Return the finding where no limit of the terms throttles: a constant rate, or none."""
    if not seen.waiting and not seen.releases[-1].inflight:
        return NOTHING_FOUND
    waiting = seen.releases[-seen.waiting :] if seen.waiting else ()
    is_below = is_below_promise(waiting, rules.limits, rules.tolerance_ratio, rules.tick_s)
    throttle = None if is_below else UNKNOWN_LIMIT
    # One at a time, flushes are not merged: all counts are straight, or none was by a limiter.
    needed = any if seen.lines[0].is_deep else all
    counts = seen.data, seen.releases
    is_limiter = [
        line.is_limiter(releases, rules.tick_s)
        for line, releases in zip(seen.lines, counts, strict=True)
    ]
    if needed(is_limiter):
        number = is_limiter.index(True)
        return Finding(
            throttle,
            counts[number][-seen.lines[number].releases :],
            counts_data=number == 0 and seen.flushes > 0,
            covers_undecided=throttle is not None,
            is_below=is_below,
        )
    if throttle and is_at_ceiling(seen.ceiling, waiting, rules.tick_s):
        return Finding(throttle, waiting, covers_undecided=True)
    found = _with_all_waiting(seen, rules)
    if found.is_suspected:
        return msgspec.structs.replace(
            found,
            throttle=throttle and found.throttle,
            covers_undecided=found.covers_undecided and not is_below,
            is_below=is_below,
        )
    is_open = needed(
        limiter or line.is_open(rules.tick_s)
        for limiter, line in zip(is_limiter, seen.lines, strict=True)
    )
    return Finding(is_below=is_below, is_open=is_open)


def _with_all_waiting(seen: Seen, rules: Rules) -> Finding:
    """Return the finding where a limiter admitted all that waited: its windows, or a line.

    To look for both costs as much as some ticks, so it is done after each release only once they
    were seen.
    """
    if not (seen.is_suspected or is_due(seen.releases)) or seen.waiting <= P.window_releases:
        return NOTHING_FOUND
    for releases in seen.counts:
        waiting = releases[1 - seen.waiting :]
        if not have_requests_in_flight(waiting):
            continue
        if limiter_window(waiting, rules.tick_s) is not None:
            least = P.regular_requests
        elif _may_be_late(seen) and is_constant_but_late(waiting, rules.tick_s):
            least = P.late_requests
        else:
            continue
        span = span_of(waiting)
        if span.seconds < P.straight_s - rules.tick_s / 2 or span.requests < least:
            return Finding(is_open=True, is_suspected=True)
        return Finding(
            UNKNOWN_LIMIT,
            waiting,
            counts_data=releases is not seen.releases,
            covers_undecided=True,
            is_suspected=True,
        )
    return NOTHING_FOUND


def _may_be_late(seen: Seen) -> bool:
    """Return whether releases may be on a line but for late samples: the last ones are.

    Those of a disk seldom are, so this saves most of the cost.
    """
    return seen.is_suspected or any(line.releases >= P.straight_releases for line in seen.lines)
