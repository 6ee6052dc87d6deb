"""Sentences that say whether the load, a limit or the disk was the problem lately."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from disksla.base.units import (
    format_bandwidth,
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_size,
)
from disksla.promise.catalogue import Assignment, Limits, Rates, SharedLimits
from disksla.state.history import Slot
from disksla.tell.explanation.condition import describe_load, is_said
from disksla.tell.explanation.summary import SlowPart, Summary, SummaryPart
from disksla.tell.explanation.words import (
    describe_rates,
    iops_text,
    limit_text,
    read_and_write,
    seconds_text,
)
from disksla.verdict.throttling import NEARLY, OF_MACHINE, LimitKind, ThrottleLevel, needed_depth

FAR_BELOW = 0.8
"""Of a limit: a disk whose load was lower in each second was not throttled at it."""
_NOW_S = 5.0
"""What applied in this time before the end of a period applies now."""
_MOSTLY = 0.5
"""Share of the time with requests."""
_NEARLY = 0.97
_CLOSE = 1.1
"""Of a limit: a disk that served more had burst credits for a part of the time."""


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
    """Return sentences about a period of a disk: problems first.

    Of them, those that there are now come first, then the longest.

    `machine_s` is the time in which the limit of the machine throttled any of its disks, `who` are
    sentences about the consumers of the disk.
    """
    if not summary.verdicts:
        return ["Nothing was measured: there were no two samples of this disk in a row."]
    problems = sorted(
        _problems(summary, assignment, machine),
        key=lambda each: (each[0].last_s < summary.end_s - _NOW_S, -each[0].seconds),
    )
    sentences = [*(sentence for _, sentence in problems), *(who if problems else ())]
    if not problems and not is_said(machine_s, summary.seconds):
        sentences += _acquittal(summary, shared=assignment.limits.shared_by is not None)
    sentences += _other_verdicts(summary, assignment.limits)
    sentences += _other_operations(summary, assignment.limits)
    sentences += () if problems else who
    period = f"{seconds_text(summary.seconds)} s"
    return sentences or [f"{period} is too short a time to say anything about this disk."]


def describe_machine(shared: SharedLimits) -> str:
    """Return the limits of the machine over a group of disks, in words."""
    owner = f"{shared.machine}: " if shared.machine else ""
    text = f"{owner}{describe_rates(shared.limits.rates)} for {shared.title}"
    burst = shared.limits.burst
    return text if burst is None else f"{text}; {describe_rates(burst.rates)} with burst credits"


def explain_writes(slots: Iterable[Slot], why_not_exact: str | None = None) -> list[str]:
    """Return a sentence on whether data writes were counted exactly, if the disk has flushes.

    `why_not_exact` is the reason why not, if there is one.
    """
    totals = [slot.totals for slot in slots if slot.totals.flushes]
    exact = [each.least_writes == each.most_writes for each in totals]
    if not exact:
        return []
    if any(exact):
        seconds = f"{sum(exact)} of {len(exact)} seconds with flushes"
        return [f"Its data writes are counted exactly, without empty flushes, in {seconds}."]
    why = "The kernel counts empty flushes of this disk as writes, so that the number of data"
    reason = f": {why_not_exact}" if why_not_exact else ""
    known = "writes is only known between two bounds. They were not counted exactly"
    return [f"{why} {known}{reason}."]


def _problems(
    summary: Summary, assignment: Assignment, machine: MachineLimit | None
) -> Iterator[tuple[SummaryPart | SlowPart, str]]:
    """Yield problems, each with what the disk did while it lasted."""
    limits = assignment.limits
    for (level, limit), part in summary.throttled.items():
        if not is_said(part.seconds, summary.seconds):
            continue  # a rate may be that of a limit by chance for a window or two
        rates = summary.unknown_rates if level == "unknown" else ()
        for each in [each for each in rates if is_said(each.seconds, summary.seconds)] or [part]:
            how_long = _how_long(each.seconds, summary)
            if limit in OF_MACHINE:
                sentence = _throttled_by_machine(how_long, each, level, OF_MACHINE[limit], machine)
            else:
                sentence = _throttled(how_long, each, limits, level, limit)
            yield each, sentence
    below, stalled = summary.verdicts.get("below"), summary.verdicts.get("stalled")
    slow = summary.slow
    if below is not None and is_said(below.seconds, summary.seconds):
        yield below, _below(_how_long(below.seconds, summary), below, limits)
    if slow is not None and is_said(slow.seconds, summary.seconds):
        yield slow, _slow(_how_long(slow.seconds, summary), slow, limits)
    if stalled is not None:  # for a second at least, which is never too short to be said
        where = "the disk, or the storage behind it, hung"
        if limits.shared_by is not None:
            where = "the server of the file storage, or the network to it, did not answer"
        found = f"{_how_long(stalled.seconds, summary)} requests were in flight and none completed"
        yield stalled, f"{found}: {where}. Neither a limit nor load causes that."


def _below(how_long: str, part: SummaryPart, limits: Limits) -> str:
    number = round(part.inflight)
    requests = "request" if number == 1 else "requests"
    depth = needed_depth(int(part.bytes_per_second / max(1.0, part.iops)), limits)
    # With fewer in flight than a promise needs, a limiter was seen.
    is_deep = depth is not None and number >= NEARLY * depth
    gave = "gave less" if is_deep else "was limited to less"
    unit = limits.one_unit
    of_units = ""
    if unit is not None:  # a load on a part of such a disk may use a few of them only
        of_units = f" Each allocation unit of {format_size(unit.size_bytes)} has its own limit, so"
        of_units += " a load that does not use all units gets less."
    return (
        f"{how_long} the disk {gave} than promised: {_rates(part)}, with"
        f" {format_count(number)} {requests} in flight; the promise is"
        f" {describe_rates(limits.rates)}.{of_units}"
    )


def _slow(how_long: str, part: SlowPart, limits: Limits) -> str:
    """Return how long requests took, beside what is promised or usual."""
    requests = {"read": "reads", "write": "writes", None: "requests"}[part.direction]
    took = f"{how_long} {requests} took {format_duration(part.latency_s)} each"
    expected = format_duration(part.expected_s)
    if part.than == "promise":
        kind = f" ({limits.latency_kind})" if limits.latency_kind else ""
        found = f"{took}; {expected} is promised{kind}"
    else:
        times = format_count(part.latency_s / part.expected_s if part.expected_s else 0.0)
        found = f"{took}, {times} times their usual {expected}"
    return f"{found}: the disk is slow. No limit was seen that explains it."


def _how_long(seconds: float, summary: Summary) -> str:
    """Return how long, as the beginning of a sentence."""
    seconds = min(seconds, summary.seconds)  # of those that a provider names, some are late
    return f"For {seconds_text(seconds)} of the last {seconds_text(summary.seconds)} s"


def _rates(part: SummaryPart, limit: float | None = None) -> str:
    """Return rates of data, as a range where flushes leave a doubt.

    Beside a limit of IOPS, they are those between the bounds nearest to it.
    """
    if limit is None:
        iops = iops_text(part.iops, part.most_iops)
    else:
        iops = f"{format_count(_iops_near(part, limit))} of {iops_text(limit)}"
    return f"{iops}, {format_bandwidth(part.bytes_per_second)}"


def _iops_near(part: SummaryPart, limit: float) -> float:
    """Return what is nearest to a limit of the IOPS that the disk may have served."""
    # The kernel merges flushes of several writers: of the writes, up to half may be empty.
    least = min(part.iops, part.most_iops / 2) if part.iops < part.most_iops else part.iops
    return min(max(least, limit), max(part.iops, part.most_iops))


def _served(part: SummaryPart, limit: float | None = None) -> str:
    wait = format_duration(part.wait_s)
    return f"requests waited {wait} each, and the disk served {_rates(part, limit)}"


def _one_limit(rates: Rates, limit: LimitKind) -> float | None:
    """Return a limit of IOPS that reads and writes have together; None without one."""
    read, write = read_and_write(rates, limit)
    return read if limit == "iops" and read == write else None


def _throttled_by_machine(
    how_long: str,
    part: SummaryPart,
    level: ThrottleLevel,
    limit: LimitKind,
    machine: MachineLimit | None,
) -> str:
    found = f"{how_long} the disk was throttled at the limit of the machine: {_served(part)}"
    relief = "A larger or faster disk would not help"
    if machine is None or read_and_write(machine.shared.limits.rates, limit) == (None, None):
        return f"{found}. {relief}."
    limits = machine.shared.limits
    if machine.shared.device is not None:
        return (
            f"{how_long} this machine was throttled at what one client of the file storage may"
            f" get, {limit_text(limits.rates, limit)}: {_served(part)}. More of the storage would"
            " not help; more clients would."
        )
    allowed = f"{_owner(machine.shared)} allows {machine.shared.title}"
    if level == "burst" and limits.burst is not None:
        allowed += (
            f" {limit_text(limits.burst.rates, limit)} (burst rate; without credits"
            f" {limit_text(limits.rates, limit)})"
        )
    else:
        allowed += f" {limit_text(limits.rates, limit)}"
    if machine.uncached is not None and _is_more(machine.uncached.limits, limits, limit):
        without = limit_text(machine.uncached.limits.rates, limit)
        found, allowed = f"{found}; {allowed}{_as_listed(limits.rates, limit)}", relief
        relief = f"Caching None would, up to {without} of the machine"
    larger = machine.larger.get(limit)
    if larger is None:
        return f"{found}. {allowed}. {relief}; a larger machine may."
    rate = format_bandwidth(larger.rate) if limit == "bandwidth" else iops_text(larger.rate)
    return f"{found}. {allowed}. {relief}; {larger.name} would ({rate})."


def _is_more(one: Limits, other: Limits, limit: LimitKind) -> bool:
    """Return whether the first limits allow more of reads or of writes, and of neither less."""
    pairs = zip(read_and_write(one.rates, limit), read_and_write(other.rates, limit), strict=True)
    known = [(high, low) for high, low in pairs if high is not None and low is not None]
    return any(high > low for high, low in known) and all(high >= low for high, low in known)


def _as_listed(rates: Rates, limit: LimitKind) -> str:
    """Return a bandwidth as providers write it, in parentheses; nothing of IOPS."""
    read, write = read_and_write(rates, limit)
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
    rates = limits.burst.rates if level == "burst" and limits.burst is not None else limits.rates
    one_limit = _one_limit(rates, limit) if level != "unknown" else None
    served = _served(part, one_limit)
    is_mixed = level == "base" and limits.burst is not None
    if is_mixed and one_limit and _iops_near(part, one_limit) > _CLOSE * one_limit:
        served += ", at first at its burst rate"
    if part.limiter_window_s is not None:
        served += f", at intervals of {format_duration(float(f'{part.limiter_window_s:.2g}'))}"
    if limit != "unknown" and read_and_write(limits.rates, limit) == (None, None):
        kind = "bandwidth" if limit == "bandwidth" else "IOPS"
        return (
            f"{how_long} the disk was throttled at its limit of {kind}, by the provider's count:"
            f" {served}. Its terms have no such limit; configure them to compare this with what"
            " was sold."
        )
    if limits.shared_by is not None and level != "unknown":
        without = f"; without credits it is {limit_text(limits.rates, limit)}"
        has_relief = level == "base" and limits.burst is not None and limits.relief is not None
        return (
            f"{how_long} the file storage was throttled at its limit of {limit_text(rates, limit)}"
            f"{without if level == 'burst' else ' (baseline)'}: {served}. The limit is shared by"
            f" {limits.shared_by}; this machine alone reached it."
            f"{f' {limits.relief}' if has_relief else ''}"
        )
    if level == "base":
        relief = "fewer bytes" if limit == "bandwidth" else "fewer requests"
        return (
            f"{how_long} the disk was throttled at its limit of"
            f" {limit_text(limits.rates, limit)} (baseline): {served}. That is what you bought:"
            f" the provider keeps its promise. A larger or faster disk, or {relief}, would help."
        )
    if level == "burst" and limits.burst is not None:
        return (
            f"{how_long} the disk was throttled at"
            f" {limit_text(limits.burst.rates, limit)} (burst rate): {served}. This uses up burst"
            f" credits; without credits the limit is {limit_text(limits.rates, limit)}."
        )
    return (
        f"{how_long} the disk was throttled at an unknown limit: {served}."
        f" {_unexplained(part, limits)}"
    )


def _unexplained(part: SummaryPart, limits: Limits) -> str:
    """Return what may explain the rate of a limiter that is none of the limits."""
    if part.load is None or part.most_load is None:
        return "There are no terms to compare this with."
    if part.load > _CLOSE and limits.burst is None:
        return (
            f"It serves {part.load:.2g} times what its terms say: was it enlarged, or changed to"
            " another type? Correct the terms."
        )
    others = (
        "either the disk is of another type or size than configured, or the provider counts"
        " requests in another way (a large one as several), or a limit of the machine applies that"
        " is not configured. Until that is known, the promise is not tested."
    )
    if part.most_load < 1:
        return f"That is less than is promised ({describe_rates(limits.rates)}): {others}"
    return f"The terms of this disk do not explain this rate: {others}"


def _acquittal(summary: Summary, *, shared: bool) -> Iterator[str]:
    """Yield that nothing was wrong, as far as that is known.

    No limit throttled the disk if it was far below all of them; without terms, there may be a
    limiter that shows no sign. Whether it was slow is known beside a promise or what is usual.
    """
    idle = summary.verdicts.get("idle")
    active_s = summary.seconds - (idle.seconds if idle is not None else 0.0)
    is_below_limits = summary.peak_load is not None and summary.peak_load < FAR_BELOW
    if summary.load is None or not is_below_limits or not is_said(active_s, summary.seconds):
        return
    if shared:
        return  # what others use of the limit is not known
    facts = describe_load(summary.load, "its limit")
    if summary.latency_s is not None:
        facts += f", {format_duration(summary.latency_s)}"
    if summary.compared_s >= _MOSTLY * active_s:
        yield f"Nothing was wrong with this disk: {facts}."
    else:
        yield (
            f"No limit held this disk back: {facts}. Which latency is usual for such requests is"
            " not known yet."
        )


def _other_verdicts(summary: Summary, limits: Limits) -> Iterator[str]:
    said = {
        name: part
        for name, part in summary.verdicts.items()
        if is_said(part.seconds, summary.seconds)
    }
    if (part := said.get("met")) is not None:
        gave = "the disk gave what is promised or more"
        yield f"{_how_long(part.seconds, summary)} {gave}: {_rates(part)}."
    if (part := said.get("unproven")) is not None:
        found = "the disk served the load, and there is no promise to compare it with"
        if (part.load or 0.0) < _NEARLY <= (part.most_load or 0.0):
            found = "the load may have asked for what is promised (flushes leave a doubt)"
        elif limits.promise_charges:
            found = "the load asked for less than is promised"
        if limits.shared_by is not None and "met" in said:
            found = f"the load was below the limit, which is shared by {limits.shared_by}"
        elif limits.shared_by is not None and summary.load is not None:
            limit = f"a limit that is shared by {limits.shared_by}"
            found = f"this machine used {describe_load(summary.load, limit)}"
        yield f"{_how_long(part.seconds, summary)} {found}: {_rates(part)}."
    if "idle" in said:
        yield f"{_how_long(said['idle'].seconds, summary)} the disk was idle."


def _other_operations(summary: Summary, limits: Limits) -> Iterator[str]:
    """Yield how many operations of a mount were no data, if most were; an idle one has few.

    Operations of a time that was not assessed are counted, too: there may be no other.
    """
    if summary.others <= max(summary.requests, summary.seconds):
        return
    if not is_said(summary.seconds, summary.seconds):
        return
    others, requests = summary.others / summary.seconds, summary.requests / summary.seconds
    compared = "They are compared with no limit."
    for bucket in limits.buckets:
        used = others * (bucket.metered.least_bytes if bucket.metered is not None else 1)
        share = describe_load(used / bucket.base_per_second, "the baseline")
        compared = f"As burst credits count them, they alone use {share}."
    yield (
        "Most operations were neither reads nor writes, but metadata, locks or commits:"
        f" {format_count(round(others))} per second, beside {format_count(round(requests))}"
        f" reads and writes. {compared}"
    )
