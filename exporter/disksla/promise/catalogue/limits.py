"""Limits of one disk: rates, burst, latency, its limiter, and the charges that express them.

And which terms a disk has, and who says so (`Assignment`).
"""

import math
from typing import Annotated, Literal, get_args

import msgspec

from disksla.base import schema
from disksla.base.units import KIB, format_duration
from disksla.promise.catalogue import cost_model
from disksla.promise.catalogue.cost_model import Rates, enforced_charges, metered
from disksla.promise.disk_entry import Caching

Address = Annotated[
    str, schema.pattern("an address such as https://example.com/page", r"https?://\S+")
]
LimiterKind = Literal["even", "windows"]

USUAL_EXCESS_RATIO = 0.025
"""Of 89 published steady rates at a limit, 75 are from 1 % below it to this share above it
(docs/limiters.md)."""


class Limiter(msgspec.Struct, frozen=True):
    """How the limiter of a disk behaves; the default is one of which nothing is known."""

    kind: LimiterKind | None = None
    """`even`: its bucket is filled all the time. `windows`: it is filled at the end of each
    window, until when a disk that has used its share waits. None if that is not known."""
    window_s: float | None = None
    bucket_s: float | None = None
    """What it lets pass at once after a rest, as seconds of its rate; None if not known."""
    excess_ratio: float = USUAL_EXCESS_RATIO
    """The most by which a steady rate is above the promise and still that of the limiter, as a
    share of the promise; more than usual only where more was measured."""


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a behaviour was measured or is stated."""

    title: schema.Text
    date: schema.Date  # of the measurement, or the day of reading where the source has none
    url: Address | None = None


class LimiterTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of the limiter of a type; what is absent is not known."""

    kind: LimiterKind | None = None
    window_s: schema.Seconds | None = msgspec.field(default=None, name="window")
    bucket_s: schema.Seconds | None = msgspec.field(default=None, name="bucket")
    excess_ratio: Annotated[float, schema.percentage(0, 10)] | None = msgspec.field(
        default=None, name="excess"
    )
    about: schema.LongText | None = None
    """What was measured, and what is not known. Required for the rows of the package."""
    sources: tuple[Measured, ...] = ()  # required for the rows of the package

    def __post_init__(self) -> None:
        """Raise ValueError if windows have no length, or something else has one."""
        if (self.kind == "windows") != (self.window_s is not None):
            raise ValueError("found only one of kind windows and window; expected both")

    @property
    def limiter(self) -> Limiter:
        """The limiter of a disk of this type."""
        excess_ratio = max(self.excess_ratio or 0.0, USUAL_EXCESS_RATIO)
        return Limiter(self.kind, self.window_s, self.bucket_s, excess_ratio)


