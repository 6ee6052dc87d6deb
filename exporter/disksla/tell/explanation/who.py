"""Sentences that say who used a disk: units, containers and pods."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

import msgspec

from disksla.base.units import format_bandwidth, format_count, format_duration
from disksla.kernel.consumers import (
    KERNEL,
    NOT_NAMED,
    OTHER,
    UNATTRIBUTED,
    ConsumerTotals,
    OwnLimit,
    Usages,
    Watched,
    total_usages,
)
from disksla.tell.explanation.condition import is_said
from disksla.tell.explanation.summary import Summary
from disksla.verdict.throttling import OF_MACHINE, LimitKind

Unit = Literal["requests", "bytes"]
UNITS: tuple[Unit, ...] = ("requests", "bytes")
_LEAST_SHARE = 0.05
_MOST_NAMED = 3
_LEAST_S = 1.0
_QUIET_S = 30.0
"""A consumer that used nothing for this long before is said to have begun."""
_NOW_S = 5.0
_WHO: Mapping[str, str] = {KERNEL: "the kernel (such as a journal)", OTHER: "others"}


class ConsumerShare(msgspec.Struct, frozen=True):
    """What a consumer used of a disk in a period."""

    consumer: str
    program: str
    """That of most of its use; empty where it is not known."""
    requests: float | None = msgspec.field(name="requests_ratio")
    """Share of those of the disk; None where they are not known."""
    bytes: float | None = msgspec.field(name="bytes_ratio")


class ConsumerPeriod(NamedTuple):
    """What is known of the consumers of a disk in a period."""

    is_throttled: bool
    """The shares are of the time in which the disk was throttled, else of all of it."""
    slots: Sequence[Watched]
    shares: Sequence[ConsumerShare]
    """The greatest first, by what its limit counts."""


def period_since(consumers: ConsumerTotals, since_s: float, summary: Summary) -> ConsumerPeriod:
    """Return what is known since a monotonic time.

    Of a disk that is said to be throttled, it is what was used while it was.
    """
    slots = consumers.slots_since(since_s)
    throttled = [slot.throttled for slot in slots]
    throttled_s = sum(slot.throttled_s for slot in slots)
    said_s = sum(part.seconds for part in summary.throttled.values())
    is_throttled = throttled_s >= _LEAST_S and is_said(said_s, summary.seconds)
    usages = total_usages(
        throttled if is_throttled else (*throttled, *(slot.otherwise for slot in slots))
    )
    if sum(slot.seconds for slot in slots) < _LEAST_S:
        usages = {}
    return ConsumerPeriod(is_throttled, slots, _shares(usages, _first(summary)))


def _first(summary: Summary) -> Unit:
    """Return what the limit counts at which a disk was throttled for longest."""
    by_limit: defaultdict[LimitKind, float] = defaultdict(float)
    for (_, limit), part in summary.throttled.items():
        by_limit[OF_MACHINE.get(limit, limit)] += part.seconds
    longest = max(by_limit, key=by_limit.__getitem__, default="iops")
    return "bytes" if longest == "bandwidth" else "requests"


def _shares(usages: Usages, first: Unit) -> list[ConsumerShare]:
    consumers = {consumer for consumer, _ in usages}
    totals = {unit: _total(usages, unit) for unit in UNITS}
    shares = [
        ConsumerShare(
            consumer,
            _program(usages, consumer),
            *(_share(usages, consumer, unit, totals[unit]) for unit in UNITS),
        )
        for consumer in consumers
    ]
    order = (first, *(unit for unit in UNITS if unit != first))
    known = next((unit for unit in order if totals[unit]), first)
    return sorted(shares, key=lambda each: (-(getattr(each, known) or 0.0), each.consumer))


def _total(usages: Usages, unit: Unit) -> float:
    return sum(getattr(usage, unit) or 0.0 for usage in usages.values())


def _share(usages: Usages, consumer: str, unit: Unit, total: float) -> float | None:
    if not total:
        return None
    used = sum(getattr(use, unit) or 0.0 for (name, _), use in usages.items() if name == consumer)
    return float(used / total)


def _program(usages: Usages, consumer: str) -> str:
    """Return the program that made most requests of a consumer, of those that are known."""
    known = {
        program: use.requests or 0.0
        for (name, program), use in usages.items()
        if name == consumer and program
    }
    return max(known, key=known.__getitem__, default="")


def explain_who(
    consumers: ConsumerTotals, since_s: float, now_s: float, summary: Summary
) -> list[str]:
    """Return who used a disk since a monotonic time; nothing where it is not known."""
    period = period_since(consumers, since_s, summary)
    sentences = [*_who(period, _first(summary)), *_what_began(period, now_s)]
    held = [each for each in consumers.held if each.last_s > since_s]
    return [*sentences, *(_held(each.own, is_now=now_s - each.last_s < _NOW_S) for each in held)]


def _who(period: ConsumerPeriod, first: Unit) -> Iterator[str]:
    """Yield a sentence, and a second one if another leads by what the limit does not count."""
    if not period.shares:
        return
    order = (first, *(unit for unit in UNITS if unit != first))
    known = [unit for unit in order if any(getattr(each, unit) for each in period.shares)]
    lists = [_list(period.shares, unit) for unit in known]
    leaders = {
        max(period.shares, key=lambda each: getattr(each, unit) or 0.0).consumer for unit in known
    }
    when = "While it was throttled, " if period.is_throttled else ""
    yield from (f"{when}{text}." for text in lists[:1])
    if len(leaders) > 1:
        yield f"By {known[1]}, another one leads: {lists[1]}."


def _list(shares: Iterable[ConsumerShare], unit: Unit) -> str:
    """Return who used how much, as 'of its bytes, 83 % came from a.service'."""
    of_unit = [(each, getattr(each, unit) or 0.0) for each in shares]
    of_unit.sort(key=lambda each: -each[1])
    named = [
        (each, share)
        for each, share in of_unit
        if share >= _LEAST_SHARE and each.consumer not in {OTHER, UNATTRIBUTED}
    ][:_MOST_NAMED]
    lost = sum(share for each, share in of_unit if each.consumer == UNATTRIBUTED)
    rest = 1.0 - lost - sum(share for _, share in named)
    parts = [f"{_percent(share)} from {_named(each)}" for each, share in named]
    parts += [f"{_percent(rest)} from others"] if rest >= _LEAST_SHARE / 10 else []
    first, *others = parts or ["none from a known consumer"]
    head, _, who = first.partition(" from ")
    text = ", ".join([f"{head} of its {unit} came from {who}", *others])
    return text if lost < _LEAST_SHARE else f"{text}; {_percent(lost)} are not attributed"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _named(share: ConsumerShare) -> str:
    name = _WHO.get(share.consumer, share.consumer)
    is_named = share.program and name != f"program {share.program}"
    return f"{name} ({share.program})" if is_named else name


def _what_began(period: ConsumerPeriod, now_s: float) -> Iterator[str]:
    """Yield when a great consumer began, if it used nothing for a while before."""
    for share in period.shares[:_MOST_NAMED]:
        great = max(share.requests or 0.0, share.bytes or 0.0) >= 2 * _LEAST_SHARE
        if share.consumer in NOT_NAMED or not great:
            continue
        before = _before_it_began(period.slots, share.consumer)
        if sum(slot.seconds for slot in before) >= _QUIET_S:
            ago = format_duration(max(0.0, now_s - before[-1].end_s))
            yield f"{share.consumer} used none of it until {ago} ago."


def _before_it_began(slots: Iterable[Watched], consumer: str) -> list[Watched]:
    """Return the first slots, in which a consumer used nothing."""

    def is_without(slot: Watched) -> bool:
        return all(name != consumer for name, _ in (*slot.throttled, *slot.otherwise))

    return [*takewhile(is_without, slots)]


def _held(own: OwnLimit, *, is_now: bool) -> str:
    """Return that a group is held at its own limit."""
    if own.kind.startswith("bytes"):
        rate = f"{format_bandwidth(own.per_second)} {own.kind.removeprefix('bytes ')}"
    else:
        rate = f"{format_count(own.per_second)} {own.kind} per second"
    held = "is" if is_now else "was"
    return (
        f"{own.consumer} {held} held at its own limit of {rate} (io.max);"
        " the disk is not the reason."
    )
