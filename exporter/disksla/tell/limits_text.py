"""Text, tables and JSON of limits, for several commands."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from disksla.base.units import (
    GIB,
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_size,
    is_decimal,
    parse_size_bytes,
)
from disksla.promise.catalogue import (
    BUDGETS,
    Additive,
    Bucket,
    Budgets,
    Burst,
    Confidence,
    CostModel,
    DerivationStep,
    EffectiveIops,
    Limits,
    Metered,
    OneUnit,
    Provision,
    Rates,
    RowSource,
    Terms,
    allocation_units,
    beyond_bounds,
    beyond_sizes,
    chosen_values,
    client_of,
    client_text,
    derivation,
    latency_text,
    limiter_text,
    metered_text,
    percent_text,
    shared_text,
    with_options,
)
from disksla.tell.page import DataTable, FactList, Heading, Line, PagePart

_CONFIDENCE = {
    "medium": "read through a copy or a program, or probably changed since",
    "low": "the provider's own text was not read",
}
_LENGTHS = {
    "unlimited": "at any time, without credits",
    "unknown": "for a time that the provider does not publish; it is not promised",
}
_CREDITS = {"iops": "I/Os", "service_seconds": "s of baseline service"}


def limits_document(limits: Limits) -> dict[str, Any]:
    """Return limits for JSON, in base units; null where there is no limit."""
    return {
        **msgspec.structs.asdict(limits.rates),
        "budget": limits.budget.kind if limits.budget else None,
        "budgets": limits.budget,
        "latency_seconds": limits.latency_s,
        "write_latency_seconds": limits.write_latency_s,
        "latency_kind": limits.latency_kind,
        "latency_time_share": limits.latency_time_share,
        "promised_time_share": limits.promised_time_share,
        "limiter": {
            "kind": limits.limiter.kind,
            "window_seconds": limits.limiter.window_s,
            "bucket_seconds": limits.limiter.bucket_s,
            "tolerated_excess_ratio": limits.limiter.excess_ratio,
        },
        "burst": burst_document(limits.burst) if limits.burst else None,
        "one_unit": limits.one_unit
        and {
            "size_bytes": limits.one_unit.size_bytes,
            **msgspec.structs.asdict(limits.one_unit.rates),
        },
    }


def rates_table(limits: Limits) -> DataTable:
    """Return a table of the promised rates, and of the burst rates if there are any."""
    rows = _rates("", limits.rates)
    if limits.burst:
        rows += _rates("burst ", limits.burst.rates)
    return DataTable(("", "read", "write"), rows, numbers=("read", "write"))


def source_lines(sources: Iterable[RowSource]) -> list[Line]:
    """Return where the numbers are from, each on a line, however long."""
    return [Line(f"{source.date} {source.url}", "copied") for source in sources]


def limits_facts(
    limits: Limits, terms: Terms | None = None, steps: Iterable[DerivationStep] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the facts besides rates: budget, arithmetic, latency, conditions and credits."""
    if limits.budget is not None:
        yield from _budgets(limits.budget)
    elif terms is not None and terms.is_file_storage:
        yield "promise", f"none: {terms.provider_name} publishes no limits of this type"
    else:
        yield "promise", "none: no limits are known for this type"
    if terms is not None and isinstance(terms.cost, Metered):
        yield "metered", metered_text(terms.cost)
    yield from _arithmetic(steps)
    if limits.one_unit is not None:
        yield "one unit", _unit_text(limits.one_unit)
    if limits.latency_s is not None or limits.write_latency_s is not None:
        yield (
            "latency",
            latency_text(
                limits.latency_kind,
                limits.latency_s,
                limits.write_latency_s,
                limits.latency_time_share,
            ),
        )
    if limits.promised_time_share is not None:
        yield "promised for", f"{percent_text(limits.promised_time_share)} of the time"
    yield from _limiter(limits, terms)
    if terms is not None:
        yield from _conditions(terms)
    for bucket in limits.buckets:
        yield "credits", _credits_text(bucket)
    if limits.burst is not None and limits.burst.length != "credits":
        yield "burst", _LENGTHS[limits.burst.length]


