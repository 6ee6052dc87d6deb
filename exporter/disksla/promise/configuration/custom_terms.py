"""Custom terms: rates written out in the configuration instead of an id of the catalogue."""

from typing import Annotated, ClassVar

import msgspec

from disksla.base.schema import Bytes, BytesPerSecond, Seconds, rate, whole_number
from disksla.promise import catalogue
from disksla.promise.disk_entry import Iops


class SumBurst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rates that a disk may use while it has credits.

    Each resource is a token bucket: its capacity is the credits, it is filled at the baseline
    rate and drained by all use, so a disk at exactly its baseline keeps its level.
    """

    iops: Iops | None = None
    iops_credits: Annotated[float, rate(1, 10**15)] | None = None
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")
    credit_bytes: Bytes | None = msgspec.field(default=None, name="bandwidth_credits")

    def __post_init__(self) -> None:
        """Raise ValueError unless each rate has its credits, and each credits its rate."""
        if (self.iops is None) != (self.iops_credits is None):
            raise ValueError("found only one of iops and iops_credits; expected both")
        if (self.bytes_per_second is None) != (self.credit_bytes is None):
            raise ValueError("found only one of bandwidth and bandwidth_credits; expected both")
        if self.iops is None and self.bytes_per_second is None:
            raise ValueError(
                "found no rate; expected iops with iops_credits, bandwidth with"
                " bandwidth_credits, or all four"
            )


class _CustomTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="budget"):
    latency_s: Seconds | None = msgspec.field(default=None, name="latency")
    latency_kind: catalogue.LatencyKind | None = None  # None for `guaranteed`
    queue_depth: Annotated[int, whole_number(1, 10**6)] | None = None
    request_bytes: Bytes | None = msgspec.field(default=None, name="request_size")
    """Requests in flight, and their size, for which the rates hold."""
    limiter: catalogue.LimiterTerms | None = None


class SumTerms(_CustomTerms, frozen=True, tag="sum", kw_only=True):
    """Reads and writes together have one limit."""

    budget: ClassVar[catalogue.BudgetKind] = "sum"
    iops: Iops | None = None
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")
    burst: SumBurst | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if there is no rate, or the burst is not above the baseline."""
        _check(self)
        if self.burst is None:
            return
        for key, base, peak in (
            ("iops", self.iops, self.burst.iops),
            ("bandwidth", self.bytes_per_second, self.burst.bytes_per_second),
        ):
            if peak is not None and (base is None or peak <= base):
                raise ValueError(
                    f"found burst.{key} without a lower {key}; expected both, the burst higher"
                )

    @property
    def rates(self) -> catalogue.Rates:
        """The limits, the same for reads and for writes."""
        return _shared(self.iops, self.bytes_per_second)


class SeparateTerms(_CustomTerms, frozen=True, tag="separate", kw_only=True):
    """Reads and writes have separate limits."""

    budget: ClassVar[catalogue.BudgetKind] = "separate"
    read_iops: Iops | None = None
    write_iops: Iops | None = None
    read_bytes_per_second: BytesPerSecond | None = msgspec.field(
        default=None, name="read_bandwidth"
    )
    write_bytes_per_second: BytesPerSecond | None = msgspec.field(
        default=None, name="write_bandwidth"
    )

    def __post_init__(self) -> None:
        """Raise ValueError if there is no rate."""
        _check(self)

    @property
    def rates(self) -> catalogue.Rates:
        """The limits."""
        return catalogue.Rates(
            self.read_iops,
            self.write_iops,
            self.read_bytes_per_second,
            self.write_bytes_per_second,
        )


class TimeSharedTerms(SeparateTerms, frozen=True, tag="time_shared"):
    """Reads and writes share the disk's time: r/R + w/W <= 1."""

    budget: ClassVar[catalogue.BudgetKind] = "time_shared"


CustomTerms = SumTerms | SeparateTerms | TimeSharedTerms


def custom_limits(terms: CustomTerms) -> catalogue.Limits:
    """Return the limits of custom terms, which do not depend on the size of the disk."""
    limits = catalogue.build_limits(
        terms.rates,
        terms.budget,
        terms.latency_s,
        (terms.latency_kind or "guaranteed") if terms.latency_s is not None else None,
        _burst(terms) if isinstance(terms, SumTerms) else None,
    )
    if terms.limiter is not None:
        limits = msgspec.structs.replace(limits, limiter=terms.limiter.limiter)
    if terms.queue_depth is None and terms.request_bytes is None:
        return limits
    request_bytes = terms.request_bytes or catalogue.USUAL_IOPS_CONDITIONS.request_bytes
    return msgspec.structs.replace(
        limits, iops_conditions=catalogue.Conditions(request_bytes, terms.queue_depth)
    )


def _check(terms: CustomTerms) -> None:
    if terms.rates == catalogue.Rates():
        raise ValueError("found no rate; expected at least one rate of IOPS or bandwidth")
    if terms.latency_kind is not None and terms.latency_s is None:
        raise ValueError("found latency_kind without latency; expected both")


def _burst(terms: SumTerms) -> catalogue.Burst | None:
    burst = terms.burst
    if burst is None:
        return None
    amounts: tuple[tuple[catalogue.Resource, float | None, float | None, float | None], ...] = (
        ("iops", burst.iops_credits, terms.iops, burst.iops),
        ("bytes", burst.credit_bytes, terms.bytes_per_second, burst.bytes_per_second),
    )
    return catalogue.Burst(
        _shared(burst.iops, burst.bytes_per_second),
        tuple(
            catalogue.Bucket(resource, capacity, base, base, peak)
            for resource, capacity, base, peak in amounts
            if capacity is not None and base is not None and peak is not None
        ),
    )


def _shared(iops: float | None, bytes_per_second: float | None) -> catalogue.Rates:
    return catalogue.Rates(iops, iops, bytes_per_second, bytes_per_second)
