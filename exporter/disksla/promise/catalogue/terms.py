"""Terms: the records of the catalogue, one row for each type of disk."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec

from disksla.base import schema
from disksla.base.errors import DiskslaError
from disksla.promise.catalogue import limits
from disksla.promise.catalogue.burst_rules import BurstRule, Provision
from disksla.promise.catalogue.cost_model import Additive, CostModel, PerRequest, Rates
from disksla.promise.catalogue.rules import BandwidthRule, FromBandwidth, FromIops, IopsRule

_NAME = r"[a-z0-9][a-z0-9_-]*"
_CHARACTERS = "of lower-case letters, digits, - and _"
_Provider = Annotated[str, schema.pattern(f"a name {_CHARACTERS}, such as vk", _NAME)]
_ApiName = Annotated[
    str,
    schema.pattern(
        "a name of letters, digits and -_/+., such as Premium_LRS", r"[A-Za-z0-9][\w/+.-]*"
    ),
]
_Id = Annotated[
    str, schema.pattern(f"PROVIDER.NAME {_CHARACTERS}, such as vk.ceph-ssd", rf"{_NAME}\.{_NAME}")
]


class RowSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The origin of a row."""

    url: limits.Address
    date: schema.Date  # day of the revision, or the day of reading where the source has none
    revision: schema.Text | None = None  # repository and commit of the text behind the page
    note: schema.LongText | None = None  # what the source states, in particular about its units


class LatencyTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latency that the provider states, and whether it is guaranteed."""

    kind: limits.LatencyKind
    seconds: schema.Seconds | None = None
    """Of reads, and of writes unless they have their own; None if it is stated for writes only."""
    write_seconds: schema.Seconds | None = None
    time_share: limits.Share | None = None
    """Share of the time for which it is stated; None where the provider states none."""

    def __post_init__(self) -> None:
        """Raise ValueError if there is no latency."""
        if self.seconds is None and self.write_seconds is None:
            raise ValueError("found none of seconds and write_seconds; expected at least one")


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes in which a type is sold."""

    least_bytes: schema.Bytes | None = None
    most_bytes: schema.Bytes | None = None


class ClientLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file storage allows one of its clients."""

    budget: limits.BudgetKind
    read_bytes_per_second: schema.BytesPerSecond | None = None
    write_bytes_per_second: schema.BytesPerSecond | None = None
    below_bytes: schema.Bytes | None = None
    """Smallest size for which it is not stated; None if it is stated for any."""
    metered: schema.Flag = False  # whether its bytes count by the cost model


class Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one value of an option changes in a row; keys that are absent change nothing."""

    without: tuple[Literal["read_iops", "burst"], ...] = ()  # rules of the row that do not apply
    budget: limits.BudgetKind | limits.Budgets | None = None
    shared_by: schema.Text | None = None
    client: ClientLimits | None = None
    least_size_bytes: schema.Bytes | None = None  # smallest disk that may have it
    as_size_bytes: schema.Bytes | None = None
    """The limits are those of a disk of this size, if it is larger."""
    read_iops: IopsRule | None = None
    write_iops: IopsRule | None = None
    read_bandwidth: BandwidthRule | None = None
    write_bandwidth: BandwidthRule | None = None
    latency: LatencyTerms | None = None
    burst: BurstRule | None = None


class _Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: schema.Text  # what it is, and the name that the cloud's API has for it
    default: schema.Text  # the value of a disk for which none was chosen


class OptionOfValue(_Option, frozen=True):
    """An option that only one value of another option has."""

    values: Mapping[str, Changes]


class OptionValue(Changes, frozen=True):
    """What one value of an option changes, and what more can be chosen with it."""

    options: Mapping[str, OptionOfValue] = {}


class Option(_Option, frozen=True):
    """Something that is chosen for a disk besides its type and its size."""

    values: Mapping[str, OptionValue]
    """By name. The default need not be among them; then it changes nothing."""


class BurstExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The burst of an example."""

    rates: Rates
    seconds: schema.Seconds | None = None
    """Time for which full credits last at the burst rate; None without credits."""


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A size and its limits, to check the rules of the row."""

    size_bytes: schema.Bytes
    rates: Rates
    provisioned: Provision | None = None
    burst: BurstExample | None = None  # None if the burst is not compared


