"""How a promise is put before people and programs: the words, tables and JSON of limits."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from rich.table import Table

from disksla.commands._console import SafeConsole
from disksla.limits import (
    Bucket,
    Burst,
    DerivationStep,
    EffectiveIops,
    Limits,
    Provision,
    Rates,
    Terms,
    derivation,
)
from disksla.limits.terms import VmCap, VmCaps
from disksla.units import GIB, format_bandwidth, format_count, format_duration, format_size

_BUDGETS = {
    "separate": "reads and writes have limits of their own",
    "sum": "reads and writes together have one limit",
    "time_shared": "reads and writes share one budget of time",
}
_CREDITS = {"iops": "I/Os", "service_seconds": "s of base-level service"}


def limits_document(limits: Limits) -> dict[str, Any]:
    """Give limits for JSON, in base units; null where nothing is promised."""
    return {
        **msgspec.structs.asdict(limits.rates),
        "budget": limits.budget,
        "latency_seconds": limits.latency_s,
        "latency_kind": limits.latency_kind,
        "burst": burst_document(limits.burst) if limits.burst else None,
    }


def rates_table(limits: Limits) -> Table:
    """Give the rates that are promised, and those of a burst."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("read", justify="right")
    table.add_column("write", justify="right")
    _add_rates(table, "", limits.rates)
    if limits.burst:
        _add_rates(table, "burst ", limits.burst.rates)
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Give names and what is to be said of them, wrapped beside the names."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, words in facts:
        table.add_row(name, words)
    return table


def limits_facts(
    limits: Limits, terms: Terms | None = None, workings: Iterable[DerivationStep] = ()
) -> Iterator[tuple[str, str]]:
    """Say what limits are besides rates: budget, arithmetic, latency, conditions and credits."""
    if limits.budget is None:
        yield "promise", "none: what such a disk does can only be observed"
    else:
        yield "budget", _BUDGETS[limits.budget]
    yield from _workings(workings)
    if limits.latency_s is not None:
        yield "latency", f"{format_duration(limits.latency_s)}, {limits.latency_kind}"
    if terms is not None:
        yield from _conditions(terms)
    for bucket in limits.buckets:
        yield "credits", _credits_words(bucket)


def cap_text(cap: VmCap, vcpus: int) -> str:
    """Say what a machine with so many vCPUs may do over all its disks of one kind."""
    return (
        f"{format_count(cap.iops)} IOPS and {format_bandwidth(cap.bytes_per_second)} over all such"
        f" disks, by the {vcpus} vCPU{'' if vcpus == 1 else 's'} here"
    )


def burst_document(burst: Burst) -> dict[str, Any]:
    """Give a burst for JSON; a sole bucket stands beside the rates too."""
    buckets = [
        {
            "resource": bucket.resource,
            "capacity": bucket.capacity,
            "fill": bucket.fill_per_second,
        }
        for bucket in burst.buckets
    ]
    sole = buckets[0] if len(buckets) == 1 else dict.fromkeys(("resource", "capacity", "fill"))
    return {**msgspec.structs.asdict(burst.rates), **sole, "buckets": buckets}


def _workings(workings: Iterable[DerivationStep]) -> Iterator[tuple[str, str]]:
    """Give the arithmetic, in one line where reads and writes are reckoned alike."""
    names: dict[str, list[str]] = {}
    for working in workings:
        names.setdefault(working.steps, []).append(working.name)
    for steps, alike in names.items():
        yield alike[0] if len(alike) == 1 else alike[0].removeprefix("read "), steps


def _conditions(terms: Terms) -> Iterator[tuple[str, str]]:
    """Say at which requests a promise holds."""
    for what, conditions in (
        ("IOPS hold", terms.iops_conditions),
        ("bandwidth holds", terms.bandwidth_conditions),
    ):
        if conditions:
            depth = f", {conditions.queue_depth} in flight" if conditions.queue_depth else ""
            yield what, f"for requests of {format_size(conditions.request_bytes)}{depth}"
    if terms.promised_shares:
        shares = (
            f"{promised.share:.0%} at {format_size(promised.request_bytes)}"
            for promised in terms.promised_shares
        )
        yield "of the IOPS", ", ".join(shares)


