"""The numbers that terms come to for a disk of one size."""

from typing import Literal

import msgspec

from disksla.core.cost import (
    Additive,
    Allowance,
    Charge,
    Chunks,
    CostLaw,
    PerRequest,
    chunked,
    enforced_price,
    published_price,
    separate_charges,
    service_charges,
    shared_charges,
)

BudgetKind = Literal["separate", "sum", "time_shared"]
LatencyKind = Literal["guaranteed", "indicative"]
Resource = Literal["iops", "bytes", "service_seconds"]
DrainKind = Literal["net", "constant"]


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rates in requests and bytes per second; None where nothing is promised."""

    read_iops: float | None = None
    write_iops: float | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None


class Bucket(msgspec.Struct, frozen=True):
    """Burst credits of one resource."""

    resource: Resource
    capacity: float
    """In I/Os, bytes, or seconds of base-level service."""
    fill_per_second: float
    """Credits that come back each second."""
    initial_share: float | None = None
    """Level of a new disk as a share of the capacity; None where it is not known."""
    drain: DrainKind = "net"
    """`net`: use above base drains; `constant`: a burst drains at its full rate."""


class Burst(msgspec.Struct, frozen=True):
    """What the disk may do while credits last."""

    rates: Rates
    buckets: tuple[Bucket, ...]


class Limits(msgspec.Struct, frozen=True):
    """Everything promised to one disk. All absent (the default) where nothing is promised."""

    rates: Rates = Rates()
    budget: BudgetKind | None = None
    latency_s: float | None = None
    latency_kind: LatencyKind | None = None
    promise_charges: tuple[Charge, ...] = ()
    """The law of the promise: load 1.0 is exactly what was promised."""
    enforced_charges: tuple[Charge, ...] = ()
    """The law at which the disk must be held; differs where only a band is known."""
    burst: Burst | None = None


NOTHING_PROMISED = Limits()


def assemble_limits(
    rates: Rates,
    budget: BudgetKind,
    latency_s: float | None = None,
    latency_kind: LatencyKind | None = None,
    burst: Burst | None = None,
    cost: CostLaw = PerRequest(),  # noqa: B008 -- frozen
) -> Limits:
    """Give the limits that `rates` make under a budget, with the charges that say so.

    With `separate` each rate is a limit of its own; with `sum` reads and writes together may do
    what `rates` says for either (the same number twice); with `time_shared` r/R + w/W <= 1.
    An additive cost has two laws, the published and the enforced; otherwise they are the same.
    """
    promised = _charges(rates, budget, cost)
    if isinstance(cost, Additive):
        read, write = _allowances(rates)
        enforced = service_charges(enforced_price(read, cost), enforced_price(write, cost))
    else:
        enforced = promised
    return Limits(rates, budget, latency_s, latency_kind, promised, enforced, burst)


def _charges(rates: Rates, budget: BudgetKind, cost: CostLaw) -> tuple[Charge, ...]:
    read, write = _allowances(rates)
    if isinstance(cost, Additive):
        return service_charges(published_price(read), published_price(write))
    charges = (
        separate_charges(read, write) if budget == "separate" else shared_charges(read, write)
    )
    return chunked(charges, cost.chunk_bytes) if isinstance(cost, Chunks) else charges


def _allowances(rates: Rates) -> tuple[Allowance, Allowance]:
    return (
        Allowance(rates.read_iops, rates.read_bytes_per_second),
        Allowance(rates.write_iops, rates.write_bytes_per_second),
    )