_FOLLOWS = (FromIops, FromBandwidth)
"""Rules of a limit that follows from the other one of its direction."""
_FOLLOWS_OR_NONE = (*_FOLLOWS, type(None))
Confidence = Literal["high", "medium", "low"]
Scope = Literal["disk", "machine"]


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of the catalogue: everything that is promised for one type of disk.

    Rules of IOPS return requests per second, rules of bandwidth bytes per second. Without a rule
    there is no limit.
    """

    id: _Id
    title: schema.Text
    provider: _Provider  # value of the label `provider`
    provider_name: schema.Text
    examples: tuple[Example, ...]
    sources: tuple[RowSource, ...] = ()  # required for the rows of the package
    confidence: Confidence = "high"
    """`high`: the provider's own text was read in full. `medium`: it was read through a copy or a
    program, or has probably changed since. `low`: others state it."""
    not_known: schema.LongText | None = None  # what the provider does not state
    aliases: tuple[_Id, ...] = ()  # former names of the type
    api_names: tuple[_ApiName, ...] = ()  # names of the type in the provider's API
    binary_gb: schema.Flag = False  # whether the provider writes GB and MB for GiB and MiB
    sizes: Sizes = Sizes()
    scope: Scope = "disk"
    """`machine`: all disks of the type on a machine together have the limit of their size."""
    shared_by: schema.Text | None = None
    """Who shares the limits, of a network file storage; None for disks."""
    relief: schema.LongText | None = None
    """What helps where credits are used up, as a sentence; None if it is not stated."""
    client: ClientLimits | None = None
    allocation_unit_bytes: schema.Bytes | None = None
    """Of a type without limits; rules have it otherwise."""
    budget: limits.BudgetKind | limits.Budgets | None = None
    cost: CostModel = PerRequest()
    read_iops: IopsRule | None = None
    write_iops: IopsRule | None = None
    read_bandwidth: BandwidthRule | None = None
    write_bandwidth: BandwidthRule | None = None
    options: Mapping[str, Option] = {}
    latency: LatencyTerms | None = None
    promised_time_share: limits.Share | None = None
    """Share of the time for which the rates are promised; None where the provider states none."""
    promised_shares: tuple[limits.PromisedShare, ...] = ()
    """By ascending request size; empty where the full IOPS are promised for every size."""
    iops_conditions: limits.Conditions | None = None
    bandwidth_conditions: limits.Conditions | None = None
    burst: BurstRule | None = None
    limiter: limits.LimiterTerms | None = None

    @property
    def names(self) -> dict[str, None]:
        """The id, the former names, and PROVIDER.NAME for each name in the API; each once."""
        api_names = (f"{self.provider}.{name}" for name in self.api_names)
        return dict.fromkeys((self.id, *self.aliases, *api_names))

    @property
    def is_file_storage(self) -> bool:
        """Whether it is a network file storage, which is no block device."""
        return self.shared_by is not None

    @property
    def _budgets(self) -> tuple[limits.BudgetKind | None, limits.BudgetKind | None]:
        """The budgets of requests and of bytes."""
        if isinstance(self.budget, limits.Budgets):
            return self.budget.iops, self.budget.bandwidth
        return self.budget, self.budget

    def __post_init__(self) -> None:
        """Raise InvalidFieldsError if parts of the row contradict each other."""
        found = (*self._contradictions(), *self._wrong_rules())
        if found:
            raise schema.InvalidFieldsError({(key,): text for key, text in found})

    def _contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield the key of each part besides rules that others contradict, and what is wrong."""
        if not self.id.startswith(f"{self.provider}."):
            found = f"found '{self.id}' of provider {self.provider}"
            yield "id", f"{found}; expected {self.provider}.NAME"
        if not self.examples:
            yield "examples", "found an empty list; expected at least one example"
        if self.client is not None and not self.is_file_storage:
            yield "client", "found limits of a client without shared_by; expected both"
        if isinstance(self.cost, Additive) and set(self._budgets) != {"time_shared"}:
            yield "cost", "found an additive cost; expected it with budget time_shared only"
        shares = [share.request_bytes for share in self.promised_shares]
        if shares != sorted(set(shares)):
            text = "found sizes out of order; expected ascending request_bytes"
            yield "promised_shares", text

    def _wrong_rules(self) -> Iterator[tuple[str, str]]:
        """Yield the key of each rule or budget that others contradict, and what is wrong."""
        reads = {"iops": self.read_iops, "bandwidth": self.read_bandwidth}
        writes = {"iops": self.write_iops, "bandwidth": self.write_bandwidth}
        has_limits = any((*reads.values(), *writes.values()))
        if self.budget is None and has_limits:
            yield "budget", "missing beside limits; expected one of: separate, sum, time_shared"
        if self.budget is not None and not has_limits:
            yield "budget", "found a budget without limits; expected rules such as read_iops"
        if any(
            budget == "sum" and reads[key] != writes[key]
            for key, budget in zip(reads, self._budgets, strict=True)
        ):
            text = "found 'sum' with different rules for reads and writes; expected the same rules"
            yield "budget", text
        for direction, rules in (("read", reads), ("write", writes)):
            for key, other in (("iops", "bandwidth"), ("bandwidth", "iops")):
                if isinstance(rules[key], _FOLLOWS) and isinstance(rules[other], _FOLLOWS_OR_NONE):
                    found = "found a rule that follows from the other limit"
                    expected = f"expected a rule of its own in {direction}_{other}"
                    yield f"{direction}_{key}", f"{found}; {expected}"


class Catalog:
    """All terms, by id, by former name and by the name in the provider's API."""

    def __init__(self, rows: Iterable[Terms]) -> None:
        """Raise ValueError if two rows have the same name."""
        self.rows = tuple(rows)
        self._by_name: dict[str, Terms] = {}
        for row in self.rows:
            for name in row.names:
                if name in self._by_name:
                    raise ValueError(f"found '{name}' twice; expected one row with this name")
                self._by_name[name] = row
        self._by_spelling = {_spelled(name): row for name, row in self._by_name.items()}

    def __getitem__(self, name: str) -> Terms:
        """Return the terms of this name. Raise DiskslaError, with close names, if unknown."""
        if name not in self._by_name:
            matches = difflib.get_close_matches(name.lower(), self._by_name, cutoff=0.5)
            close = dict.fromkeys(self._by_name[match].id for match in matches)
            hint = f"did you mean {' or '.join(close)}?" if close else "see 'disksla limits'"
            raise DiskslaError(f"unknown terms '{name}'; {hint}")
        return self._by_name[name]

    def find(self, name: str) -> Terms | None:
        """Return the terms of a name, or of one that differs in case or `_`; None if unknown.

        Google spells a type as hyperdisk-balanced in its API and HYPERDISK_BALANCED elsewhere.
        """
        return self._by_name.get(name) or self._by_spelling.get(_spelled(name))


def _spelled(name: str) -> str:
    return name.casefold().replace("_", "-")