def _add_rates(table: Table, prefix: str, rates: Rates) -> None:
    for name, shown, read, write in (
        ("IOPS", format_count, rates.read_iops, rates.write_iops),
        (
            "bandwidth",
            format_bandwidth,
            rates.read_bytes_per_second,
            rates.write_bytes_per_second,
        ),
    ):
        table.add_row(f"{prefix}{name}", _or_none(read, shown), _or_none(write, shown))


def _or_none(rate: float | None, shown: Callable[[float], str]) -> str:
    return "none" if rate is None else shown(rate)


def _credits_words(bucket: Bucket) -> str:
    capacity = (
        format_size(bucket.capacity)
        if bucket.resource == "bytes"
        else f"{format_count(bucket.capacity)} {_CREDITS[bucket.resource]}"
    )
    return f"{capacity}, {format_duration(bucket.capacity / bucket.fill_per_second)} to refill"


_DECIMAL_UNITS = ("kB", "KB", "MB", "GB", "TB")


class Mix(NamedTuple):
    """A steady load: requests of one size, and the share of writes among them."""

    request_bytes: int
    write_share: float


class LimitsQuery(NamedTuple):
    """What the person asked about, in base units."""

    size_text: str
    size_bytes: int
    provision: Provision
    mix: Mix | None
    """None where no effective IOPS were asked for."""


def print_limits(
    terms: Terms, limits: Limits, asked: LimitsQuery, band: EffectiveIops | None
) -> None:
    """Print what the terms come to, how, and where that is written."""
    console = SafeConsole()
    gib = asked.size_bytes / GIB
    size = f"{gib:.6g} GiB" if gib >= 1 else format_size(asked.size_bytes)
    console.print(f"{terms.provider_name}, {terms.title} ({terms.id}), {size}", style="bold")
    if terms.binary_gb and asked.size_text.endswith(_DECIMAL_UNITS):
        unit = asked.size_text[-2:].upper()
        console.print(
            f"Note: {asked.size_text} is {gib:.1f} GiB;"
            f" {terms.provider_name}'s {unit} are {unit[0]}iB."
        )
    console.print()
    if limits.budget is not None:
        console.print(rates_table(limits))
        console.print()
    console.print(facts_table(_facts(terms, limits, asked, band)))
    console.print()
    for source in terms.sources:
        console.print(f"{source.date} {source.url}", soft_wrap=True)


def _facts(
    terms: Terms, limits: Limits, asked: LimitsQuery, band: EffectiveIops | None
) -> Iterator[tuple[str, str]]:
    """Give everything that is said beside the table of rates."""
    if asked.mix is not None:
        yield "effective IOPS", _effective_words(asked.mix, band)
    yield from limits_facts(limits, terms, derivation(terms, asked.size_bytes, asked.provision))
    if terms.vm_caps:
        yield "per VM", _caps_words(terms.vm_caps)


def _effective_words(mix: Mix, band: EffectiveIops | None) -> str:
    writes = "reads only" if mix.write_share == 0 else f"{100 * mix.write_share:.3g}% writes"
    load = f"for requests of {format_size(mix.request_bytes)}, {writes}"
    if band is None:
        return f"nothing is promised {load}"
    most = "" if math.isclose(*band) else f", at most {_hundredths(band.enforced)},"
    return f"{_hundredths(band.promise)}{most} {load}"


def _hundredths(number: float) -> str:
    return f"{number:.2f}".removesuffix(".00")


def _caps_words(caps: VmCaps) -> str:
    per_vcpu = (
        f"{format_count(caps.iops_per_vcpu)} IOPS"
        f" and {format_bandwidth(caps.bytes_per_second_per_vcpu)} per vCPU over all such disks"
    )
    most = [
        shown(maximum)
        for maximum, shown in (
            (caps.maximum_iops, lambda iops: f"{format_count(iops)} IOPS"),
            (caps.maximum_bytes_per_second, format_bandwidth),
        )
        if maximum is not None
    ]
    return f"{per_vcpu}, at most {' and '.join(most)}" if most else per_vcpu
