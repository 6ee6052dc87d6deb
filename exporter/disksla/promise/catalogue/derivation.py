"""Explains limits: the arithmetic of each rule, with its numbers."""

from typing import Any, NamedTuple

from disksla.base.units import (
    BYTES_PER_UNIT,
    GIB,
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_size,
)
from disksla.promise.catalogue import rules
from disksla.promise.catalogue.cost_model import Metered
from disksla.promise.catalogue.derive import Shown, bases, bounds_text, derive_limits
from disksla.promise.catalogue.limits import Limiter, LimiterTerms
from disksla.promise.catalogue.machine import GroupRule, PerVcpu
from disksla.promise.catalogue.options import with_options
from disksla.promise.catalogue.rules import RuleInput
from disksla.promise.catalogue.terms import ClientLimits, Provision, Terms

BUDGETS = {
    "separate": "reads and writes have separate limits",
    "sum": "reads and writes together have one limit",
    "time_shared": "reads and writes share one budget of time",
}
"""Each kind of budget in words."""


def percent_text(share: float) -> str:
    """Return a share of the time, such as '99.9 %'."""
    return f"{100 * share:.6g} %"


def latency_text(
    kind: str | None, read_s: float | None, write_s: float | None, time_share: float | None
) -> str:
    """Return the latency that a provider states; that of reads is that of writes without one."""
    parts = [] if read_s is None else [format_duration(read_s)]
    if write_s is not None:
        parts = [f"{part} for reads" for part in parts]
        parts.append(f"{format_duration(write_s)} for writes")
    time = "" if time_share is None else f" for {percent_text(time_share)} of the time"
    return f"{', '.join(parts)}{time}, {kind}"


def limiter_text(limiter: Limiter | LimiterTerms, excess_ratio: float | None) -> str:
    """Return how a limiter behaves, and by how much its rates exceed the promise."""
    parts: list[str] = [limiter.kind or "not known whether even or in windows"]
    if limiter.window_s is not None:
        parts = [f"in windows of {format_duration(limiter.window_s)}"]
    if limiter.bucket_s is not None:
        parts.append(f"a bucket of {format_duration(limiter.bucket_s)}")
    if excess_ratio is not None:
        parts.append(f"up to {percent_text(excess_ratio)} more than promised")
    return ", ".join(parts)


def shared_text(shared_by: str) -> str:
    """Return who shares the limits of a file storage."""
    return f"by {shared_by}: a machine may get a part of the limits only"


def metered_text(cost: Metered) -> str:
    """Return how a file storage meters requests."""
    share = f"1/{cost.read_divisor} of its bytes" if cost.read_divisor > 1 else "its bytes"
    return (
        f"a write by its bytes, a read by {share}, each at least {format_size(cost.least_bytes)}"
    )


def client_text(client: ClientLimits) -> str:
    """Return what one client of a file storage may get."""
    rates = {"reads": client.read_bytes_per_second, "writes": client.write_bytes_per_second}
    parts = [f"{format_listed_bandwidth(rate)} for {what}" for what, rate in rates.items() if rate]
    text = ", ".join(parts)
    if len(set(rates.values())) == 1 and client.read_bytes_per_second:
        text = f"{format_listed_bandwidth(client.read_bytes_per_second)}; {BUDGETS[client.budget]}"
    text += " (metered bytes)" if client.metered else ""
    return (
        text if client.below_bytes is None else f"{text}, below {format_size(client.below_bytes)}"
    )


class DerivationStep(NamedTuple):
    """One limit and its arithmetic."""

    name: str
    steps: str  # the rule with its numbers, such as 'ceil(1 TiB / 256 GiB) = 4, x 300 = 1200'
    result: str


def derivation(
    terms: Terms, size_bytes: int, provisioned: Provision | None = None
) -> tuple[DerivationStep, ...]:
    """Return the arithmetic from the size of a disk to its limits, an entry for each limit.

    Raise DiskslaError if the limits cannot be derived.
    """
    provision = provisioned or Provision()
    has_limits = derive_limits(terms, size_bytes, provision).budget is not None
    terms, size_bytes = with_options(terms, size_bytes, provision.options)
    return tuple(
        DerivationStep(
            f"{each.direction} {each.what}",
            _steps(each.rule, each.basis, each.shown),
            each.shown(each.rule.rate(each.basis) or 0.0),
        )
        for each in bases(terms, size_bytes, provision)
        if has_limits and each.rule is not None
    )


