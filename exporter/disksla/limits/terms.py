"""Terms: the records of the catalogue, one row for each type of disk."""

import difflib
from collections.abc import Iterable
from typing import Annotated

import msgspec

from disksla.errors import DiskslaError
from disksla.limits.burst_rules import BurstRule
from disksla.limits.cost_model import Additive, CostModel, PerRequest
from disksla.limits.limits import BudgetKind, Conditions, LatencyKind, PromisedShare, Rates
from disksla.limits.size_rules import BandwidthRule, FromIops, IopsRule
from disksla.schema import (
    Bytes,
    BytesPerSecond,
    Date,
    Flag,
    InvalidFieldsError,
    LongText,
    Number,
    Seconds,
    Text,
    pattern,
)

_NAME = r"[a-z0-9][a-z0-9_-]*"
_CHARACTERS = "of lower-case letters, digits, - and _"
_Provider = Annotated[str, pattern(f"a name {_CHARACTERS}, such as vk", _NAME)]
_Id = Annotated[
    str, pattern(f"PROVIDER.NAME {_CHARACTERS}, such as vk.ceph-ssd", rf"{_NAME}\.{_NAME}")
]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of a row."""

    url: Annotated[str, pattern("an address such as https://example.com/page", r"https?://\S+")]
    date: Date
    """Day of the revision, or the day of reading where the source has none."""
    revision: Text | None = None
    """Repository and commit of the text behind the page."""
    note: LongText | None = None
    """What the source states, in particular about its units."""


class LatencyTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latency that the provider states, and whether it is guaranteed."""

    seconds: Seconds
    kind: LatencyKind


class VmCaps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a virtual machine over all its disks of this kind."""

    iops_per_vcpu: Number
    bytes_per_second_per_vcpu: BytesPerSecond
    maximum_iops: Number | None = None
    maximum_bytes_per_second: BytesPerSecond | None = None


class VmCap(msgspec.Struct, frozen=True):
    """The limits of one virtual machine."""

    iops: float
    bytes_per_second: float


class Provision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that a customer chose for one disk of a provisioned type."""

    iops: Number | None = None
    bytes_per_second: BytesPerSecond | None = None


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A size and its limits, to check the rules of the row."""

    size_bytes: Bytes
    rates: Rates
    provisioned: Provision | None = None


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of the catalogue: everything that is promised for one type of disk.

    Rules of IOPS return requests per second, rules of bandwidth bytes per second. Without a rule
    there is no limit.
    """

    id: _Id
    title: Text
    provider: _Provider
    """Value of the label `provider`."""
    provider_name: Text
    examples: tuple[Example, ...]
    sources: tuple[Source, ...] = ()
    """Required for the rows of the package."""
    aliases: tuple[_Id, ...] = ()
    """Former names of the type."""
    binary_gb: Flag = False
    """Whether the provider writes GB and MB for GiB and MiB."""
    budget: BudgetKind | None = None
    cost: CostModel = PerRequest()
    read_iops: IopsRule | None = None
    write_iops: IopsRule | None = None
    read_bandwidth: BandwidthRule | None = None
    write_bandwidth: BandwidthRule | None = None
    latency: LatencyTerms | None = None
    promised_shares: tuple[PromisedShare, ...] = ()
    """By ascending request size; empty where the full IOPS are promised for every size."""
    iops_conditions: Conditions | None = None
    bandwidth_conditions: Conditions | None = None
    burst: BurstRule | None = None
    vm_caps: VmCaps | None = None

    def __post_init__(self) -> None:
        """Raise InvalidFieldsError if parts of the row contradict each other."""
        reads, writes = (
            (self.read_iops, self.read_bandwidth),
            (self.write_iops, self.write_bandwidth),
        )
        shares = [share.request_bytes for share in self.promised_shares]
        problems: dict[tuple[str | int, ...], str] = {}
        for key, is_wrong, text in (
            (
                "id",
                not self.id.startswith(f"{self.provider}."),
                f"found '{self.id}' of provider {self.provider}; expected {self.provider}.NAME",
            ),
            ("examples", not self.examples, "found an empty list; expected at least one example"),
            (
                "budget",
                self.budget is None and any((*reads, *writes)),
                "missing beside limits; expected one of: separate, sum, time_shared",
            ),
            (
                "budget",
                self.budget is not None and not any((*reads, *writes)),
                f"found '{self.budget}' without limits; expected rules such as read_iops",
            ),
            (
                "budget",
                self.budget == "sum" and reads != writes,
                "found 'sum' with different rules for reads and writes; expected the same rules",
            ),
            (
                "cost",
                isinstance(self.cost, Additive) and self.budget != "time_shared",
                "found an additive cost; expected it with budget time_shared only",
            ),
            *(
                (
                    f"{direction}_bandwidth",
                    isinstance(bandwidth, FromIops) and not iops,
                    f"found rule from-iops without {direction}_iops; expected both",
                )
                for direction, (iops, bandwidth) in (("read", reads), ("write", writes))
            ),
            (
                "promised_shares",
                shares != sorted(set(shares)),
                "found sizes out of order; expected ascending request_bytes",
            ),
        ):
            if is_wrong:
                problems[key,] = text
        if problems:
            raise InvalidFieldsError(problems)


class Catalog:
    """All terms, by id and by former name."""

    def __init__(self, rows: Iterable[Terms]) -> None:
        """Raise ValueError if two rows have the same name."""
        self.rows = tuple(rows)
        self._by_name: dict[str, Terms] = {}
        for row in self.rows:
            for name in (row.id, *row.aliases):
                if name in self._by_name:
                    raise ValueError(f"found '{name}' twice; expected one row with this name")
                self._by_name[name] = row

    def __getitem__(self, name: str) -> Terms:
        """Return the terms of this name. Raise DiskslaError, with close names, if unknown."""
        if name not in self._by_name:
            matches = difflib.get_close_matches(name, self._by_name, cutoff=0.5)
            close = dict.fromkeys(self._by_name[match].id for match in matches)
            hint = f"did you mean {' or '.join(close)}?" if close else "see 'disksla catalog'"
            raise DiskslaError(f"unknown terms '{name}'; {hint}")
        return self._by_name[name]


def vm_cap(caps: VmCaps, vcpus: int) -> VmCap:
    """Return the limits of a virtual machine with so many vCPUs over all its disks of one kind."""
    return VmCap(
        _at_most(caps.maximum_iops, caps.iops_per_vcpu * vcpus),
        _at_most(caps.maximum_bytes_per_second, caps.bytes_per_second_per_vcpu * vcpus),
    )


def _at_most(maximum: float | None, rate: float) -> float:
    return rate if maximum is None else min(maximum, rate)
