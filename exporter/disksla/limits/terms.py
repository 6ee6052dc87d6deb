"""Terms: what disks are sold under. One row of the catalogue each."""

import datetime as dt
import difflib
from collections.abc import Iterable
from typing import Annotated

import msgspec

from disksla.errors import DiskslaError
from disksla.limits.burst_rules import BurstRule
from disksla.limits.cost_model import Additive, CostModel, PerRequest
from disksla.limits.limits import BudgetKind, Conditions, LatencyKind, PromisedShare, Rates
from disksla.limits.size_rules import BandwidthRule, FromIops, IopsRule, Positive, WholeBytes


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a row is from."""

    url: str
    date: dt.date
    """Day of the revision, or the day it was read where the source does not say."""
    revision: str | None = None
    """Repository and commit of the text behind the page."""
    note: str | None = None
    """What the source says, above all of its units."""


class LatencyTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latency that the provider names, and whether it stands by it."""

    seconds: Positive
    kind: LatencyKind


class VmCaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a virtual machine over all its disks of this kind."""

    iops_per_vcpu: Positive
    bytes_per_second_per_vcpu: Positive
    maximum_iops: Positive | None = None
    maximum_bytes_per_second: Positive | None = None


class VmCap(msgspec.Struct, frozen=True):
    """What one virtual machine may do."""

    iops: float
    bytes_per_second: float


class Provision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a customer chose for one disk of a provisioned type."""

    iops: Positive | None = None
    bytes_per_second: Positive | None = None


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A size and the limits that the source gives for it; every one is a test."""

    size_bytes: WholeBytes
    rates: Rates
    provisioned: Provision | None = None


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of the catalogue: everything that is promised for one type of disk.

    Laws of IOPS give requests per second, laws of bandwidth bytes per second. An absent law
    means that nothing is promised.
    """

    id: str
    title: str
    provider: str
    """Short name, as metrics have it."""
    provider_name: str
    sources: Annotated[tuple[Source, ...], msgspec.Meta(min_length=1)]
    examples: Annotated[tuple[Example, ...], msgspec.Meta(min_length=1)]
    aliases: tuple[str, ...] = ()
    """Names that the type had before."""
    binary_gb: bool = False
    """Whether the provider writes GB and MB for what are GiB and MiB."""
    budget: BudgetKind | None = None
    cost: CostModel = PerRequest()
    read_iops: IopsRule | None = None
    write_iops: IopsRule | None = None
    read_bandwidth: BandwidthRule | None = None
    write_bandwidth: BandwidthRule | None = None
    latency: LatencyTerms | None = None
    promised_shares: tuple[PromisedShare, ...] = ()
    """By growing request size; empty where a request of any size counts in full."""
    iops_conditions: Conditions | None = None
    bandwidth_conditions: Conditions | None = None
    burst: BurstRule | None = None
    vm_caps: VmCaps | None = None

    def __post_init__(self) -> None:
        """Refuse a row that contradicts itself."""
        reads, writes = (
            (self.read_iops, self.read_bandwidth),
            (self.write_iops, self.write_bandwidth),
        )
        if (self.budget is not None) != any((*reads, *writes)):
            raise ValueError(f"{self.id}: a budget and limits belong together")
        if self.budget == "sum" and reads != writes:
            raise ValueError(f"{self.id}: with budget 'sum' reads and writes share their limits")
        if isinstance(self.cost, Additive) and self.budget != "time_shared":
            raise ValueError(f"{self.id}: an additive cost needs budget 'time_shared'")
        for iops, bandwidth in (reads, writes):
            if isinstance(bandwidth, FromIops) and iops is None:
                raise ValueError(f"{self.id}: a bandwidth from IOPS needs IOPS")
        sizes = [share.request_bytes for share in self.promised_shares]
        if sizes != sorted(set(sizes)):
            raise ValueError(f"{self.id}: promised_shares must grow in request size")


class Catalog:
    """All terms, found by id or by a former name."""

    def __init__(self, rows: Iterable[Terms]) -> None:
        """Make a catalogue; two rows that share a name are a ValueError."""
        self.rows = tuple(rows)
        self._by_name: dict[str, Terms] = {}
        for row in self.rows:
            for name in (row.id, *row.aliases):
                if name in self._by_name:
                    raise ValueError(f"both {self._by_name[name].id} and {row.id} claim '{name}'")
                self._by_name[name] = row

    def __getitem__(self, name: str) -> Terms:
        """Give the terms of this name; raise Refusal, with the nearest names, if none have it."""
        if name not in self._by_name:
            matches = difflib.get_close_matches(name, self._by_name, cutoff=0.5)
            close = dict.fromkeys(self._by_name[match].id for match in matches)
            hint = f"did you mean {' or '.join(close)}?" if close else "see 'disksla catalog'"
            raise DiskslaError(f"no terms are called '{name}': {hint}")
        return self._by_name[name]


def vm_cap(caps: VmCaps, vcpus: int) -> VmCap:
    """Give what a virtual machine with so many vCPUs may do over all its disks of one kind."""
    return VmCap(
        _at_most(caps.maximum_iops, caps.iops_per_vcpu * vcpus),
        _at_most(caps.maximum_bytes_per_second, caps.bytes_per_second_per_vcpu * vcpus),
    )


def _at_most(maximum: float | None, rate: float) -> float:
    return rate if maximum is None else min(maximum, rate)
