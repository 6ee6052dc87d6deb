"""What a type of the catalogue is promised, in words: for the pages of catalog_page.py."""

from collections.abc import Iterator
from functools import singledispatch
from typing import assert_never

from disksla.base.units import format_count, format_duration, format_listed_bandwidth, format_size
from disksla.promise.catalogue.burst_rules import BurstRule, BurstSeconds, TokenBuckets, UnitBoost
from disksla.promise.catalogue.cost_model import Additive, Chunks, CostModel, Metered, PerRequest
from disksla.promise.catalogue.derivation import (
    BUDGETS,
    client_text,
    latency_text,
    limiter_text,
    metered_text,
    percent_text,
    shared_text,
    unit_text,
)
from disksla.promise.catalogue.derive import Shown, range_text
from disksla.promise.catalogue.limits import Budgets
from disksla.promise.catalogue.rules import (
    AllocationUnits,
    BySize,
    Clamp,
    FromBandwidth,
    FromBaseline,
    FromIops,
    Greatest,
    Least,
    Multiple,
    Provisioned,
    Sum,
    Tiers,
)
from disksla.promise.catalogue.terms import Changes, LatencyTerms, Option, OptionOfValue, Terms


def facts(row: Terms) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a type, each with its name, in Markdown."""
    yield "confidence", row.confidence
    if row.sizes.least_bytes or row.sizes.most_bytes:
        yield "sizes", range_text(row.sizes.least_bytes, row.sizes.most_bytes, format_size)
    if row.scope == "machine":
        yield "for", "all such disks of a machine together, by their total size"
    yield from _shared(row)
    yield from _rates(row)
    if row.budget is not None:
        yield "budget", budget_text(row.budget)
    if not isinstance(row.cost, PerRequest):
        yield "I/O", _cost(row.cost)
    if row.burst is not None:
        yield "burst", _burst(row.burst)
    yield from _options(row)
    yield from _conditions(row)


def _shared(row: Terms) -> Iterator[tuple[str, str]]:
    """Yield what file storages have beside disks."""
    if row.shared_by is not None:
        yield "shared", shared_text(row.shared_by)
    if row.client is not None:
        yield "one client", client_text(row.client)
    if row.allocation_unit_bytes is not None:
        yield "allocation unit", format_size(row.allocation_unit_bytes)
    if row.budget is None:
        yield "limits", "the provider publishes none"


def _conditions(row: Terms) -> Iterator[tuple[str, str]]:
    """Yield what is promised besides rates, and for which requests."""
    if row.latency is not None:
        yield "latency", _latency(row.latency)
    if row.limiter is not None:
        yield "limiter", limiter_text(row.limiter, row.limiter.excess_ratio)
    if row.promised_time_share is not None:
        yield "promised for", f"{percent_text(row.promised_time_share)} of the time"
    for what, conditions in (
        ("IOPS apply to", row.iops_conditions),
        ("bandwidth applies to", row.bandwidth_conditions),
    ):
        if conditions is not None:
            depth = f", {conditions.queue_depth} in flight" if conditions.queue_depth else ""
            yield what, f"requests of {format_size(conditions.request_bytes)}{depth}"


def _rates(row: Terms | Changes) -> Iterator[tuple[str, str]]:
    for what, read, write, shown in (
        ("IOPS", row.read_iops, row.write_iops, format_count),
        ("bandwidth", row.read_bandwidth, row.write_bandwidth, format_listed_bandwidth),
    ):
        if read is not None and read == write:
            yield what, _law(read, shown)
            continue
        for direction, rule in (("read", read), ("write", write)):
            if rule is not None:
                yield f"{direction} {what}", _law(rule, shown)


@singledispatch
def _law(rule: object, _shown: Shown) -> str:
    """Return a rule in words."""
    raise NotImplementedError(rule)


@_law.register
def _(rule: Clamp, shown: Shown) -> str:  # type: ignore[type-arg]
    parts = [shown(rule.base)] if rule.base else []
    parts += [f"{shown(rule.slope)} per {unit_text(rule.unit_bytes)}"] if rule.slope else []
    if not parts:
        return shown(rule.minimum or 0.0)
    up = f", rounded up to {shown(rule.round_to)}" if rule.round_up and rule.round_to else ""
    return " + ".join(parts) + up + _bounds(rule.minimum, rule.maximum, shown)


@_law.register
def _(rule: AllocationUnits, shown: Shown) -> str:  # type: ignore[type-arg]
    most = _bounds(None, rule.maximum, shown)
    return f"{shown(rule.per_unit)} for each {format_size(rule.unit_bytes)}{most}"


@_law.register
def _(rule: Tiers, shown: Shown) -> str:  # type: ignore[type-arg]
    last_of_rate = {step.rate: step.up_to_bytes for step in rule.steps}
    return "; ".join(
        f"{shown(rate)} to {format_size(size)}" for rate, size in last_of_rate.items()
    )


@_law.register
def _(rule: BySize, shown: Shown) -> str:  # type: ignore[type-arg]
    return "; ".join(
        f"{_law(step.rate, shown)} from {format_size(step.from_bytes)}" for step in rule.steps
    )


@_law.register
def _(rule: Multiple, shown: Shown) -> str:  # type: ignore[type-arg]
    bounds = _bounds(rule.minimum, rule.maximum, shown)
    law = _law(rule.of, shown)
    return (law if rule.factor == 1 else f"{rule.factor:g} x ({law})") + bounds


@_law.register
def _(rule: FromBaseline, shown: Shown) -> str:  # type: ignore[type-arg]
    bounds = _bounds(rule.minimum, rule.maximum, shown)
    return (
        f"{rule.factor:g} x the baseline{bounds}" if rule.factor != 1 else f"the baseline{bounds}"
    )


@_law.register
def _(rule: FromIops, shown: Shown) -> str:
    what = "bought IOPS" if rule.of_provisioned else "IOPS"
    line = f"{what} x {format_size(rule.bytes_per_io)}"
    return line + _bounds(rule.minimum, rule.maximum, shown)


@_law.register
def _(rule: FromBandwidth, shown: Shown) -> str:
    what = "bought bandwidth" if rule.of_provisioned else "bandwidth"
    return f"{what} / {format_size(rule.bytes_per_io)}" + _bounds(None, rule.maximum, shown)


@_law.register
def _(rule: Provisioned, shown: Shown) -> str:  # type: ignore[type-arg]
    line = "provisioned"
    if rule.minimum is not None:
        line += f", at least {_law(rule.minimum, shown)}"
    if rule.maximum is not None:
        line += f", at most {_law(rule.maximum, shown)}"
    if rule.default is not None:
        line += f"; {_law(rule.default, shown)} if none is chosen"
    return line


@_law.register(int)
@_law.register(float)
def _(rule: float, shown: Shown) -> str:
    return shown(rule)


@_law.register
def _(rule: Greatest, shown: Shown) -> str:  # type: ignore[type-arg]
    return "the greatest of: " + "; ".join(_law(each, shown) for each in rule.of)


@_law.register
def _(rule: Least, shown: Shown) -> str:  # type: ignore[type-arg]
    return "the least of: " + "; ".join(_law(each, shown) for each in rule.of)


@_law.register
def _(rule: Sum, shown: Shown) -> str:  # type: ignore[type-arg]
    return " plus ".join(f"({_law(each, shown)})" for each in rule.of)


def _bounds(minimum: float | None, maximum: float | None, shown: Shown) -> str:
    if minimum is None and maximum is None:
        return ""
    return f", {range_text(minimum, maximum, shown)}"


def _cost(cost: CostModel) -> str:
    match cost:
        case Chunks():
            return f"a request is one I/O for each {format_size(cost.chunk_bytes)}"
        case Additive():
            return "a request costs a fixed time and a time for each byte"
        case Metered():
            return f"bandwidth is metered: {metered_text(cost)}"
        case PerRequest():
            return "a request of any size"
        case _:
            assert_never(cost)


def _burst(rule: BurstRule) -> str:
    if isinstance(rule, UnitBoost):
        size = format_size(rule.level_units * rule.unit_bytes)
        return (
            f"the rates of a disk of {size}, for {format_duration(rule.boost_s)} in each"
            f" {format_duration(rule.refill_s)}"
        )
    limit = "" if rule.up_to_bytes is None else f"up to {format_size(rule.up_to_bytes)}: "
    limit += "if the size gives more than was bought: " if rule.above_provisioned else ""
    rates = "; ".join(
        f"{what} {_law(law, shown)}"
        for what, law, shown in (
            ("IOPS", rule.read_iops or rule.write_iops, format_count),
            ("bandwidth", rule.read_bandwidth or rule.write_bandwidth, format_listed_bandwidth),
        )
        if law is not None
    )
    if not isinstance(rule, TokenBuckets):
        for_long = "at any time" if rule.length == "unlimited" else "for an unpublished time"
        return f"{limit}{rates}, {for_long}"
    return f"{limit}{rates}, while credits last: " + "; ".join(map(_bucket, rule.buckets))


def _bucket(bucket: object) -> str:
    capacity, resource = bucket.capacity, bucket.resource  # type: ignore[attr-defined]
    unit = {"iops": " I/Os", "bytes": "", "service_seconds": " s of baseline service"}[resource]
    if isinstance(capacity, BurstSeconds):
        name = {"iops": "I/Os", "bytes": "bytes"}.get(resource, "service")
        return f"{name} for {format_duration(capacity.seconds)} at the burst rate"
    return _law(capacity, format_size if resource == "bytes" else format_count) + unit


def _options(row: Terms) -> Iterator[tuple[str, str]]:
    """Yield the options of a row, and those that some of their values have."""
    said: set[str] = set()
    for name, option in row.options.items():
        yield f"option `{name}`", _about(option, said) + _values(option)
        where: dict[tuple[str, str], list[str]] = {}
        for word, value in option.values.items():
            for inner, option_of_value in value.options.items():
                text = _about(option_of_value, said) + _values(option_of_value)
                where.setdefault((inner, text), []).append(f"`{name}={word}`")
        for (inner, text), words in where.items():
            yield f"option `{inner}` with {' or '.join(words)}", text


def _about(option: Option | OptionOfValue, said: set[str]) -> str:
    """Return what an option is and its default, unless it was said of this type."""
    text = f"{option.about.rstrip('.')} (default `{option.default}`). "
    if text in said:
        return ""
    said.add(text)
    return text


def _values(option: Option | OptionOfValue) -> str:
    """Return the values of an option; those that change the same are named together."""
    names: dict[str, list[str]] = {}
    for name, value in option.values.items():
        names.setdefault(", ".join(_changes(value)) or "no change", []).append(f"`{name}`")
    return "; ".join(f"{', '.join(equal)}: {text}" for text, equal in names.items())


def _changes(value: Changes) -> Iterator[str]:
    if value.least_size_bytes is not None:
        yield f"from {format_size(value.least_size_bytes)}"
    if value.as_size_bytes is not None:
        yield f"as {format_size(value.as_size_bytes)}"
    for what, law in _rates(value):
        yield f"{what} {law}"
    if value.burst is not None:
        yield f"burst {_burst(value.burst)}"
    if value.latency is not None:
        yield f"latency {_latency(value.latency)}"
    yield from _other_changes(value)


def _other_changes(value: Changes) -> Iterator[str]:
    """Yield what an option changes besides sizes, rates, burst and latency."""
    if value.budget is not None:
        yield budget_text(value.budget)
    if value.shared_by is not None:
        yield f"shared by {value.shared_by}"
    if value.client is not None:
        yield f"one client {client_text(value.client)}"
    if value.without:
        yield f"without {', '.join(value.without)}"


def _latency(latency: LatencyTerms) -> str:
    return latency_text(latency.kind, latency.seconds, latency.write_seconds, latency.time_share)


def budget_text(budget: str | Budgets) -> str:
    """Return a budget in words."""
    if isinstance(budget, Budgets):
        return f"IOPS: {BUDGETS[budget.iops]}; bandwidth: {BUDGETS[budget.bandwidth]}"
    return BUDGETS[budget]
