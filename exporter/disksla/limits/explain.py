"""How limits came about, written out for people: each law with its numbers filled in."""

from collections.abc import Callable
from typing import NamedTuple, assert_never

from disksla.limits.derive import derive_limits
from disksla.limits.size_rules import (
    AllocationUnits,
    BandwidthRule,
    Clamp,
    FromIops,
    IopsRule,
    Provisioned,
    Tiers,
    allocation_units,
)
from disksla.limits.terms import Provision, Terms
from disksla.units import GIB, format_bandwidth, format_count, format_size


class DerivationStep(NamedTuple):
    """One limit, and how it was reached."""

    name: str
    steps: str
    """The law with numbers filled in, such as 'ceil(1 TiB / 256 GiB) = 4, x 300 = 1200'."""
    result: str


def derivation(
    terms: Terms, size_bytes: int, provisioned: Provision | None = None
) -> tuple[DerivationStep, ...]:
    """Give the arithmetic from the size of a disk to its limits, one entry for each limit.

    Raises Refusal where the limits cannot be derived.
    """
    rates = derive_limits(terms, size_bytes, provisioned).rates
    return tuple(
        DerivationStep(name, _steps(law, size_bytes, iops, shown), shown(rate))
        for name, law, rate, iops, shown in (
            ("read IOPS", terms.read_iops, rates.read_iops, None, format_count),
            ("write IOPS", terms.write_iops, rates.write_iops, None, format_count),
            (
                "read bandwidth",
                terms.read_bandwidth,
                rates.read_bytes_per_second,
                rates.read_iops,
                format_bandwidth,
            ),
            (
                "write bandwidth",
                terms.write_bandwidth,
                rates.write_bytes_per_second,
                rates.write_iops,
                format_bandwidth,
            ),
        )
        if law is not None and rate is not None
    )


def _steps(
    law: IopsRule | BandwidthRule,
    size_bytes: int,
    iops: float | None,
    shown: Callable[[float], str],
) -> str:
    match law:
        case Clamp():
            rate = f"{shown(law.per_gib)} x {size_bytes / GIB:g} GiB"
            line = f"{shown(law.base)} + {rate}" if law.base else rate
            return _bounded(f"{line} = {shown(law.line(size_bytes))}", law, shown)
        case AllocationUnits():
            units = allocation_units(size_bytes, law.unit_bytes)
            division = f"{format_size(size_bytes)} / {format_size(law.unit_bytes)}"
            product = f"{shown(law.per_unit)} = {shown(units * law.per_unit)}"
            return f"ceil({division}) = {units}, x {product}" + _at_most(law.maximum, shown)
        case Tiers():
            return f"the step of the table up to {format_size(law.step(size_bytes).up_to_bytes)}"
        case FromIops():
            io = format_size(law.bytes_per_io)
            product = shown((iops or 0.0) * law.bytes_per_io)
            return _bounded(f"{format_count(iops or 0.0)} IOPS x {io} = {product}", law, shown)
        case Provisioned():
            least, most = law.bounds(size_bytes, iops)
            return f"provisioned, between {shown(least)} and {shown(most)} at this size"
        case _:
            assert_never(law)


def _bounded(line: str, law: Clamp | FromIops, shown: Callable[[float], str]) -> str:
    least = "" if law.minimum is None else f", at least {shown(law.minimum)}"
    return line + least + _at_most(law.maximum, shown)


def _at_most(maximum: float | None, shown: Callable[[float], str]) -> str:
    return "" if maximum is None else f", at most {shown(maximum)}"