def _limiter(limits: Limits, terms: Terms | None) -> Iterator[tuple[str, str]]:
    """Yield how the limiter behaves; of a file storage only what is known."""
    known = terms.limiter if terms is not None else None
    if known is not None:
        yield "limiter", limiter_text(known, known.excess_ratio)
    elif limits.limiter.kind is not None:
        yield "limiter", limiter_text(limits.limiter, None)
    elif terms is not None and limits.budget is not None and not terms.is_file_storage:
        yield "limiter", "not known"


def _unit_text(unit: OneUnit) -> str:
    rates = unit.rates
    iops = _of_both(rates.read_iops, rates.write_iops, format_count)
    bandwidth = _of_both(
        rates.read_bytes_per_second, rates.write_bytes_per_second, format_listed_bandwidth
    )
    return (
        f"an allocation unit of {format_size(unit.size_bytes)} is promised {iops} IOPS and"
        f" {bandwidth}; a load within one unit may get no more"
    )


def _of_both(read: float | None, write: float | None, shown: Callable[[float], str]) -> str:
    """Return the rates of reads and of writes, once if they are the same."""
    if read == write:
        return _or_none(read, shown)
    return f"{_or_none(read, shown)} / {_or_none(write, shown)} (reads / writes)"


def _budgets(budget: Budgets) -> Iterator[tuple[str, str]]:
    if budget.iops == budget.bandwidth:
        yield "budget", BUDGETS[budget.iops]
        return
    yield "budget of IOPS", BUDGETS[budget.iops]
    yield "budget of bandwidth", BUDGETS[budget.bandwidth]


def burst_document(burst: Burst) -> dict[str, Any]:
    """Return a burst for JSON; the fields of a single bucket are repeated at the top level."""
    buckets = [
        {
            "resource": bucket.resource,
            "capacity": bucket.capacity,
            "fill": bucket.fill_per_second,
            "initial_share": bucket.initial_share,
        }
        for bucket in burst.buckets
    ]
    keys = ("resource", "capacity", "fill", "initial_share")
    single = buckets[0] if len(buckets) == 1 else dict.fromkeys(keys)
    return {
        **msgspec.structs.asdict(burst.rates),
        **single,
        "length": burst.length,
        "seconds": burst.seconds,
        "buckets": buckets,
    }


def _arithmetic(steps: Iterable[DerivationStep]) -> Iterator[tuple[str, str]]:
    """Yield the arithmetic, in one line where it is the same for reads and writes."""
    names: dict[str, list[str]] = {}
    for step in steps:
        names.setdefault(step.steps, []).append(step.name)
    for text, equal in names.items():
        yield equal[0] if len(equal) == 1 else equal[0].removeprefix("read "), text


def _conditions(terms: Terms) -> Iterator[tuple[str, str]]:
    for what, conditions in (
        ("IOPS apply", terms.iops_conditions),
        ("bandwidth applies", terms.bandwidth_conditions),
    ):
        if conditions:
            depth = f", {conditions.queue_depth} in flight" if conditions.queue_depth else ""
            yield what, f"to requests of {format_size(conditions.request_bytes)}{depth}"
    if terms.promised_shares:
        shares = (
            f"{promised.share:.0%} at {format_size(promised.request_bytes)}"
            for promised in terms.promised_shares
        )
        yield "promised IOPS", ", ".join(shares)


def _rates(prefix: str, rates: Rates) -> list[tuple[str, str, str]]:
    return [
        (f"{prefix}{name}", _or_none(read, shown), _or_none(write, shown))
        for name, shown, read, write in (
            ("IOPS", format_count, rates.read_iops, rates.write_iops),
            (
                "bandwidth",
                format_listed_bandwidth,
                rates.read_bytes_per_second,
                rates.write_bytes_per_second,
            ),
        )
    ]


def _or_none(rate: float | None, shown: Callable[[float], str]) -> str:
    return "none" if rate is None else shown(rate)


def _credits_text(bucket: Bucket) -> str:
    capacity = (
        format_size(bucket.capacity)
        if bucket.resource == "bytes"
        else f"{format_count(bucket.capacity)} {_CREDITS[bucket.resource]}"
    )
    refill_s = bucket.capacity / bucket.fill_per_second
    lasts = f"{format_duration(bucket.seconds)} at the burst rate"
    if math.isinf(bucket.seconds):
        lasts = "never empty"
    text = f"{capacity}, {lasts}, {format_duration(refill_s)} to refill"
    if bucket.initial_share is None:
        return text
    full = "full" if bucket.initial_share == 1 else f"{bucket.initial_share:.0%} full"
    return f"{text}, {full} at the start"


