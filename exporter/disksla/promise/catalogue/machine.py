"""Limits of a machine over its disks, by machine type or number of vCPUs.

A provider limits what all disks of a machine do together. The file of a provider in `machines/`
has its groups: which types of disk share a limit, and where its numbers are. They are in a table
with a line for each machine type, or follow from the number of vCPUs.
"""

import datetime as dt
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.schema import BytesPerSecond, Flag, LongText, Number, Seconds, Text
from disksla.promise.catalogue.burst_rules import burst_buckets
from disksla.promise.catalogue.cost_model import Additive
from disksla.promise.catalogue.limits import (
    UNKNOWN_TERMS,
    BudgetKind,
    Budgets,
    Burst,
    LimiterTerms,
    Limits,
    Rates,
    build_limits,
)
from disksla.promise.catalogue.rules import Amount
from disksla.promise.catalogue.terms import Confidence, RowSource

Row = Mapping[str, str]  # a line of a table, by column

MachineKey = Literal["name", "series", "vcpus"]


class _MachineRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="rule"):
    """Base of the rules of machines."""


class FromTable(_MachineRule, Generic[Amount], frozen=True, tag="from-table"):
    """A rate in a column of the table, and the burst rate in another."""

    column: Text
    burst_column: Text | None = None
    unit: Amount | None = None
    """Rate of which the table has multiples, such as 1MB/s; None for plain numbers."""

    def rates(self, row: Row, _vcpus: int) -> tuple[float | None, float | None]:
        """Return the baseline and the burst rate; None where the table has none."""
        base = self._cell(row, self.column)
        burst = self._cell(row, self.burst_column) if self.burst_column else None
        return base, base if burst is None else burst

    def _cell(self, row: Row, column: str) -> float | None:
        return float(row[column]) * (self.unit or 1.0) if row[column] else None


class PerVcpu(_MachineRule, Generic[Amount], frozen=True, tag="per-vcpu"):
    """A rate for each vCPU, up to a maximum."""

    per_vcpu: Amount
    maximum: Amount | None = None

    def rates(self, _row: Row, vcpus: int) -> tuple[float | None, float | None]:
        """Return the baseline twice: there is no burst."""
        rate = min(self.per_vcpu * vcpus, math.inf if self.maximum is None else self.maximum)
        return rate, rate


MachineIops = FromTable[Number] | PerVcpu[Number]
MachineBandwidth = FromTable[BytesPerSecond] | PerVcpu[BytesPerSecond]


class MachineBurst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits for a number of seconds at the burst rates, filled at the baseline; full at first.

    Those of IOPS and of bandwidth are apart.
    """

    seconds: Seconds
    inferred: Text  # what the provider states, from which the credits are inferred


class GroupRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A group of disk types, and where the limit is that they share."""

    name: Text
    title: Text  # what the limit is over, such as 'all its EBS volumes together'
    covers: tuple[Text, ...]  # ids of the types of disk
    instead_of: Text | None = None
    """The group that its disks are in where the table has no limits of this group."""
    is_cache: Flag = False
    """Whether it is over requests to the cache of the host, which are not sent to a disk."""
    rows: Mapping[str, Text] = {}  # lines of the table that it is in, by column; all if empty
    budget: BudgetKind | Budgets
    read_iops: MachineIops
    write_iops: MachineIops
    read_bandwidth: MachineBandwidth
    write_bandwidth: MachineBandwidth
    burst: MachineBurst | None = None
    limiter: LimiterTerms | None = None
    may_cost: Additive | None = None
    """A request may cost both IOPS and bandwidth, as it does at a disk. The limits are a range
    then, between this cost and that of separate budgets."""


class MachineRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of the machines of one provider.

    The columns `date` and `confidence` of a table, where it has them, are those of a line.
    """

    provider: Text
    title: Text
    key: MachineKey
    """`name`: the table has each machine type. `series`: it has series with numbers of vCPUs, and
    machine types. `vcpus`: the limits follow from the number of vCPUs, without a table."""
    prefix: Text | None = None  # beginning of all names, which may be left out
    sources: tuple[RowSource, ...]
    confidence: Confidence
    not_known: LongText
    groups: tuple[GroupRule, ...]
    common: Any = None  # anchors, for aliases and merge keys


class Machine(msgspec.Struct, frozen=True):
    """One machine, with what the tables have of it."""

    name: str | None
    """Machine type, as the provider writes it; None where the limits follow from the vCPUs."""
    vcpus: int | None  # None where they are not part of the question
    rows: tuple[Row, ...]

    @property
    def shown(self) -> str:
        """Its name, or its number of vCPUs in words."""
        return self.name or f"A machine with {self.vcpus} vCPU{'' if self.vcpus == 1 else 's'}"


class MachineGroup(msgspec.Struct, frozen=True):
    """Disks of a machine that share a limit, and the limit."""

    name: str
    title: str
    covers: tuple[str, ...]  # ids of the types of disk
    is_cache: bool
    """Whether it is over requests to the cache of the host, which are not sent to a disk."""
    limits: Limits
    inferred: str | None
    """From which words of the provider the credits are inferred; None without a burst."""
    date: dt.date
    confidence: Confidence


class MachineChoice(msgspec.Struct, frozen=True):
    """How the limits of the machine that disksla runs on are found, for one provider."""

    rules: MachineRules
    machine: Machine | None  # None if they follow from the vCPUs of a tick


class SharedLimits(msgspec.Struct, frozen=True):
    """Limits of the machine that disksla runs on, over a group of its disks."""

    name: str
    title: str
    machine: str
    """Machine type, as the provider writes it, or the number of vCPUs; empty if not known."""
    limits: Limits
    covers: tuple[str, ...] | None = None  # ids of the types of disk; None for all volumes
    covers_unknown: bool = False
    """Volumes of unknown type are in the group, too: the machine has no other."""
    of_type: bool = False  # they are the limits of a type of disk, by the total size of its disks
    device: str | None = None
    """The one disk that they are over: a mount of a file storage, of which they are what one
    client may get."""
    is_cache: bool = False
    """They are over requests to the cache of the host: all of the disks that it caches."""
    excludes_hits: bool = False  # requests that the cache of the host serves do not count

    def covers_disk(self, terms: str, *, is_local: bool | None) -> bool:
        """Return whether a disk with these terms is in the group.

        `is_local` is false of a volume, and None if that is not known.
        """
        if self.covers is None:
            return not is_local
        is_unknown_volume = terms == UNKNOWN_TERMS and is_local is False
        return terms in self.covers or (self.covers_unknown and is_unknown_volume)


def find_machine(rules: MachineRules, table: str, name: str) -> Machine:
    """Return what a table has of a machine type, whatever the case of its name.

    The table is searched, not parsed. Raise DiskslaError, with close names, if it has none.
    """
    header, _, lines = table.partition("\n")
    columns = header.split(",")
    series, vcpus = _series_and_vcpus(name) if rules.key == "series" else ("", 0)
    words = [name, f"{rules.prefix or ''}{name}", series] if _NAME.fullmatch(name) else []
    rows = [
        dict(zip(columns, line.split(","), strict=True))
        for word in dict.fromkeys(words)
        for line in re.findall(rf"^{re.escape(word)},.*$", lines, re.IGNORECASE | re.MULTILINE)
    ]
    found = tuple(row for row in rows if _has_vcpus(row, vcpus))
    if not found:
        raise DiskslaError(_unknown(rules, lines, name))
    return Machine(found[0]["machine"] if rules.key == "name" else name.lower(), None, found)


def machine_of_vcpus(vcpus: int) -> Machine:
    """Return a machine whose limits follow from its vCPUs."""
    return Machine(None, vcpus, ({},))


def machine_groups(rules: MachineRules, machine: Machine) -> tuple[MachineGroup, ...]:
    """Return the groups of a machine for which the rules have a limit."""
    found = {}
    for group in rules.groups:
        row = next((row for row in machine.rows if group.rows.items() <= row.items()), None)
        limits = None if row is None else _limits(group, row, machine.vcpus or 0)
        if row is not None and limits is not None:
            found[group.name] = group, row, limits
    moved = {
        (group.instead_of, type_id) for group, _, _ in found.values() for type_id in group.covers
    }
    return tuple(
        MachineGroup(
            name=group.name,
            title=group.title,
            covers=tuple(
                type_id for type_id in group.covers if (group.name, type_id) not in moved
            ),
            is_cache=group.is_cache,
            limits=limits,
            inferred=group.burst.inferred
            if group.burst is not None and limits.burst is not None
            else None,
            date=dt.date.fromisoformat(row["date"]) if "date" in row else rules.sources[0].date,
            confidence=msgspec.convert(row.get("confidence", rules.confidence), Confidence),
        )
        for group, row, limits in found.values()
    )


def shared_limits(choice: MachineChoice, cpus: int | None) -> tuple[SharedLimits, ...]:
    """Return the limits over groups of disks of this machine, which has this number of CPUs."""
    machine = choice.machine
    if machine is None and cpus is not None:
        machine = machine_of_vcpus(cpus)
    if machine is None:
        return ()
    name = machine.name or f"{machine.vcpus} vCPU{'' if machine.vcpus == 1 else 's'}"
    has_cache = any(rule.is_cache for rule in choice.rules.groups)
    groups = machine_groups(choice.rules, machine)
    is_only = sum(not group.is_cache for group in groups) == 1
    return tuple(
        SharedLimits(
            name=group.name,
            title=group.title,
            machine=name,
            limits=group.limits,
            covers=group.covers,
            covers_unknown=is_only and not group.is_cache,
            is_cache=group.is_cache,
            excludes_hits=has_cache and not group.is_cache,
        )
        for group in groups
    )


def least_rates(disk: Rates, groups: Iterable[MachineGroup]) -> Rates:
    """Return the rates that a disk alone on its machine may use: the least of each.

    Groups over the cache of the host do not count.
    """
    all_rates = [disk, *(group.limits.rates for group in groups if not group.is_cache)]
    columns = zip(*(msgspec.structs.astuple(rates) for rates in all_rates), strict=True)
    return Rates(
        *(min((rate for rate in rates if rate is not None), default=None) for rates in columns)
    )


def _limits(group: GroupRule, row: Row, vcpus: int) -> Limits | None:
    """Return the limits of a group; None if the table has none."""
    pairs = [
        rule.rates(row, vcpus)
        for rule in (
            group.read_iops,
            group.write_iops,
            group.read_bandwidth,
            group.write_bandwidth,
        )
    ]
    base, peak = (Rates(*rates) for rates in zip(*pairs, strict=True))
    if base == Rates():
        return None
    burst = None
    if group.burst is not None and peak != base:
        burst = Burst(peak, burst_buckets(base, peak, group.burst.seconds))
    limits = build_limits(base, group.budget, burst=burst)
    if group.limiter is not None:
        limits = msgspec.structs.replace(limits, limiter=group.limiter.limiter)
    if group.may_cost is None:
        return limits
    additive = build_limits(base, group.budget, cost=group.may_cost)
    return msgspec.structs.replace(limits, promise_charges=additive.enforced_charges)


_NAME = re.compile(r"[\w.-]+")
_MACHINE_TYPE = re.compile(r"(?P<series>[a-z]+[0-9]+[a-z]*)-[a-z]+-(?P<vcpus>[0-9]{1,5})(-.*)?")


def _series_and_vcpus(name: str) -> tuple[str, int]:
    """Return the series and the vCPUs in a name of Google Cloud; none if it has other parts.

    `custom-4-8192` is `n1-custom-4-8192`. Source:
    https://cloud.google.com/compute/docs/machine-resource
    """
    lower = name.lower()
    full = f"n1-{lower}" if lower.startswith("custom-") else lower
    parts = _MACHINE_TYPE.fullmatch(full)
    return (parts["series"], int(parts["vcpus"])) if parts else ("", 0)


def _has_vcpus(row: Row, vcpus: int) -> bool:
    """Return whether a line is for this number of vCPUs; one of a machine type has no number."""
    least, most = row.get("least_vcpus"), row.get("most_vcpus")
    return not least or int(least) <= vcpus <= (int(most) if most else math.inf)


def _unknown(rules: MachineRules, lines: str, name: str) -> str:
    names = dict.fromkeys(re.findall(r"^[^,\n]+", lines, re.MULTILINE))
    if rules.key == "series":
        names = dict.fromkeys(each for each in names if "-" in each)
    prefix = rules.prefix or ""
    wanted = name if name.lower().startswith(prefix.lower()) else prefix + name
    close = difflib.get_close_matches(wanted, names, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"one is {next(iter(names))}"
    return f"unknown machine type '{name}' of {rules.provider}; {hint}"
