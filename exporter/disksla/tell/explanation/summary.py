"""What a disk did in a period, by verdict and by limit: from its slots."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import Literal, NamedTuple, get_args

from disksla.promise.catalogue import Charge, Work
from disksla.state.history import Slot, total_slot
from disksla.state.pipeline import Direction
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS, LimitKind, ThrottleLevel, Verdict

LEVELS: tuple[ThrottleLevel, ...] = get_args(ThrottleLevel)
_THROTTLED = VERDICTS.index("throttled")
_LONGEST_SLOT_S = 2.0
_MOST_SHARE = 0.5
"""What applies for this share of a slot or longer dominates it."""
_SAME_RATE = 1.25
"""Slots of one rate differ by less than this factor from the next."""


class SummaryPart(NamedTuple):
    """What a disk did while a verdict, or a limit, applied."""

    seconds: float
    """How long it applied; of a limit, how long requests waited for it."""
    iops: float
    """Reads and data writes per second, at least: the flushes are taken from the writes."""
    bytes_per_second: float
    inflight: float
    """Mean number of requests in flight."""
    wait_s: float
    """Mean time that a request waited because of throttling."""
    limiter_window_s: float | None = None
    """Window of the limiter; None if it has none, or none was seen."""
    most_iops: float = 0.0
    """Reads and data writes per second, at most: where they are not counted exactly, a flush may
    have had data."""
    load: float | None = None
    """Load of the promise at least, and at most; None without a promise."""
    most_load: float | None = None
    last_s: float = 0.0
    """Monotonic end of the last slot in which it applied."""


class SlowPart(NamedTuple):
    """How slow a disk was, in the seconds in which it was."""

    seconds: float
    than: Literal["promise", "usual"]
    direction: Direction | None
    """Of the requests that were slow; None if both."""
    latency_s: float
    """Mean time of those requests,"""
    expected_s: float
    """and what it would have been as promised, or as usual."""
    last_s: float = 0.0
    """Monotonic end of the last slot in which it was."""


class Summary(NamedTuple):
    """What a disk did in a period."""

    seconds: float
    verdicts: Mapping[Verdict, SummaryPart]
    """Those that there were. Seconds in which requests waited at an unknown limit are not among
    those in which a load was served."""
    throttled: Mapping[tuple[ThrottleLevel, LimitKind], SummaryPart]
    """The limits at which it was throttled, by level."""
    peak_load: float | None = None
    """Highest load of a slot; None if the terms promise nothing, or it is not known."""
    load: float | None = None
    """Mean load while there were requests; None if the terms promise nothing."""
    latency_s: float | None = None
    """Mean time of a request; None if none completed, or it is not known."""
    slow: SlowPart | None = None
    """None if the disk was not slow."""
    compared_s: float = 0.0
    """Time in which it was known which latency is promised or usual."""
    requests: float = 0.0
    """Reads and writes completed, as the kernel counts."""
    others: float = 0.0
    """Operations of an NFS mount that are neither reads nor writes."""
    end_s: float = 0.0
    """Monotonic end of the last slot."""
    unknown_rates: Sequence[SummaryPart] = ()
    """What it did while it was throttled at an unknown limit, each rate apart."""


_ORDER = tuple(product(LEVELS, LIMIT_KINDS))


_Applied = list[tuple[Slot, float]]
"""Slots in which a verdict or a limit applied, with the seconds in which it did."""


def summary_of_slots(
    slots: Sequence[Slot], limiter_window_s: float | None = None, charges: tuple[Charge, ...] = ()
) -> Summary:
    """Return the summary of slots.

    The window is that of the limiter that throttled the disk last. The charges are those of the
    promise of its terms, if they have one.
    """
    by_verdict: defaultdict[Verdict, _Applied] = defaultdict(list)
    by_limit: defaultdict[tuple[ThrottleLevel, LimitKind], _Applied] = defaultdict(list)
    for slot in slots:
        for verdict, seconds in zip(VERDICTS, slot.verdict_s, strict=True):
            if seconds and not (verdict == "unproven" and slot.totals.at_unknown_s):
                by_verdict[verdict].append((slot, seconds))
        for limit, seconds in zip(LIMIT_KINDS, slot.throttled_s, strict=True):
            if seconds:
                by_limit[_level(slot, limit), limit].append((slot, seconds))
    active = [slot for slot in slots if slot.requests]
    whole = total_slot(slots)
    unknown = _by_rate(by_limit.get(("unknown", "unknown"), []))
    last = max(unknown, key=lambda each: each[-1][0].end_s, default=None)
    return Summary(
        seconds=sum(whole.verdict_s),
        verdicts={
            each: _of_slots(by_verdict[each], charges) for each in VERDICTS if each in by_verdict
        },
        throttled={
            each: _of_throttled_slots(by_limit[each], charges, limiter_window_s)
            for each in _ORDER
            if each in by_limit
        },
        unknown_rates=[
            _of_throttled_slots(each, charges, limiter_window_s if each is last else None)
            for each in unknown
        ],
        peak_load=_peak_load(slots, charges),
        load=_mean_load(total_slot(active), charges) if active else None,
        latency_s=whole.latency_s,
        slow=_slow_part(slots),
        compared_s=whole.totals.slow_compared_s,
        requests=whole.requests,
        others=whole.totals.others,
        end_s=slots[-1].end_s if slots else 0.0,
    )


def _slow_part(slots: Sequence[Slot]) -> SlowPart | None:
    """Return how slow the disk was in the slots with what it was slower than most of the time."""
    slow = [slot for slot in slots if slot.slow_s > 0]
    if not slow:
        return None
    totals = total_slot(slow).totals
    is_promise = totals.slow_promise_s >= totals.slow_usual_s
    chosen = [s for s in slow if (s.totals.slow_promise_s >= s.totals.slow_usual_s) == is_promise]
    found = total_slot(chosen or slow).totals
    requests = max(1.0, found.slow_reads + found.slow_writes)
    return SlowPart(
        seconds=totals.slow_promise_s + totals.slow_usual_s,
        than="promise" if is_promise else "usual",
        direction="read" if not found.slow_writes else None if found.slow_reads else "write",
        latency_s=found.slow_took_s / requests,
        expected_s=found.slow_expected_s / requests,
        last_s=slow[-1].end_s,
    )


def _mean_load(slot: Slot, charges: tuple[Charge, ...]) -> float | None:
    return _work(slot, slot.totals.least_writes).load(charges, slot.seconds)


def _work(slot: Slot, writes: float) -> Work:
    """Return what was done in a slot, with this number of data writes."""
    totals = slot.totals
    return Work(totals.reads, writes, totals.read_bytes, totals.written_bytes)


def _peak_load(slots: Sequence[Slot], charges: tuple[Charge, ...]) -> float | None:
    """Return the highest load of slots; None if they are so long that it may have been more."""
    if any(slot.seconds > _LONGEST_SLOT_S for slot in slots):
        return None
    loads = [_work(slot, slot.totals.most_writes).load(charges, slot.seconds) for slot in slots]
    return max((load for load in loads if load is not None), default=None)


def _level(slot: Slot, limit: LimitKind) -> ThrottleLevel:
    """Return the level at which the disk was throttled at a limit in a slot."""
    if limit == "unknown":
        return "unknown"
    known_s = sum(slot.throttled_s) - slot.totals.at_unknown_s
    return "burst" if slot.totals.burst_s > _MOST_SHARE * known_s else "base"


def _by_rate(applied: _Applied) -> list[_Applied]:
    """Return the slots in which a limit applied, those of each rate apart.

    A limit of IOPS has one rate of requests, and perhaps many of bytes; one of bandwidth likewise.
    Slots that it does not dominate, whose rates are lower, are of the rate before.
    """
    most = [slot for slot, seconds in applied if seconds >= _MOST_SHARE * slot.seconds]
    rates = (attrgetter("iops"), attrgetter("bytes_per_second"))
    groups = min((_alike(most, rate_of) for rate_of in rates), key=len)
    if len(groups) <= 1:
        return [applied] if applied else []
    number_of = {slot: number for number, group in enumerate(groups) for slot in group}
    found: list[_Applied] = [[] for _ in groups]
    number = number_of[most[0]]
    for each in applied:
        number = number_of.get(each[0], number)
        found[number].append(each)
    return found


def _alike(slots: Sequence[Slot], rate_of: Callable[[Slot], float]) -> list[list[Slot]]:
    """Return slots in groups of about the same rate, the lowest first."""
    groups: list[list[Slot]] = []
    for slot in sorted(slots, key=rate_of):
        if groups and rate_of(slot) <= _SAME_RATE * rate_of(groups[-1][-1]):
            groups[-1].append(slot)
        else:
            groups.append([slot])
    return groups


def _of_slots(applied: _Applied, charges: tuple[Charge, ...]) -> SummaryPart:
    """Return what was done while something applied.

    The rates are those of the slots that it dominates; without any, of all in which it applied.
    """
    most = [slot for slot, seconds in applied if seconds >= _MOST_SHARE * slot.seconds]
    whole = total_slot(most or [slot for slot, _ in applied])
    return SummaryPart(
        sum(seconds for _, seconds in applied),
        whole.least_iops,
        whole.bytes_per_second,
        whole.queue_depth,
        whole.wait_s,
        most_iops=whole.iops,
        load=_mean_load(whole, charges),
        most_load=_work(whole, whole.totals.most_writes).load(charges, whole.seconds),
        last_s=applied[-1][0].end_s,
    )


def _of_throttled_slots(
    applied: _Applied, charges: tuple[Charge, ...], limiter_window_s: float | None
) -> SummaryPart:
    """Return what was done while a limit applied.

    Where the provider names the limit, its seconds are a few slots late. The rates are those of
    slots in which the verdict is throttled, unless there are none.
    """
    throttled = [(slot, seconds) for slot, seconds in applied if slot.verdict_s[_THROTTLED]]
    part = _of_slots(throttled or applied, charges)
    return part._replace(
        seconds=sum(seconds for _, seconds in applied), limiter_window_s=limiter_window_s
    )