class Mix(NamedTuple):
    """A steady load: requests of one size, and the share of writes among them."""

    request_bytes: int
    write_share: float


class LimitsQuery(NamedTuple):
    """The arguments of `disksla limits`, in base units."""

    size_text: str
    size_bytes: int
    provision: Provision
    mix: Mix | None
    """None if effective IOPS are not requested."""


def limits_page(
    terms: Terms,
    limits: Limits,
    query: LimitsQuery,
    iops: EffectiveIops | None,
    of_machine: str | None,
) -> list[PagePart]:
    """Return the limits, their arithmetic, a text on those of the machine, and the sources."""
    gib = query.size_bytes / GIB
    size = f"{gib:.6g} GiB" if gib >= 1 else format_size(query.size_bytes)
    return [
        Heading(f"{terms.provider_name}, {terms.title} ({terms.id}), {size}", level=1),
        *([] if limits.budget is None else [rates_table(limits)]),
        FactList([*_facts(terms, limits, query, iops), ("machine", of_machine)]),
        *source_lines(terms.sources),
    ]


def _facts(
    terms: Terms, limits: Limits, query: LimitsQuery, iops: EffectiveIops | None
) -> Iterator[tuple[str, str]]:
    if query.mix is not None:
        yield "effective IOPS", _effective_text(query.mix, iops, terms.cost)
    if terms.scope == "machine":
        yield "for", "all such disks of a machine together: use their total size"
    chosen, _ = with_options(terms, query.size_bytes, query.provision.options)
    if chosen.shared_by is not None:
        yield "shared", shared_text(chosen.shared_by)
    client = client_of(chosen, query.size_bytes)
    if client is not None:
        yield "one client", client_text(client)
    if terms.allocation_unit_bytes is not None:
        units = allocation_units(query.size_bytes, terms.allocation_unit_bytes)
        yield "allocation units", f"{units} of {format_size(terms.allocation_unit_bytes)}"
    for name, (option, value, _) in chosen_values(terms, query.provision.options).items():
        values = ", ".join(dict.fromkeys((option.default, *option.values)))
        yield name, f"{value}: {option.about.rstrip('.')} ({values})"
    yield from limits_facts(limits, terms, derivation(terms, query.size_bytes, query.provision))
    for note in notes_on(terms, query):
        yield "note", note
    if terms.not_known is not None:
        yield "not known", terms.not_known
    if terms.confidence != "high":
        yield "confidence", confidence_text(terms.confidence)


def confidence_text(confidence: Confidence) -> str:
    """Return a confidence below `high`, and what it means."""
    return f"{confidence}: {_CONFIDENCE[confidence]}"


def notes_on(terms: Terms, query: LimitsQuery) -> list[str]:
    """Return a sentence for the size and for each value that the catalogue does not expect."""
    written = query.size_text if terms.binary_gb and is_decimal(query.size_text) else None
    return [
        *([binary_gb_note(terms, written)] if written is not None else []),
        *beyond_sizes(terms, query.size_bytes),
        *beyond_bounds(terms, query.size_bytes, query.provision),
    ]


def binary_gb_note(terms: Terms, size: str) -> str:
    """Return what a size in GB is, as the provider of these terms writes it."""
    unit, shown = size[-2:].upper(), format_size(parse_size_bytes(size, binary_gb=True))
    return f"{terms.provider_name} writes {unit} for {unit[0]}iB: {size} is {shown}"


def _effective_text(mix: Mix, iops: EffectiveIops | None, cost: CostModel) -> str:
    writes = "reads only" if mix.write_share == 0 else f"{100 * mix.write_share:.3g}% writes"
    load = f"for requests of {format_size(mix.request_bytes)}, {writes}"
    if iops is None:
        return f"no promise {load}"
    promise, most = _hundredths(iops.promise), _hundredths(iops.enforced)
    if math.isclose(*iops):
        return f"{promise} {load}"
    if isinstance(cost, Additive):
        return f"{promise} by the published formula ({most} by the block store's) {load}"
    return f"{promise}, at most {most}, {load}"


def _hundredths(number: float) -> str:
    return f"{number:.2f}".removesuffix(".00")
