"""Text and JSON of the limits of a machine, beside those of a disk."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from disksla.base.units import format_count, format_duration, format_listed_bandwidth
from disksla.promise.catalogue import (
    Limits,
    Machine,
    MachineGroup,
    MachineRules,
    Terms,
    group_rates,
    least_rates,
)
from disksla.tell.limits_text import (
    confidence_text,
    limits_document,
    limits_facts,
    rates_table,
    source_lines,
)
from disksla.tell.page import FactList, Heading, Line, PagePart

_KINDS = ("reads", "writes")


class DiskOnMachine(NamedTuple):
    """A disk, and the limits of its machine."""

    terms: Terms
    limits: Limits
    """Of the disk."""
    machine: Machine
    rules: MachineRules
    groups: tuple[MachineGroup, ...]
    """All groups of the machine."""

    @property
    def covering(self) -> list[MachineGroup]:
        """The groups that the disk is in."""
        return [group for group in self.groups if self.terms.id in group.covers]


def machine_document(disk: DiskOnMachine) -> dict[str, Any]:
    """Return the limits of the machine for JSON, in base units.

    `rates` are those that the disk may use alone on the machine.
    """
    return {
        "name": disk.machine.name,
        "vcpus": disk.machine.vcpus,
        "groups": [
            {
                "name": group.name,
                "title": group.title,
                "covers": group.covers,
                "is_cache": group.is_cache,
                "limits": limits_document(group.limits),
                "burst_inferred_from": group.inferred,
                "date": group.date,
                "confidence": group.confidence,
            }
            for group in disk.covering
        ],
        "rates": least_rates(disk.limits.rates, disk.covering),
        "not_known": disk.rules.not_known,
        "sources": disk.rules.sources,
    }


def machine_page(disk: DiskOnMachine) -> list[PagePart]:
    """Return the limits of the machine over the disk and others, and which limit is lower."""
    parts: list[PagePart] = []
    if not disk.covering:
        parts.append(Line(f"{disk.machine.shown}: no limit over {disk.terms.id} is known."))
    for group in disk.covering:
        parts += [
            Heading(f"{disk.machine.shown}: {group.title}", level=1),
            rates_table(group.limits),
            FactList([*_facts(group)]),
            *([] if group.is_cache else [Line(compare(disk, group))]),
        ]
    return [
        *parts,
        FactList([("not known", disk.rules.not_known)]),
        *source_lines(disk.rules.sources),
    ]


def machine_note(rules: MachineRules, terms: Terms) -> str | None:
    """Return how to see the limits of a machine; None if none is over this type."""
    for rule in rules.groups:
        if terms.id in rule.covers and not rule.is_cache:
            rates = group_rates(rule)
            if rates is not None:
                return f"{rates} for {rule.title}; --vcpus N prints them"
            return f"has a limit over {rule.title}; --machine TYPE prints it"
    return None


def compare(disk: DiskOnMachine, group: MachineGroup) -> str:
    """Return a sentence that compares the baseline of a machine with that of the disk."""
    base, burst = group.limits.rates, group.limits.burst
    of_disk = "these disks" if disk.terms.scope == "machine" else "this disk"
    compared = [
        _Compared(*rates, burst.seconds if burst is not None else None, of_disk)
        for rates in zip(
            msgspec.structs.astuple(base),
            msgspec.structs.astuple(base if burst is None else burst.rates),
            msgspec.structs.astuple(disk.limits.rates),
            strict=True,
        )
    ]
    known = [
        *_reads_and_writes(compared[:2], lambda rate: f"{format_count(rate)} IOPS"),
        *_reads_and_writes(compared[2:], format_listed_bandwidth),
    ]
    return f"{disk.machine.shown} allows {group.title} {', and '.join(known)}."


class _Compared(NamedTuple):
    base: float | None
    peak: float | None
    of_disk: float | None
    burst_s: float | None
    disk: str

    def amount(self, shown: Callable[[float], str]) -> str:
        """Return the rate of the machine, and that of its burst."""
        base, peak = self.base or 0.0, self.peak or 0.0
        if peak <= base or self.burst_s is None:
            return shown(base)
        return f"{shown(base)} ({shown(peak)} for {format_duration(self.burst_s)})"

    @property
    def relation(self) -> str:
        """How the rate of the machine compares with that of the disk."""
        base, peak = self.base or 0.0, self.peak or 0.0
        if self.of_disk is None:
            return f"for which {self.disk} has no limit"
        if math.isclose(base, self.of_disk):
            return f"as much as {self.disk}"
        if base > self.of_disk:
            return f"more than {self.disk}"
        return f"less than {self.disk}{', even in the burst' * (base < peak < self.of_disk)}"


def _reads_and_writes(compared: list[_Compared], shown: Callable[[float], str]) -> Iterator[str]:
    """Yield a text on reads and writes; none if the machine has no such limit."""
    limited = [each for each in compared if each.base is not None]
    if limited:
        amounts = _joined([each.amount(shown) for each in limited])
        yield f"{amounts}, {_joined([each.relation for each in limited])}"


def _joined(texts: list[str]) -> str:
    """Return the texts on reads and on writes, once if they are equal."""
    if len(set(texts)) == 1:
        return texts[0]
    return " and ".join(f"{text} for {what}" for text, what in zip(texts, _KINDS, strict=True))


def _facts(group: MachineGroup) -> Iterator[tuple[str, str]]:
    yield from limits_facts(group.limits)
    if group.inferred is not None:
        yield "inferred from", f"'{group.inferred}' (the credits are not published)"
    yield "as of", str(group.date)
    if group.confidence != "high":
        yield "confidence", confidence_text(group.confidence)
