"""Sentences that say whether the load, a limit or the disk was the problem lately."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from disksla.history.summary import Summary, SummaryPart
from disksla.limits import Assignment, Limits, Rates, SharedLimits
from disksla.pipeline import WindowRecord
from disksla.units import format_bandwidth, format_count, format_duration, format_listed_bandwidth
from disksla.verdict import OF_MACHINE, LimitKind, ThrottleLevel

LEAST_SHARE = 0.02
"""Verdicts without a problem are left out below this share of the time, and limits below this
share of the throttled time."""
FAR_BELOW = 0.8
"""Of a limit: a disk whose load was lower in each second was not throttled at it."""
_LEAST_BAD_S = 1.0
_MAX_NAMED = 8
_WHOLE_FROM_S = 10.0
"""Seconds are shown without a fraction from here on."""


class LargerMachine(NamedTuple):
    """A machine of the same family with a higher limit."""

    name: str
    rate: float
    """IOPS, or bytes per second."""


class MachineLimit(NamedTuple):
    """The limit of the machine over a disk and others, and which machines have more."""

    shared: SharedLimits
    larger: Mapping[LimitKind, LargerMachine]
    """By `iops` and `bandwidth`; without those that no machine of the family has more of."""
    uncached: SharedLimits | None = None
    """The limit that holds instead without caching, of a limit over the cache of the host."""


def explain(
    summary: Summary,
    assignment: Assignment,
    machine: MachineLimit | None = None,
    machine_s: float = 0.0,
    who: Sequence[str] = (),
) -> list[str]:
    """Return sentences about a period of a disk: problems first, the longest of them first.

    `machine_s` is the time in which the limit of the machine throttled any of its disks, `who` are
    sentences about the consumers of the disk.
    """
    if not summary.verdicts:
        return ["Nothing was measured: no two samples of this disk were without a gap."]
    problems = sorted(_problems(summary, assignment, machine), key=lambda each: -each[0])
    sentences = [*(sentence for _, sentence in problems), *who]
    sentences += _other_verdicts(summary, assignment.limits)
    if not problems and machine_s <= LEAST_SHARE * summary.seconds and _is_tested(summary):
        sentences.append(
            "If something was slow in this time, throttling of this disk was not the reason."
        )
    return sentences


def headline(bad_s: Mapping[str, float], period: str, seconds: float) -> str:
    """Return which disks had a problem in a period, as a sentence.

    `bad_s` has how long each disk was throttled, below its promise or stalled. Below a second, or
    2 % of a period that is shorter than 50 s, that is no problem.
    """
    least_s = min(_LEAST_BAD_S, LEAST_SHARE * seconds)
    bad = [name for name, each_s in bad_s.items() if each_s and each_s >= least_s]
    what = f"throttled, below the promise or stalled in {period}"
    if not bad:
        return f"No disk was {what}."
    were = "was" if len(bad) == 1 else "were"
    more = f" and {len(bad) - _MAX_NAMED} more" if len(bad) > _MAX_NAMED else ""
    named = ", ".join(bad[:_MAX_NAMED])
    return f"{len(bad)} of {len(bad_s)} disks {were} {what}: {named}{more}."


def describe_machine(shared: SharedLimits) -> str:
    """Return the limits of the machine over a group of disks, in words."""
    owner = f"{shared.machine}: " if shared.machine else ""
    text = f"{owner}{describe_rates(shared.limits.rates)} for {shared.title}"
    burst = shared.limits.burst
    return text if burst is None else f"{text}; {describe_rates(burst.rates)} with burst credits"


def explain_writes(records: Iterable[WindowRecord], why_not_exact: str | None = None) -> list[str]:
    """Return a sentence on whether data writes were counted exactly, if the disk has flushes.

    `why_not_exact` is the reason why not, if there is one.
    """
    exact = [record.is_exact for record in records if record.flushes]
    if not exact:
        return []
    if any(exact):
        windows = f"{sum(map(bool, exact))} of {len(exact)} windows with flushes"
        return [f"Its data writes are counted exactly, without empty flushes, in {windows}."]
    reason = f": {why_not_exact}" if why_not_exact else ""
    sentence = (
        "The kernel counts empty flushes of this disk as writes, so that the number of data writes"
        f" is only known between two bounds. They were not counted exactly{reason}."
    )
    return [sentence]


def _problems(
    summary: Summary, assignment: Assignment, machine: MachineLimit | None
) -> Iterator[tuple[float, str]]:
    """Yield problems, each with how long it lasted."""
    limits = assignment.limits
    least_s = LEAST_SHARE * sum(part.seconds for part in summary.throttled.values())
    for (level, limit), part in summary.throttled.items():
        if part.seconds < least_s:
            continue  # a rate may be that of a limit by chance for a window or two
        how_long = _how_long(part, summary)
        if limit in OF_MACHINE:
            sentence = _throttled_by_machine(how_long, part, level, OF_MACHINE[limit], machine)
        else:
            sentence = _throttled(how_long, part, limits, level, limit)
        yield part.seconds, sentence
    below = summary.verdicts.get("below")
    if below is not None:
        yield (
            below.seconds,
            (
                f"{_how_long(below, summary)} the disk gave less than promised: {_rates(below)},"
                f" with {format_count(round(below.inflight))} requests in flight; the promise is"
                f" {describe_rates(limits.rates)}."
                " Report this to the provider, with a recording (disksla record) as evidence."
            ),
        )
    stalled = summary.verdicts.get("stalled")
    if stalled is not None:
        yield (
            stalled.seconds,
            (
                f"{_how_long(stalled, summary)} requests were in flight and none completed: the"
                " disk, or the storage behind it, hung. Neither a limit nor load causes that."
            ),
        )


def _how_long(part: SummaryPart, summary: Summary) -> str:
    """Return how long, as the beginning of a sentence."""
    return f"For {_seconds(part.seconds)} of the last {_seconds(summary.seconds)} s"


def _rates(part: SummaryPart) -> str:
    flushes = " (with empty flushes)" if part.has_flushes else ""
    return f"{format_count(part.iops)} IOPS{flushes}, {format_bandwidth(part.bytes_per_second)}"


def _served(part: SummaryPart) -> str:
    wait = format_duration(part.wait_s)
    return f"requests waited {wait} each, and the disk served {_rates(part)}"


def _throttled_by_machine(
    how_long: str,
    part: SummaryPart,
    level: ThrottleLevel,
    limit: LimitKind,
    machine: MachineLimit | None,
) -> str:
    found = f"{how_long} the disk was throttled at the limit of the machine: {_served(part)}"
    relief = "A larger or faster disk would not help"
    if machine is None or _read_and_write(machine.shared.limits.rates, limit) == (None, None):
        return f"{found}. {relief}."
    limits = machine.shared.limits
    allowed = f"{_owner(machine.shared)} allows {machine.shared.title}"
    if level == "burst" and limits.burst is not None:
        allowed += (
            f" {_limit(limits.burst.rates, limit)} (burst rate; without credits"
            f" {_limit(limits.rates, limit)})"
        )
    else:
        allowed += f" {_limit(limits.rates, limit)}"
    if machine.uncached is not None and _is_more(machine.uncached.limits, limits, limit):
        without = _limit(machine.uncached.limits.rates, limit)
        found, allowed = f"{found}; {allowed}{_as_listed(limits.rates, limit)}", relief
        relief = f"Caching None would, up to {without} of the machine"
    larger = machine.larger.get(limit)
    if larger is None:
        return f"{found}. {allowed}. {relief}; a larger machine may."
    rate = format_bandwidth(larger.rate) if limit == "bandwidth" else _iops(larger.rate)
    return f"{found}. {allowed}. {relief}; {larger.name} would ({rate})."


def _is_more(one: Limits, other: Limits, limit: LimitKind) -> bool:
    """Return whether the first limits allow more of reads or of writes, and of neither less."""
    pairs = zip(
        _read_and_write(one.rates, limit), _read_and_write(other.rates, limit), strict=True
    )
    known = [(high, low) for high, low in pairs if high is not None and low is not None]
    return any(high > low for high, low in known) and all(high >= low for high, low in known)


def _as_listed(rates: Rates, limit: LimitKind) -> str:
    """Return a bandwidth as providers write it, in parentheses; nothing of IOPS."""
    read, write = _read_and_write(rates, limit)
    rate = write if read is None else read
    is_one = limit == "bandwidth" and rate is not None and write in {None, read}
    return f" ({format_listed_bandwidth(rate)})" if is_one and rate is not None else ""


def _owner(shared: SharedLimits) -> str:
    """Return the machine as the beginning of a sentence."""
    if " " in shared.machine:
        return f"A machine with {shared.machine}"
    return shared.machine or "It"


def _throttled(
    how_long: str, part: SummaryPart, limits: Limits, level: ThrottleLevel, limit: LimitKind
) -> str:
    served = _served(part)
    if part.limiter_window_s is not None:
        served += f", at intervals of {format_duration(part.limiter_window_s)}"
    if limit != "unknown" and _read_and_write(limits.rates, limit) == (None, None):
        kind = "bandwidth" if limit == "bandwidth" else "IOPS"
        return (
            f"{how_long} the disk was throttled at its limit of {kind}, by the provider's count:"
            f" {served}. Its terms have no such limit; configure them to compare this with what"
            " was sold."
        )
    if level == "base":
        relief = "fewer bytes" if limit == "bandwidth" else "fewer requests"
        return (
            f"{how_long} the disk was throttled at its limit of"
            f" {_limit(limits.rates, limit)} (baseline): {served}. The provider keeps its promise"
            f" of {describe_rates(limits.rates)}. A larger or faster disk, or {relief}, would"
            " help."
        )
    if level == "burst" and limits.burst is not None:
        return (
            f"{how_long} the disk was throttled at"
            f" {_limit(limits.burst.rates, limit)} (burst rate): {served}. This uses up burst"
            f" credits; without credits the limit is {_limit(limits.rates, limit)}."
        )
    unknown = f"{how_long} the disk was throttled at an unknown limit: {served}."
    if not limits.promise_charges:
        return f"{unknown} Configure the terms of this disk to compare this with what was sold."
    return (
        f"{unknown} The terms of this disk do not explain this rate. Either it is of another type"
        " or size than configured, or the provider counts requests in another way (a large one as"
        " several), or a limit of the machine applies that is not configured."
    )


def _is_tested(summary: Summary) -> bool:
    """Return whether it is known that no limit throttled the disk: it was far below all of them.

    Without terms, there may be a limiter that shows no sign.
    """
    return summary.peak_load is not None and summary.peak_load < FAR_BELOW


def _other_verdicts(summary: Summary, limits: Limits) -> Iterator[str]:
    least_s = LEAST_SHARE * summary.seconds
    long = {name: part for name, part in summary.verdicts.items() if part.seconds > least_s}
    if "met" in long:
        part = long["met"]
        yield (
            f"{_how_long(part, summary)} the disk gave what is promised or more: {_rates(part)}."
        )
    if "unproven" in long:
        if limits.promise_charges:
            found = "the load did not test the promise"
        else:
            found = "the disk served the load, and there is no promise to compare it with"
        part = long["unproven"]
        yield f"{_how_long(part, summary)} {found}: {_rates(part)}."
    if "idle" in long:
        yield f"{_how_long(long['idle'], summary)} the disk was idle."


def describe_rates(rates: Rates) -> str:
    """Return all limits of the rates as text."""
    kinds: tuple[LimitKind, ...] = ("iops", "bandwidth")
    present = (limit for limit in kinds if _read_and_write(rates, limit) != (None, None))
    return " and ".join(_limit(rates, limit) for limit in present)


def _limit(rates: Rates, limit: LimitKind) -> str:
    """Return one limit as text, with a single number if reads and writes have the same."""
    read, write = _read_and_write(rates, limit)
    formatted = format_bandwidth if limit == "bandwidth" else _iops
    if read == write or write is None or read is None:
        rate = read if read is not None else write
        kind = "" if read == write else " for reads" if write is None else " for writes"
        return f"{formatted(rate or 0.0)}{kind}"
    return f"{formatted(read)} for reads and {formatted(write)} for writes"


def _read_and_write(rates: Rates, limit: LimitKind) -> tuple[float | None, float | None]:
    if limit == "bandwidth":
        return rates.read_bytes_per_second, rates.write_bytes_per_second
    return rates.read_iops, rates.write_iops


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= _WHOLE_FROM_S else f"{seconds:.2g}"


def _iops(rate: float) -> str:
    return f"{format_count(rate)} IOPS"
