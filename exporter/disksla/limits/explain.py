"""Explains limits: the arithmetic of each rule, with its numbers."""

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
    """One limit and its arithmetic."""

    name: str
    steps: str
    """The rule with its numbers, such as 'ceil(1 TiB / 256 GiB) = 4, x 300 = 1200'."""
    result: str


def derivation(
    terms: Terms, size_bytes: int, provisioned: Provision | None = None
) -> tuple[DerivationStep, ...]:
    """Return the arithmetic from the size of a disk to its limits, an entry for each limit.

    Raise DiskslaError if the limits cannot be derived.
    """
    rates = derive_limits(terms, size_bytes, provisioned).rates
    return tuple(
        DerivationStep(name, _steps(rule, size_bytes, iops, shown), shown(rate))
        for name, rule, rate, iops, shown in (
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
        if rule is not None and rate is not None
    )


def _steps(
    rule: IopsRule | BandwidthRule,
    size_bytes: int,
    iops: float | None,
    shown: Callable[[float], str],
) -> str:
    match rule:
        case Clamp():
            if not rule.per_gib:
                return f"{shown(rule.rate(size_bytes))} at any size"
            rate = f"{shown(rule.per_gib)} x {size_bytes / GIB:g} GiB"
            line = f"{shown(rule.base)} + {rate}" if rule.base else rate
            return _bounded(f"{line} = {shown(rule.line(size_bytes))}", rule, shown)
        case AllocationUnits():
            units = allocation_units(size_bytes, rule.unit_bytes)
            division = f"{format_size(size_bytes)} / {format_size(rule.unit_bytes)}"
            product = f"{shown(rule.per_unit)} = {shown(units * rule.per_unit)}"
            return f"ceil({division}) = {units}, x {product}" + _at_most(rule.maximum, shown)
        case Tiers():
            return f"table step up to {format_size(rule.step(size_bytes).up_to_bytes)}"
        case FromIops():
            io = format_size(rule.bytes_per_io)
            product = shown((iops or 0.0) * rule.bytes_per_io)
            return _bounded(f"{format_count(iops or 0.0)} IOPS x {io} = {product}", rule, shown)
        case Provisioned():
            least, most = rule.bounds(size_bytes, iops)
            return f"provisioned, {shown(least)} to {shown(most)} at this size"
        case _:
            assert_never(rule)


def _bounded(line: str, rule: Clamp[float] | FromIops, shown: Callable[[float], str]) -> str:
    least = "" if rule.minimum is None else f", at least {shown(rule.minimum)}"
    return line + least + _at_most(rule.maximum, shown)


def _at_most(maximum: float | None, shown: Callable[[float], str]) -> str:
    return "" if maximum is None else f", at most {shown(maximum)}"