BudgetKind = Literal["separate", "sum", "time_shared"]
LatencyKind = Literal["guaranteed", "indicative"]
Resource = Literal["iops", "bytes", "service_seconds"]
DrainKind = Literal["use", "excess", "constant"]
BurstLength = Literal["credits", "unlimited", "unknown"]
Share = Annotated[float, schema.number(1e-9, 1, "a share above 0, up to 1, such as 0.75")]


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Budgets of reads and writes, of requests and of bytes."""

    iops: BudgetKind
    bandwidth: BudgetKind

    @property
    def kind(self) -> BudgetKind | Literal["mixed"]:
        """The kind of both, or `mixed`."""
        return self.iops if self.iops == self.bandwidth else "mixed"


class Bucket(msgspec.Struct, frozen=True):
    """Burst credits of one resource: their unit, capacity, fill rate and drain.

    The unit is I/Os, bytes, or seconds of baseline service (load relative to the baseline, times
    seconds), by `resource`. With K credits left, use u, base b and peak p per second:

    | drain | dK/dt, between 0 and the capacity | while K > 0 | at K = 0 |
    |---|---|---|---|
    | `use` | fill - u | u <= p | u <= b; the fill, unless it is lower |
    | `excess` | fill - max(0, u - b) | u <= p | u <= b + fill |
    | `constant` | fill - (p - b) in a window with u > b, else fill | u <= p | u <= b |

    Sources: `use` is the token bucket of AWS's gp2
    (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html), `excess` the boost of
    the block store behind Yandex Cloud (https://github.com/ydb-platform/nbs, boosted time
    bucket), `constant` a burst that is sold by its length.
    """

    resource: Resource
    capacity: float
    fill_per_second: float
    base_per_second: float  # the baseline, available without credits; 1.0 for seconds of service
    peak_per_second: float
    initial_share: float | None = None
    """Level of a new disk as a share of the capacity; None if unknown."""
    drain: DrainKind = "use"
    baseline_depth_s: float = 0.1
    """Seconds of baseline service that may be used at once without credits, after a rest; an upper
    bound if unknown. Not used with drain `use`."""
    chunk_bytes: int | None = None
    """A request is one I/O per chunk; None if it is one I/O of any size."""
    least_request_bytes: int | None = None
    """Bytes that a request uses at least, unless it continues the one before; None for none."""
    metered: cost_model.Metered | None = None
    """How the bytes of requests are metered; None if each byte counts."""

    @property
    def seconds(self) -> float:
        """Time for which a full bucket lasts at the peak rate."""
        drained = self.peak_per_second - self.fill_per_second
        if self.drain != "use":
            drained = self.peak_per_second - self.base_per_second - self.fill_per_second
        return self.capacity / drained if drained > 0 else math.inf


class Burst(msgspec.Struct, frozen=True):
    """Rates above the baseline, and for how long a disk may use them."""

    rates: Rates
    buckets: tuple[Bucket, ...] = ()
    length: BurstLength = "credits"
    """`unlimited`: at any time, usually for a price; `unknown`: for an unpublished time."""

    @property
    def seconds(self) -> float | None:
        """Time for which full credits last at the burst rates; None without credits.

        It is that of the bucket which is empty first.
        """
        return min((bucket.seconds for bucket in self.buckets), default=None)


class PromisedShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of the IOPS limit that is promised for requests of one size."""

    request_bytes: schema.Bytes
    share: Share


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The requests for which a promise holds."""

    request_bytes: schema.Bytes
    queue_depth: Annotated[int, schema.whole_number(1, 10**6)] | None = None
    """Requests in flight; None where the provider does not state it."""


USUAL_IOPS_CONDITIONS = Conditions(4 * KIB, 32)
"""Where the provider states none: providers and fio users test IOPS like this."""


class OneUnit(msgspec.Struct, frozen=True):
    """What one of several allocation units is promised: a load within it may get no more."""

    size_bytes: int
    rates: Rates
    promise_charges: tuple[cost_model.Charge, ...]
    enforced_charges: tuple[cost_model.Charge, ...]


class Limits(msgspec.Struct, frozen=True):
    """Everything promised for one disk; the default is no promise at all."""

    rates: Rates = Rates()
    budget: Budgets | None = None
    latency_s: float | None = None
    """Of reads, and of writes unless they have their own; None if none is stated for reads."""
    latency_kind: LatencyKind | None = None
    write_latency_s: float | None = None
    latency_time_share: float | None = None  # share of the time for which the latency is stated
    promised_time_share: float | None = None
    """Share of the time for which the rates are promised; None where the provider states none."""
    promise_charges: tuple[cost_model.Charge, ...] = ()
    """Charges of the promise: load 1.0 is exactly the promise."""
    enforced_charges: tuple[cost_model.Charge, ...] = ()
    """Charges at which the limiter throttles; they differ where only a range is known."""
    throttled_charges: tuple[cost_model.Charge, ...] = ()
    """The enforced charges of a disk that is throttled at its baseline. With drain `excess` such a
    disk uses refilled credits at once, so that its rate is above the baseline by the fill rate."""
    burst: Burst | None = None
    burst_charges: tuple[cost_model.Charge, ...] = ()
    """Charges while credits last; empty without burst."""
    burst_throttled_charges: tuple[cost_model.Charge, ...] = ()
    """Charges at which the limiter throttles a burst; they differ where only a range is known."""
    promised_shares: tuple[PromisedShare, ...] = ()
    """By ascending request size; empty where the full IOPS are promised for every size."""
    iops_conditions: Conditions | None = None
    bandwidth_conditions: Conditions | None = None
    shared_by: str | None = None
    """Who shares the limits of a network file storage; None for a disk. What one of them is served
    below a limit proves nothing."""
    relief: str | None = None  # what helps where credits are used up, as a sentence
    client: "Limits | None" = None
    """What one client of a network file storage may get; None if that is not stated."""
    limiter: Limiter = Limiter()
    one_unit: OneUnit | None = None
    """None unless the limits grow with allocation units and there are several."""

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The buckets of the burst; empty without burst."""
        return self.burst.buckets if self.burst is not None else ()

    def latency_of(self, direction: Literal["read", "write"]) -> float | None:
        """Return the latency of reads or of writes in seconds; None if none is stated."""
        if direction == "write" and self.write_latency_s is not None:
            return self.write_latency_s
        return self.latency_s


NO_LIMITS = Limits()


