"""How a limit follows from the size of a disk: the shapes that providers use.

A law gives IOPS or bytes per second, as the row of the catalogue that holds it says; amounts of
credits follow the same shapes. A size is in bytes.
"""

import math
from typing import Annotated

import msgspec

from disksla.units import GIB

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
WholeBytes = Annotated[int, msgspec.Meta(gt=0)]


class _Rule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="law"
):
    """What all laws have in common."""


class Clamp(_Rule, frozen=True, tag="clamp"):
    """base + rate x size, rounded half up, kept between a minimum and a maximum."""

    base: NotNegative = 0.0
    per_gib: NotNegative = 0.0
    minimum: Positive | None = None
    maximum: Positive | None = None
    round_to: Positive | None = None

    def __post_init__(self) -> None:
        """Refuse a law that gives nothing."""
        if not (self.base or self.per_gib or self.minimum):
            raise ValueError("a clamp needs a base, a rate per GiB or a minimum")

    def rate(self, size_bytes: float) -> float:
        """Give the limit of a disk of this size."""
        return _settle(self.line(size_bytes), self.minimum, self.maximum, self.round_to)

    def line(self, size_bytes: float) -> float:
        """Give base + rate x size alone."""
        return self.base + self.per_gib * size_bytes / GIB


class AllocationUnits(_Rule, frozen=True, tag="allocation-units"):
    """A rate for every unit of space begun, up to a maximum."""

    unit_bytes: WholeBytes
    per_unit: Positive
    maximum: Positive | None = None

    def rate(self, size_bytes: float) -> float:
        """Give the limit of a disk of this size."""
        return _settle(
            allocation_units(size_bytes, self.unit_bytes) * self.per_unit, None, self.maximum
        )


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a table: what disks up to a size are given."""

    up_to_bytes: WholeBytes
    rate: Positive


class Tiers(_Rule, frozen=True, tag="tiers"):
    """A table by size. What is larger than its last step is given what that step gives."""

    steps: Annotated[tuple[Tier, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse a table out of order."""
        sizes = [step.up_to_bytes for step in self.steps]
        rates = [step.rate for step in self.steps]
        if sizes != sorted(set(sizes)) or rates != sorted(rates):
            raise ValueError("the steps of tiers must grow in size and must not fall in rate")

    def step(self, size_bytes: float) -> Tier:
        """Give the step that a disk of this size stands on."""
        return next(
            (step for step in self.steps if size_bytes <= step.up_to_bytes), self.steps[-1]
        )

    def rate(self, size_bytes: float) -> float:
        """Give the limit of a disk of this size."""
        return self.step(size_bytes).rate


class Provisioned(_Rule, frozen=True, tag="provisioned"):
    """What the customer chose, within bounds that may grow with the size or with the IOPS."""

    minimum: Positive
    maximum: Positive
    default: Positive | None = None
    """What a disk has for which nothing was chosen; None where something must be."""
    maximum_per_gib: Positive | None = None
    maximum_per_iops: Positive | None = None
    """Bytes per I/O, for a bandwidth that is bounded by the IOPS chosen."""

    def __post_init__(self) -> None:
        """Refuse bounds that cross."""
        if not self.minimum <= (self.default or self.minimum) <= self.maximum:
            raise ValueError("provisioned needs minimum <= default <= maximum")

    def bounds(self, size_bytes: float, iops: float | None = None) -> tuple[float, float]:
        """Give the least and the most that can be chosen; the least is had at any size."""
        most = self.maximum
        if self.maximum_per_gib is not None:
            most = min(most, self.maximum_per_gib * size_bytes / GIB)
        if self.maximum_per_iops is not None and iops is not None:
            most = min(most, self.maximum_per_iops * iops)
        return self.minimum, max(self.minimum, most)


class FromIops(_Rule, frozen=True, tag="from-iops"):
    """A bandwidth that follows from the IOPS, rounded half up, between bounds."""

    bytes_per_io: Positive
    minimum: Positive | None = None
    maximum: Positive | None = None
    round_to: Positive | None = None

    def rate(self, iops: float) -> float:
        """Give the bandwidth of a disk with these IOPS."""
        return _settle(iops * self.bytes_per_io, self.minimum, self.maximum, self.round_to)


SizeRule = Clamp | AllocationUnits | Tiers
IopsRule = SizeRule | Provisioned
BandwidthRule = SizeRule | Provisioned | FromIops


def allocation_units(size_bytes: float, unit_bytes: int) -> int:
    """Give how many units of space a disk has begun, at least one."""
    return max(1, math.ceil(size_bytes / unit_bytes))


def _settle(
    rate: float, minimum: float | None, maximum: float | None, round_to: float | None = None
) -> float:
    if round_to is not None:  # half up, but a limit never comes to nothing
        rate = max(math.floor(rate / round_to + 0.5), 1) * round_to
    if minimum is not None:
        rate = max(rate, minimum)
    return rate if maximum is None else min(rate, maximum)
