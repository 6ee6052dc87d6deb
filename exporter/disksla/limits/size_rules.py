"""Size rules: how a limit follows from the size of a disk, in the forms that providers use.

A rule returns IOPS, bytes per second or an amount of credits; the key of the catalogue that holds
the rule decides which, and so the unit in which its numbers are written. Sizes are in bytes.
"""

import math
from typing import Any, Generic, TypeVar

import msgspec

from disksla.schema import Bytes, BytesPerSecond, Number
from disksla.units import GIB

Amount = TypeVar("Amount", bound=float)
"""What a rule returns, with the field type of its numbers."""

_NO_AMOUNT: Any = 0.0


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

    def rate(self, size_bytes: float) -> float:
        """Return the limit of a disk of this size."""
        return _settle(self.line(size_bytes), self.minimum, self.maximum, self.round_to)

    def line(self, size_bytes: float) -> float:
        """Return base + rate x size, without rounding and bounds."""
        return self.base + self.per_gib * size_bytes / GIB


class AllocationUnits(_Rule, Generic[Amount], frozen=True, tag="allocation-units"):
    """A rate for each unit of space, a part of a unit counted as a whole one, up to a maximum."""

    unit_bytes: Bytes
    per_unit: Amount
    maximum: Amount | None = None

    def rate(self, size_bytes: float) -> float:
        """Return the limit of a disk of this size."""
        return _settle(
            allocation_units(size_bytes, self.unit_bytes) * self.per_unit, None, self.maximum
        )


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

    def rate(self, size_bytes: float) -> float:
        """Return the limit of a disk of this size."""
        return self.step(size_bytes).rate


class Provisioned(_Rule, Generic[Amount], frozen=True, tag="provisioned"):
    """A value that the customer chooses; its bounds may depend on the size or on the IOPS."""

    minimum: Amount
    maximum: Amount
    default: Amount | None = None
    """The value of a disk for which none was chosen; None where one must be chosen."""
    maximum_per_gib: Amount | None = None
    maximum_per_iops: Bytes | None = None
    """Bytes per I/O, for a bandwidth whose maximum depends on the chosen IOPS."""

    def __post_init__(self) -> None:
        """Raise ValueError if the bounds cross."""
        if not self.minimum <= (self.default or self.minimum) <= self.maximum:
            raise ValueError("found bounds out of order; expected minimum <= default <= maximum")

    def bounds(self, size_bytes: float, iops: float | None = None) -> tuple[float, float]:
        """Return the lowest and the highest value; the minimum is available at any size."""
        least: float = self.minimum
        most: float = self.maximum
        if self.maximum_per_gib is not None:
            most = min(most, self.maximum_per_gib * size_bytes / GIB)
        if self.maximum_per_iops is not None and iops is not None:
            most = min(most, self.maximum_per_iops * iops)
        return least, max(least, most)


class FromIops(_Rule, frozen=True, tag="from-iops"):
    """A bandwidth that is a multiple of the IOPS, rounded half up, between bounds."""

    bytes_per_io: Bytes
    minimum: BytesPerSecond | None = None
    maximum: BytesPerSecond | None = None
    round_to: BytesPerSecond | None = None

    def rate(self, iops: float) -> float:
        """Return the bandwidth of a disk with these IOPS."""
        return _settle(iops * self.bytes_per_io, self.minimum, self.maximum, self.round_to)


SizeRule = Clamp[Amount] | AllocationUnits[Amount] | Tiers[Amount]
IopsRule = SizeRule[Number] | Provisioned[Number]
BandwidthRule = SizeRule[BytesPerSecond] | Provisioned[BytesPerSecond] | FromIops


def allocation_units(size_bytes: float, unit_bytes: int) -> int:
    """Return the units of space of a disk: a part counts as a whole one, at least one."""
    return max(1, math.ceil(size_bytes / unit_bytes))


def _settle(
    rate: float, minimum: float | None, maximum: float | None, round_to: float | None = None
) -> float:
    """Return a rate after rounding half up, never to zero, and within its bounds."""
    if round_to is not None:
        rate = max(math.floor(rate / round_to + 0.5), 1) * round_to
    if minimum is not None:
        rate = max(rate, minimum)
    return rate if maximum is None else min(rate, maximum)
