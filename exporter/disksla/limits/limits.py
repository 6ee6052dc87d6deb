"""The numbers that terms come to for a disk of one size."""

from typing import Annotated, Literal

import msgspec

from disksla.limits.cost_model import (
    Additive,
    Charge,
    Chunks,
    CostModel,
    DirectionLimits,
    PerRequest,
    chunked,
    enforced_cost,
    published_cost,
    separate_charges,
    service_charges,
    shared_charges,
)

BudgetKind = Literal["separate", "sum", "time_shared"]
LatencyKind = Literal["guaranteed", "indicative"]
Resource = Literal["iops", "bytes", "service_seconds"]
DrainKind = Literal["use", "excess", "constant"]


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rates in requests and bytes per second; None where nothing is promised."""

    read_iops: float | None = None
    write_iops: float | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None


class Bucket(msgspec.Struct, frozen=True):
    """Burst credits of one resource: what they are counted in, and what takes and gives them.

    Everything is in I/Os, bytes, or seconds of base-level service (the load against the base,
    times seconds), as `resource` says. With K credits left, use u, base b and peak p per second:

    | drain | dK/dt, between 0 and the capacity | while K > 0 | at K = 0 |
    |---|---|---|---|
    | `use` | fill - u | u <= p | u <= fill, which is the base |
    | `excess` | fill - max(0, u - b) | u <= p | u <= b + fill |
    | `constant` | fill - (p - b) in a window with u > b, else fill | u <= p | u <= b |

    Sources: `use` is the token bucket of AWS's gp2
    (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html), `excess` the boost of
    the block store behind Yandex Cloud (https://github.com/ydb-platform/nbs, boosted time
    bucket), `constant` a plan that sells bursts by their length.
    """

    resource: Resource
    capacity: float
    fill_per_second: float
    base_per_second: float
    """Had without credits; 1.0 for seconds of service."""
    peak_per_second: float
    initial_share: float | None = None
    """Level of a new disk as a share of the capacity; None where it is not known."""
    drain: DrainKind = "use"
    baseline_depth_s: float = 0.1
    """Seconds of base service that may be used at once without credits, after rest; where it is
    not known, the most that it may be. Of no meaning where all use drains."""


class Burst(msgspec.Struct, frozen=True):
    """What the disk may do while credits last."""

    rates: Rates
    buckets: tuple[Bucket, ...]


class PromisedShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of the IOPS limit that is promised for requests of one size."""

    request_bytes: Annotated[int, msgspec.Meta(gt=0)]
    share: Annotated[float, msgspec.Meta(gt=0, le=1)]


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At which requests the promise holds."""

    request_bytes: Annotated[int, msgspec.Meta(gt=0)]
    queue_depth: int | None = None
    """Requests in flight; None where the provider does not say."""


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
    throttled_charges: tuple[Charge, ...] = ()
    """That law where it holds in fact: credits that come back are used at once by a disk that is
    held at its base, if only use above the base drains them."""
    burst: Burst | None = None
    burst_charges: tuple[Charge, ...] = ()
    """The law while credits last; empty where there is no burst."""
    burst_throttled_charges: tuple[Charge, ...] = ()
    """The law at which a burst must be held; differs where only a band is known."""
    promised_shares: tuple[PromisedShare, ...] = ()
    """By growing request size; empty where a request of any size counts in full."""
    iops_conditions: Conditions | None = None
    bandwidth_conditions: Conditions | None = None

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """Those of the burst; none where there is no burst."""
        return self.burst.buckets if self.burst is not None else ()


NO_LIMITS = Limits()


def build_limits(
    rates: Rates,
    budget: BudgetKind,
    latency_s: float | None = None,
    latency_kind: LatencyKind | None = None,
    burst: Burst | None = None,
    cost: CostModel = PerRequest(),  # noqa: B008 -- frozen
) -> Limits:
    """Give the limits that `rates` make under a budget, with the charges that say so.

    With `separate` each rate is a limit of its own; with `sum` reads and writes together may do
    what `rates` says for either (the same number twice); with `time_shared` r/R + w/W <= 1.
    An additive cost has two laws, the published and the enforced; otherwise they are the same.
    """
    promised = _charges(rates, budget, cost)
    burst_charges = _charges(burst.rates, budget, cost) if burst is not None else ()
    enforced = _enforced(rates, cost, promised)
    return Limits(
        rates,
        budget,
        latency_s,
        latency_kind,
        promised,
        enforced,
        _with_refill(enforced, burst),
        burst,
        burst_charges,
        _enforced(burst.rates, cost, burst_charges) if burst is not None else (),
    )


def promised_share(shares: tuple[PromisedShare, ...], request_bytes: int) -> float:
    """Give the share of the IOPS limit that is promised at a request size.

    Between two sizes that the provider names, the share of the larger holds; above the last,
    that of the last.
    """
    if not shares:
        return 1.0
    return next(
        (share.share for share in shares if request_bytes <= share.request_bytes),
        shares[-1].share,
    )


def _enforced(rates: Rates, cost: CostModel, published: tuple[Charge, ...]) -> tuple[Charge, ...]:
    if not isinstance(cost, Additive):
        return published
    read, write = _allowances(rates)
    return service_charges(enforced_cost(read, cost), enforced_cost(write, cost))


def _charges(rates: Rates, budget: BudgetKind, cost: CostModel) -> tuple[Charge, ...]:
    read, write = _allowances(rates)
    if isinstance(cost, Additive):
        return service_charges(published_cost(read), published_cost(write))
    charges = (
        separate_charges(read, write) if budget == "separate" else shared_charges(read, write)
    )
    return chunked(charges, cost.chunk_bytes) if isinstance(cost, Chunks) else charges


def _allowances(rates: Rates) -> tuple[DirectionLimits, DirectionLimits]:
    return (
        DirectionLimits(rates.read_iops, rates.read_bytes_per_second),
        DirectionLimits(rates.write_iops, rates.write_bytes_per_second),
    )


def _with_refill(charges: tuple[Charge, ...], burst: Burst | None) -> tuple[Charge, ...]:
    buckets = burst.buckets if burst is not None else ()
    most = 1 + max(
        (b.fill_per_second / b.base_per_second for b in buckets if b.drain == "excess"),
        default=0.0,
    )
    return tuple(
        Charge(
            charge.limit,
            charge.read_s / most,
            charge.write_s / most,
            charge.read_byte_s / most,
            charge.written_byte_s / most,
        )
        for charge in charges
    )