def _steps(rule: object, basis: RuleInput, shown: Shown) -> str:
    """Return the arithmetic of a rule, which may be made of others."""
    match rule:
        case rules.Greatest():
            return "the greatest of: " + "; ".join(_steps(each, basis, shown) for each in rule.of)
        case rules.Least():
            return "the least of: " + "; ".join(_steps(each, basis, shown) for each in rule.of)
        case rules.Sum():
            return " plus ".join(f"({_steps(each, basis, shown)})" for each in rule.of)
        case rules.Multiple():
            steps = _steps(rule.of, basis, shown)
            line = steps if rule.factor == 1 else f"{rule.factor:g} x ({steps})"
            return _bounded(line, rule, shown)
        case rules.Provisioned():
            chosen = "provisioned" if basis.provisioned is not None else "default"
            return f"{chosen}, {bounds_text(shown, rule.bounds(basis))}"
        case _:
            return _own_steps(rule, basis, shown)


def _own_steps(rule: object, basis: RuleInput, shown: Shown) -> str:
    """Return the arithmetic of a rule that is made of no others."""
    match rule:
        case rules.Clamp():
            return _clamp_steps(rule, basis, shown)
        case rules.AllocationUnits():
            units = rules.allocation_units(basis.size_bytes, rule.unit_bytes)
            division = f"{format_size(basis.size_bytes)} / {format_size(rule.unit_bytes)}"
            product = f"{shown(rule.per_unit)} = {shown(units * rule.per_unit)}"
            return f"ceil({division}) = {units}, x {product}" + _at_most(rule.maximum, shown)
        case rules.Tiers():
            tier = rule.step(basis.size_bytes)
            return f"{shown(tier.rate)} up to {format_size(tier.up_to_bytes)}"
        case rules.BySize():
            step = rule.step(basis.size_bytes)
            rate: Any = step.rate
            text = _steps(rate, basis, shown) if isinstance(rate, rules.Clamp) else shown(rate)
            return f"{text} from {format_size(step.from_bytes)}"
        case rules.FromIops():
            iops = basis.of_other(of_provisioned=rule.of_provisioned)
            what = "bought IOPS" if rule.of_provisioned else "IOPS"
            product = shown(iops * rule.bytes_per_io)
            line = f"{format_count(iops)} {what} x {format_size(rule.bytes_per_io)} = {product}"
            return _bounded(line, rule, shown)
        case rules.FromBandwidth():
            bandwidth = basis.of_other(of_provisioned=rule.of_provisioned)
            what = " bought" if rule.of_provisioned else ""
            size = format_size(rule.bytes_per_io)
            line = f"{format_listed_bandwidth(bandwidth)}{what} / {size}"
            line += f" = {shown(bandwidth / rule.bytes_per_io)}"
            return line + _at_most(rule.maximum, shown)
        case _:
            raise NotImplementedError(rule)


def _clamp_steps(rule: rules.Clamp[Any], basis: RuleInput, shown: Shown) -> str:
    if not rule.slope:
        return f"{shown(rule.rate(basis))} at any size"
    size = f"{basis.size_bytes / GIB:g} GiB"
    if rule.per_unit:
        unit = unit_text(rule.unit_bytes)
        size = f"{basis.size_bytes / rule.unit_bytes:g} {'' if unit.isalpha() else 'x '}{unit}"
    rate = f"{shown(rule.slope)} x {size}"
    line = f"{shown(rule.base)} + {rate}" if rule.base else rate
    up = ", rounded up" if rule.round_up else ""
    return _bounded(f"{line} = {shown(rule.line(basis.size_bytes))}{up}", rule, shown)


def unit_text(unit_bytes: int) -> str:
    """Return a unit of size as a provider writes it, such as 'TiB', 'GB' or '10 TiB'."""
    for unit, size_bytes in BYTES_PER_UNIT.items():
        if size_bytes == unit_bytes and len(unit) > 1:
            return unit
    return format_size(unit_bytes)


def _bounded(
    line: str, rule: rules.Clamp[float] | rules.FromIops | rules.Multiple[float], shown: Shown
) -> str:
    least = "" if rule.minimum is None else f", at least {shown(rule.minimum)}"
    return line + least + _at_most(rule.maximum, shown)


def _at_most(maximum: float | None, shown: Shown) -> str:
    return "" if maximum is None else f", at most {shown(maximum)}"


def group_rates(group: GroupRule) -> str | None:
    """Return the IOPS and the bandwidth for each vCPU in words; None if a table has them."""
    iops, bandwidth = group.read_iops, group.read_bandwidth
    if not isinstance(iops, PerVcpu) or not isinstance(bandwidth, PerVcpu):
        return None
    iops_text = _per_vcpu(iops, lambda rate: f"{format_count(rate)} IOPS")
    return f"{iops_text} and {_per_vcpu(bandwidth, format_listed_bandwidth)}"


def _per_vcpu(rule: PerVcpu[float], shown: Shown) -> str:
    most = "" if rule.maximum is None else f" (at most {shown(rule.maximum)})"
    return f"{shown(rule.per_vcpu)} per vCPU{most}"
