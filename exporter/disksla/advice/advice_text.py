"""Text and JSON of `disksla advise`."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.table import Table

from disksla.advice.machines import MachineOutcome
from disksla.advice.search import Answer, Candidate, Needs, Outcome, least_of
from disksla.advice.simulation import ShareRange
from disksla.console import SafeConsole
from disksla.units import (
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_percent,
    format_size,
)


class MachineAdvice(NamedTuple):
    """What the machine would have done to the load of a group of disks."""

    devices: tuple[str, ...]
    outcomes: Sequence[MachineOutcome]
    """The first is the present machine."""
    disk_iops: float
    """IOPS that it allows the disk alone, for its mix of requests."""


class Advice(NamedTuple):
    """What would have been enough for the load of a disk."""

    devices: tuple[str, ...]
    """One, or all of a type that share its limits."""
    needs: Needs
    present: Outcome
    outcomes: Sequence[Outcome]
    machine: Sequence[MachineAdvice]

    def least(self, wanted: Answer, *, of_own_type: bool = False) -> Outcome | None:
        """Return the least performance that is as good as wanted; None if none is.

        The present disk, and then its type, come first among those with the same performance.
        """
        own = self.present.candidate.terms
        others = sorted(self.outcomes, key=lambda each: each.candidate.terms != own)
        return least_of(
            (
                each
                for each in (self.present, *others)
                if not of_own_type or each.candidate.terms == own
            ),
            wanted,
        )


def print_advice(advice: Advice) -> None:
    """Print a table of all disks that were tried, and what is enough in sentences."""
    console = SafeConsole()
    demand = advice.needs.demand
    console.print(
        f"{', '.join(advice.devices)}, {named(advice.present.candidate)}:"
        f" {format_duration(demand.seconds)} recorded, throttled for"
        f" {format_percent(demand.throttled_share)} of the time"
    )
    console.print()
    console.print(_table(advice))
    console.print()
    for machine in advice.machine:
        console.print(_machine_table(machine))
        console.print()
    for sentence in sentences(advice):
        console.print(sentence)


def sentences(advice: Advice) -> Iterator[str]:
    """Yield what is enough, what may be, and what is not known."""
    present = advice.present
    type_name = present.candidate.terms
    own, least = advice.least("enough", of_own_type=True), advice.least("enough")
    as_it_is = f"as it is, it would be throttled for {share_text(present.share)} of the time"
    if present.answer == "enough":
        yield "The disk is enough as it is."
    elif own is not None:
        yield f"Enough: {named(own.candidate)}; {as_it_is}."
    else:
        yield f"No {type_name} of this size or larger is certain to be enough; {as_it_is}."
    if least is not None and least is not own:
        yield f"Least performance of all types that is enough: {named(least.candidate)}."
    maybe = advice.least("maybe", of_own_type=True)
    if maybe is not None and maybe.answer == "maybe" and maybe is not present:
        share = share_text(maybe.share)
        yield f"Perhaps enough: {named(maybe.candidate)}, throttled for {share} of the time."
    limited_share = advice.needs.demand.limited_share
    if limited_share:
        yield (
            f"For {format_percent(limited_share)} of the time the disk made requests wait, and the"
            " load may have asked for more than it was given. The ranges are narrower for a"
            " recording under higher limits."
        )
    for machine in advice.machine:
        chosen = present if present.answer == "enough" else own or least
        of = f", over {machine.outcomes[0].title}," if len(advice.machine) > 1 else ""
        yield from _machine_sentences(machine, chosen, of)


def _machine_sentences(
    advice: MachineAdvice, chosen: Outcome | None, of: str = ""
) -> Iterator[str]:
    """Yield whether the machine throttles before the disk that is enough, and which is enough.

    `of` says which of its limits, where it has several.
    """
    present = advice.outcomes[0]
    name = f"{present.machine or 'machine'}{of}"
    if chosen is not None and advice.disk_iops < chosen.performance_iops:
        yield (
            f"The {name} would throttle first: it allows the disk {format_count(advice.disk_iops)}"
            " IOPS of this load."
        )
    if present.answer == "enough":
        return
    share = f"for {share_text(present.share)} of the time"
    enough = next((each for each in advice.outcomes if each.answer == "enough"), None)
    if enough is not None:
        yield f"Enough of a machine: {enough.machine}; the {name} would throttle {share}."
    else:
        yield f"The {name} would throttle {share}, and no larger one is certain to be enough."


def share_text(share: ShareRange) -> str:
    """Return a range of shares, such as '12 to 31 %'."""
    least, most = (format_percent(each) for each in share)
    if least == most:
        return least
    return f"{least.removesuffix(' %') if not least.startswith('under') else least} to {most}"


def named(candidate: Candidate) -> str:
    """Return a disk in words, such as 'aws.gp3, 200 GiB, with 4200 IOPS'."""
    text = f"{candidate.terms}, {format_size(candidate.size_bytes)}"
    bought = _bought(candidate)
    return f"{text}, with {bought}" if bought else text


def _bought(candidate: Candidate) -> str:
    """Return what is chosen beside type and size; empty if nothing is."""
    provision = candidate.provision
    parts = [f"{name}={value}" for name, value in provision.options.items()]
    if provision.iops is not None:
        parts.append(f"{format_count(provision.iops)} IOPS")
    if provision.bytes_per_second is not None:
        parts.append(format_listed_bandwidth(provision.bytes_per_second))
    return ", ".join(parts)


def _table(advice: Advice) -> Table:
    """Return a table of the present disk and of the others, by type."""
    table = _empty_table("type", "size", "bought")
    for outcome in (advice.present, *advice.outcomes):
        candidate = outcome.candidate
        name = candidate.terms.partition(".")[2]
        table.add_row(
            f"{name} (now)" if outcome is advice.present else name,
            format_size(candidate.size_bytes),
            _bought(candidate),
            *_outcome_cells(outcome),
        )
    return table


def _machine_table(advice: MachineAdvice) -> Table:
    table = _empty_table("machine", "disks", "limit over")
    for outcome in advice.outcomes:
        machine = outcome.machine or "this machine"
        devices = str(len(advice.devices))
        table.add_row(machine, devices, outcome.title, *_outcome_cells(outcome))
    return table


def _outcome_cells(outcome: Outcome | MachineOutcome) -> tuple[str, str, str]:
    return format_count(outcome.performance_iops), share_text(outcome.share), outcome.answer


def _empty_table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    first, second, third = names
    table.add_column(first, overflow="fold")
    table.add_column(second, justify="right", no_wrap=True)
    table.add_column(third)
    table.add_column("IOPS", justify="right", no_wrap=True)
    table.add_column("throttled", justify="right")
    table.add_column("answer", no_wrap=True)
    return table


def advice_document(advice: Advice) -> dict[str, Any]:
    """Return the advice for JSON, in base units."""
    demand, needs = advice.needs.demand, advice.needs
    own, least = advice.least("enough", of_own_type=True), advice.least("enough")
    return {
        "devices": advice.devices,
        "seconds": demand.seconds,
        "requests": demand.work.reads + demand.work.writes,
        "throttled_share": demand.throttled_share,
        "limited_share": demand.limited_share,
        "tolerated_share": needs.tolerated_share,
        "present": _outcome_document(advice.present),
        "enough": least and _outcome_document(least),
        "enough_of_type": own and _outcome_document(own),
        "disks": [_outcome_document(each) for each in advice.outcomes],
        "machine": [
            {
                "group": machine.outcomes[0].group,
                "devices": machine.devices,
                "disk_iops": _finite(machine.disk_iops),
                "machines": [
                    {
                        "machine": each.machine or None,
                        "iops": _finite(each.performance_iops),
                        "throttled_share": each.share._asdict(),
                        "answer": each.answer,
                    }
                    for each in machine.outcomes
                ],
            }
            for machine in advice.machine
        ],
    }


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    candidate = outcome.candidate
    return {
        "terms": candidate.terms,
        "size_bytes": candidate.size_bytes,
        "provisioned": msgspec.structs.asdict(candidate.provision),
        "limits": msgspec.structs.asdict(candidate.limits.rates),
        "iops": _finite(outcome.performance_iops),
        "throttled_share": outcome.share._asdict(),
        "answer": outcome.answer,
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
