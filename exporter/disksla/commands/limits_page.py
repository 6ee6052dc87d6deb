"""The page that `disksla limits` prints for people."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from disksla.commands.promise_words import facts_of, facts_table, rates_table
from disksla.commands.terminal import Terminal
from disksla.core.arithmetic import work_out
from disksla.core.limits import Limits
from disksla.core.promise import Band
from disksla.core.terms import Provision, Terms, VmCaps
from disksla.core.units import GIB, format_bandwidth, format_count, format_size

_DECIMAL_UNITS = ("kB", "KB", "MB", "GB", "TB")


class Mix(NamedTuple):
    """A steady load: requests of one size, and the share of writes among them."""

    request_bytes: int
    write_share: float


class Asked(NamedTuple):
    """What the person asked about, in base units."""

    size_text: str
    size_bytes: int
    provision: Provision
    mix: Mix | None
    """None where no effective IOPS were asked for."""


def print_limits(terms: Terms, limits: Limits, asked: Asked, band: Band | None) -> None:
    """Print what the terms come to, how, and where that is written."""
    console = Terminal()
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
    terms: Terms, limits: Limits, asked: Asked, band: Band | None
) -> Iterator[tuple[str, str]]:
    """Give everything that is said beside the table of rates."""
    if asked.mix is not None:
        yield "effective IOPS", _effective_words(asked.mix, band)
    yield from facts_of(limits, terms, work_out(terms, asked.size_bytes, asked.provision))
    if terms.vm_caps:
        yield "per VM", _caps_words(terms.vm_caps)


def _effective_words(mix: Mix, band: Band | None) -> str:
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
