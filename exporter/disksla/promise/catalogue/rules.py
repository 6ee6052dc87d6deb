"""Rules: how a limit follows from the size of a disk, from what was bought, or from another limit.

A rule returns IOPS, bytes per second or an amount of credits; the key of the catalogue that holds
the rule decides which, and so the unit in which its numbers are written. Sizes are in bytes.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from disksla.base.schema import Bytes, BytesPerSecond, Flag, Number
from disksla.base.units import GIB

Amount = TypeVar("Amount", bound=float)  # what a rule returns, with the field type of its numbers

_NO_AMOUNT: Any = 0.0
_DIGITS = 9  # of a number of units, before it is rounded


class RuleInput(NamedTuple):
    """What a limit follows from."""

    size_bytes: float
    provisioned: float | None = None
    """The value that the customer chose for this limit; None where none was chosen."""
    other: float | None = None
    """The other limit of the same direction: the IOPS for a bandwidth, and the reverse."""
    other_provisioned: float | None = None  # the value that the customer chose for the other limit

    def of_other(self, *, of_provisioned: bool) -> float:
        """Return the other limit, or only what the customer bought of it."""
        return (self.other_provisioned if of_provisioned else self.other) or 0.0


class _Rule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="rule"
):
    """Base of all rules."""


class Clamp(_Rule, Generic[Amount], frozen=True, tag="clamp"):
    """base + rate x size, rounded half up or up, between a minimum and a maximum.

    The rate is `per_gib`, or `per_unit` of another size such as 1TiB; a part of it counts in part.
    """

    base: Amount = _NO_AMOUNT
    per_gib: Amount = _NO_AMOUNT
    per_unit: Amount = _NO_AMOUNT
    unit_bytes: Bytes = GIB
    minimum: Amount | None = None
    maximum: Amount | None = None
    round_to: Amount | None = None
    round_up: Flag = False

    def __post_init__(self) -> None:
        """Raise ValueError if the result is always zero, or the rate has two units."""
        if not (self.base or self.slope or self.minimum):
            raise ValueError(
                "found none of base, per_gib, per_unit and minimum; expected at least one"
            )
        if self.per_gib and (self.per_unit or self.unit_bytes != GIB):
            raise ValueError("found per_gib beside per_unit or unit_bytes; expected one of them")

    @property
    def slope(self) -> Amount:
        """The rate for each unit of size."""
        return self.per_gib or self.per_unit

    def rate(self, basis: RuleInput) -> float:
        """Return the limit of a disk of this size."""
        rate = self.line(basis.size_bytes)
        if self.round_to is not None:
            rate = _rounded(rate, self.round_to, up=self.round_up)
        return _settle(rate, self.minimum, self.maximum)

    def line(self, size_bytes: float) -> float:
        """Return base + rate x size, without rounding and bounds."""
        return self.base + self.slope * size_bytes / self.unit_bytes


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


class SizeStep(msgspec.Struct, Generic[Amount], frozen=True, forbid_unknown_fields=True):
    """The limit of file storages or disks from a size on."""

    from_bytes: Bytes
    rate: Amount | Clamp[Amount]


class BySize(_Rule, Generic[Amount], frozen=True, tag="by-size"):
    """Another limit from each size on, which may be a lower one.

    Below the first size, the limit of the first step applies.
    """

    steps: tuple[SizeStep[Amount], ...]

    def __post_init__(self) -> None:
        """Raise ValueError if the steps are missing or out of order."""
        sizes = [step.from_bytes for step in self.steps]
        if not sizes or sizes != sorted(set(sizes)):
            raise ValueError("found no steps, or out of order; expected growing sizes")

    def step(self, size_bytes: float) -> SizeStep[Amount]:
        """Return the step that applies to this size."""
        reached = [step for step in self.steps if step.from_bytes <= size_bytes]
        return reached[-1] if reached else self.steps[0]

    def rate(self, basis: RuleInput) -> float:
        """Return the limit of a disk of this size."""
        return _bound(self.step(basis.size_bytes).rate, basis)


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
        rate = iops * self.bytes_per_io
        if self.round_to is not None:
            rate = _rounded(rate, self.round_to)
        return _settle(rate, self.minimum, self.maximum)


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


SizeRule = Clamp[Amount] | AllocationUnits[Amount] | Tiers[Amount] | BySize[Amount]


class Provisioned(_Rule, Generic[Amount], frozen=True, tag="provisioned"):
    """A value that the customer chooses, between bounds.

    A bound, and the value where none was chosen, is a number or a rule.
    """

    minimum: Amount | SizeRule[Amount] | FromIops | None = None  # None for zero
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


class Multiple(_Rule, Generic[Amount], frozen=True, tag="multiple"):
    """A multiple of another limit, between bounds."""

    factor: Number
    of: SizeRule[Amount] | FromIops | Provisioned[Amount]
    minimum: Amount | None = None
    maximum: Amount | None = None

    def rate(self, basis: RuleInput) -> float | None:
        """Return the multiple; None if the other limit must be chosen."""
        rate = self.of.rate(basis)
        return None if rate is None else _settle(self.factor * rate, self.minimum, self.maximum)


_Part = SizeRule[Amount] | FromIops | FromBandwidth | Provisioned[Amount] | Multiple[Amount]
"""What a rule of several parts may consist of."""


_COMBINED: Mapping[str, Callable[[list[float]], float]] = {
    "greatest": max,
    "least": min,
    "sum": sum,
}
"""How the limits of the parts are combined, by the tag of the rule."""


class _Parts(_Rule, Generic[Amount], frozen=True):
    of: tuple[_Part[Amount], ...]

    def rate(self, basis: RuleInput) -> float | None:
        """Return the limit that follows from those of the parts; None if one must be chosen."""
        rates = [rule.rate(basis) for rule in self.of]
        known = [rate for rate in rates if rate is not None]
        return (
            _COMBINED[str(self.__struct_config__.tag)](known) if len(known) == len(rates) else None
        )


class Greatest(_Parts[Amount], Generic[Amount], frozen=True, tag="greatest"):
    """The greatest of several limits."""


class Least(_Parts[Amount], Generic[Amount], frozen=True, tag="least"):
    """The least of several limits."""


class Sum(_Parts[Amount], Generic[Amount], frozen=True, tag="sum"):
    """Several limits that add up: a base by size, and what the customer bought in addition."""


class FromBaseline(_Rule, Generic[Amount], frozen=True, tag="from-baseline"):
    """A burst rate that is a multiple of the baseline, between bounds."""

    factor: Number
    minimum: Amount | None = None
    maximum: Amount | None = None

    def rate(self, basis: RuleInput) -> float:
        """Return the burst rate; `basis.other` is the baseline."""
        return _settle(self.factor * (basis.other or 0.0), self.minimum, self.maximum)


_SeveralRules = Greatest[Amount] | Least[Amount] | Sum[Amount] | Multiple[Amount]
IopsRule = SizeRule[Number] | Provisioned[Number] | FromBandwidth | _SeveralRules[Number]
BandwidthRule = (
    SizeRule[BytesPerSecond]
    | Provisioned[BytesPerSecond]
    | FromIops
    | _SeveralRules[BytesPerSecond]
)
PeakRule = SizeRule[Amount] | Least[Amount] | FromBaseline[Amount]  # a rule for a burst rate


def provisioned_parts(rule: object) -> list[Provisioned[float]]:
    """Return the parts of a rule that the customer chooses."""
    parts = rule.of if isinstance(rule, _Parts) else (rule,)
    alone = [part.of if isinstance(part, Multiple) else part for part in parts]
    return [part for part in alone if isinstance(part, Provisioned)]


def allocation_units(size_bytes: float, unit_bytes: int) -> int:
    """Return the units of space of a disk: a part counts as a whole one, at least one."""
    return max(1, math.ceil(size_bytes / unit_bytes))


def _bound(bound: Any, basis: RuleInput) -> float:
    return bound if isinstance(bound, float | int) else bound.rate(basis)


def _rounded(rate: float, round_to: float, *, up: bool = False) -> float:
    """Return a rate as a multiple, rounded half up or up, never to zero.

    0.04 x 100 is 4, and not the next higher number that a computer has.
    """
    units = round(rate / round_to, _DIGITS)
    return max(math.ceil(units) if up else math.floor(units + 0.5), 1) * round_to


def _settle(rate: float, minimum: float | None, maximum: float | None) -> float:
    if minimum is not None:
        rate = max(rate, minimum)
    return rate if maximum is None else min(rate, maximum)