def build_limits(
    rates: Rates,
    budget: BudgetKind | Budgets,
    latency_s: float | None = None,
    latency_kind: LatencyKind | None = None,
    burst: Burst | None = None,
    cost: cost_model.CostModel = cost_model.PerRequest(),  # noqa: B008 -- frozen
) -> Limits:
    """Return the limits of these rates under a budget, with their charges.

    With `separate` each rate is its own limit. With `sum` reads and writes together have one
    limit, which `rates` contains twice. With `time_shared` r/R + w/W <= 1. Promised and enforced
    charges differ only for an additive cost.
    """
    budgets = budget if isinstance(budget, Budgets) else Budgets(budget, budget)
    promised, enforced = _charges(rates, budgets, cost)
    of_burst = _charges(burst.rates, budgets, cost) if burst is not None else ((), ())
    return Limits(
        rates,
        budgets,
        latency_s,
        latency_kind,
        promise_charges=promised,
        enforced_charges=enforced,
        throttled_charges=_with_refill(enforced, burst),
        burst=burst,
        burst_charges=of_burst[0],
        burst_throttled_charges=of_burst[1],
    )


def promised_share(shares: tuple[PromisedShare, ...], request_bytes: int) -> float:
    """Return the share of the IOPS limit that is promised at a request size.

    Between two sizes of the table, the share of the larger size applies; above the largest, its
    share.
    """
    if not shares:
        return 1.0
    return next(
        (share.share for share in shares if request_bytes <= share.request_bytes), shares[-1].share
    )


def _charges(
    rates: Rates, budgets: Budgets, cost: cost_model.CostModel
) -> tuple[tuple[cost_model.Charge, ...], tuple[cost_model.Charge, ...]]:
    """Return the charges that are published, and those that are enforced."""
    if isinstance(cost, cost_model.Additive):
        return cost_model.published_charges(rates), enforced_charges(rates, cost)
    separate, shared = cost_model.separate_charges(rates), cost_model.shared_charges(rates)
    charges = tuple(
        charge
        for limit, kind in (("iops", budgets.iops), ("bandwidth", budgets.bandwidth))
        for charge in (separate if kind == "separate" else shared)
        if charge.limit == limit
    )
    if isinstance(cost, cost_model.Metered):
        charges = metered(charges, cost)
    elif isinstance(cost, cost_model.Chunks):
        charges = cost_model.chunked(charges, cost.chunk_bytes)
    return charges, charges


def _with_refill(
    charges: tuple[cost_model.Charge, ...], burst: Burst | None
) -> tuple[cost_model.Charge, ...]:
    """Return the charges of a disk that uses refilled credits at once (drain `excess`)."""
    buckets = burst.buckets if burst is not None else ()
    factor = 1 + max(
        (b.fill_per_second / b.base_per_second for b in buckets if b.drain == "excess"),
        default=0.0,
    )
    return tuple(
        cost_model.Charge(limit, *(cost_s / factor for cost_s in costs_s))
        for limit, *costs_s in map(msgspec.structs.astuple, charges)
    )


TermsSource = Literal["configuration", "file", "api", "metadata", "none"]
"""Who says what a disk is, the best first."""
TERMS_SOURCES: tuple[TermsSource, ...] = get_args(TermsSource)

UNKNOWN_TERMS = "unknown"  # terms and provider of a disk of which nothing says what it was sold as
CUSTOM_TERMS = "custom"  # terms and provider of a disk whose terms are written out, wherever
TERMS_TITLES = {UNKNOWN_TERMS: "unknown type", CUSTOM_TERMS: "terms written out"}
"""What people read of terms that are no type of the catalogue."""


class Assignment(msgspec.Struct, frozen=True):
    """The terms that apply to a disk, and why."""

    terms: str
    """Id in the catalogue, `custom` for terms that are written out, `unknown` where nothing
    says what the disk is. A new type of a provider is as its API spells it."""
    provider: str
    reason: str  # one sentence for the user: what matched, or that nothing did
    size_bytes: int
    """Size from which the limits are derived: the kernel's, unless the configuration sets one."""
    limits: Limits
    caching: Caching | None = None  # None if it is not known
    shares_limits: bool = False
    """Other monitored disks of this type share the limits, which are those of their total size."""
    source: TermsSource = "none"
    origin: str = ""
    """Who says it, for people: `EC2 API`, or a path; empty for the configuration and none."""
    as_of_timestamp_s: float | None = None
    """When it was true, in seconds since 1970; None for the configuration and none."""
    expiry_timestamp_s: float | None = None
    """Until when it may be relied on, in seconds since 1970; None if that is not limited."""
    problem: str | None = None
    """Why no limits follow from the terms; None if they do, or there are no terms."""

    @property
    def title(self) -> str:
        """The terms, for people."""
        return TERMS_TITLES.get(self.terms, self.terms)

    def said_by(self, now_s: float) -> str:
        """Return who said it and how long ago, at a time in seconds since 1970; '' if no file."""
        if self.as_of_timestamp_s is None:
            return ""
        age = format_duration(max(0.0, now_s - self.as_of_timestamp_s))
        is_stale = self.expiry_timestamp_s is not None and now_s > self.expiry_timestamp_s
        return f"{self.origin}, {age} ago{' (too old)' if is_stale else ''}"
