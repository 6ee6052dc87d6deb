"""Rules: how a limit follows from the size of a disk, from what was bought, or from another limit.

A rule returns IOPS, bytes per second or an amount of credits; the key of the catalogue that holds
the rule decides which, and so the unit in which its numbers are written. Sizes are in bytes.
"""

import math
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from disksla.schema import Bytes, BytesPerSecond, Flag, Number
from disksla.units import GIB

Amount = TypeVar("Amount", bound=float)
"""What a rule returns, with the field type of its numbers."""

_NO_AMOUNT: Any = 0.0


class RuleInput(NamedTuple):
    """What a limit follows from."""

    size_bytes: float
    provisioned: float | None = None
    """The value that the customer chose for this limit; None where none was chosen."""
    other: float | None = None
    """The other limit of the same direction: the IOPS for a bandwidth, and the reverse."""
    other_provisioned: float | None = None
    """The value that the customer chose for the other limit."""

    def of_other(self, *, of_provisioned: bool) -> float:
        """Return the other limit, or only what the customer bought of it."""
        return (self.other_provisioned if of_provisioned else self.other) or 0.0


class _Rule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="rule"
):
    """Base of all rules."""


class Clamp(_Rule, Generic[Amount], frozen=True, tag="clamp"):
    """base + rate x size, rounded half up, between a minimum and a maximum."""

    base: Amount = _NO_AMOUNT
    per_gib: Amount = _NO_AMOUNT
    minimum: Amount | None = None
    maximum: Amount | None = None
    round_to: Amount | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the result is always zero."""
        if not (self.base or self.per_gib or self.minimum):
            raise ValueError("found none of base, per_gib and minimum; expected at least one")

    def rate(self, basis: RuleInput) -> float:
        """Return the limit of a disk of this size."""
        return _settle(self.line(basis.size_bytes), self.minimum, self.maximum, self.round_to)

    def line(self, size_bytes: float) -> float:
        """Return base + rate x size, without rounding and bounds."""
        return self.base + self.per_gib * size_bytes / GIB


class AllocationUnits(_Rule, Generic[Amount], frozen=True, tag="allocation-units"):
    """A rate for each unit of space, a part of a unit counted as a whole one, up to a maximum."""

    unit_bytes: Bytes
    per_unit: Amount
    maximum: Amount | None = None

    def rate(self, basis: RuleInput) -> float:
        """Return the limit of a disk of this size."""
        units = allocation_units(basis.size_bytes, self.unit_bytes)
        return _settle(units * self.per_unit, None, self.maximum)


class Tier(msgspec.Struct, Generic[Amount], frozen=True, forbid_unknown_fields=True):
    """One step of a table: the limit of disks up to a size."""

    up_to_bytes: Bytes
    rate: Amount


class Tiers(_Rule, Generic[Amount], frozen=True, tag="tiers"):
    """A table by size. Disks above the last step have the limit of the last step."""

    steps: tuple[Tier[Amount], ...]

    def __post_init__(self) -> None:
        """Raise ValueError if the steps are missing or out of order."""
        sizes = [step.up_to_bytes for step in self.steps]
        rates = [step.rate for step in self.steps]
        if not sizes:
            raise ValueError("found no steps; expected at least one")
        if sizes != sorted(set(sizes)) or rates != sorted(rates):
            raise ValueError("found steps out of order; expected growing sizes and no lower rate")

    def step(self, size_bytes: float) -> Tier[Amount]:
        """Return the step that applies to a disk of this size."""
        return next(
            (step for step in self.steps if size_bytes <= step.up_to_bytes), self.steps[-1]
        )

    def rate(self, basis: RuleInput) -> float:
        """Return the limit of a disk of this size."""
        return self.step(basis.size_bytes).rate


class FromIops(_Rule, frozen=True, tag="from-iops"):
    """A bandwidth that is a multiple of the IOPS, rounded half up, between bounds.

    With `of_provisioned`, of those IOPS only that the customer bought.
    """

    bytes_per_io: Bytes
    minimum: BytesPerSecond | None = None
    maximum: BytesPerSecond | None = None
    round_to: BytesPerSecond | None = None
    of_provisioned: Flag = False

    def rate(self, basis: RuleInput) -> float:
        """Return the bandwidth of a disk with these IOPS."""
        iops = basis.of_other(of_provisioned=self.of_provisioned)
        return _settle(iops * self.bytes_per_io, self.minimum, self.maximum, self.round_to)


class FromBandwidth(_Rule, frozen=True, tag="from-bandwidth"):
    """IOPS that are enough for the bandwidth in requests of one size, up to a maximum.

    With `of_provisioned`, for that bandwidth only that the customer bought.
    """

    bytes_per_io: Bytes
    maximum: Number | None = None
    of_provisioned: Flag = False

    def rate(self, basis: RuleInput) -> float:
        """Return the IOPS of a disk with this bandwidth."""
        bandwidth = basis.of_other(of_provisioned=self.of_provisioned)
        return _settle(bandwidth / self.bytes_per_io, None, self.maximum)


SizeRule = Clamp[Amount] | AllocationUnits[Amount] | Tiers[Amount]


class Provisioned(_Rule, Generic[Amount], frozen=True, tag="provisioned"):
    """A value that the customer chooses, between bounds.

    A bound, and the value where none was chosen, is a number or a rule.
    """

    minimum: Amount | SizeRule[Amount] | FromIops | None = None
    """None for zero."""
    maximum: Amount | SizeRule[Amount] | FromIops | None = None
    """None where the provider states none."""
    default: Amount | SizeRule[Amount] | FromIops | None = None
    """None where a value must be chosen, unless the minimum is zero."""

    def __post_init__(self) -> None:
        """Raise ValueError if bounds that are numbers cross."""
        values = (self.minimum, self.default, self.maximum)
        numbers = [value for value in values if isinstance(value, float | int)]
        if numbers != sorted(numbers):
            raise ValueError("found bounds out of order; expected minimum <= default <= maximum")

    def rate(self, basis: RuleInput) -> float | None:
        """Return the value that was chosen, or the default; None if one must be chosen.

        A value beyond the bounds counts: providers raise them.
        """
        if basis.provisioned is not None:
            return basis.provisioned
        if self.default is None:
            return 0.0 if self.minimum is None else None
        least, most = self.bounds(basis)
        return min(max(_bound(self.default, basis), least), most)

    def bounds(self, basis: RuleInput) -> tuple[float, float]:
        """Return the lowest and the highest value; the minimum is available at any size."""
        least = 0.0 if self.minimum is None else _bound(self.minimum, basis)
        most = math.inf if self.maximum is None else _bound(self.maximum, basis)
        return least, max(least, most)


class Greatest(_Rule, Generic[Amount], frozen=True, tag="greatest"):
    """The greatest of several limits."""

    of: tuple[SizeRule[Amount] | FromIops, ...]

    def rate(self, basis: RuleInput) -> float:
        """Return the greatest limit."""
        return max(rule.rate(basis) for rule in self.of)


class Sum(_Rule, Generic[Amount], frozen=True, tag="sum"):
    """Several limits that add up: a base by size, and what the customer bought in addition."""

    of: tuple[SizeRule[Amount] | FromIops | FromBandwidth | Provisioned[Amount], ...]

    def rate(self, basis: RuleInput) -> float | None:
        """Return the sum; None if a part must be chosen."""
        rates = [rule.rate(basis) for rule in self.of]
        return None if None in rates else sum(rate for rate in rates if rate is not None)


IopsRule = SizeRule[Number] | Provisioned[Number] | FromBandwidth | Sum[Number]
BandwidthRule = (
    SizeRule[BytesPerSecond]
    | Provisioned[BytesPerSecond]
    | FromIops
    | Greatest[BytesPerSecond]
    | Sum[BytesPerSecond]
)


def allocation_units(size_bytes: float, unit_bytes: int) -> int:
    """Return the units of space of a disk: a part counts as a whole one, at least one."""
    return max(1, math.ceil(size_bytes / unit_bytes))


def _bound(bound: Any, basis: RuleInput) -> float:
    """Return the value of a bound, which is a number or a rule."""
    return bound if isinstance(bound, float | int) else bound.rate(basis)


def _settle(
    rate: float, minimum: float | None, maximum: float | None, round_to: float | None = None
) -> float:
    """Return a rate after rounding half up, never to zero, and within its bounds."""
    if round_to is not None:
        rate = max(math.floor(rate / round_to + 0.5), 1) * round_to
    if minimum is not None:
        rate = max(rate, minimum)
    return rate if maximum is None else min(rate, maximum)
