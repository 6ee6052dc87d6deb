"""Burst rules: how burst rates and credits follow from the size and the baseline of a disk."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from disksla.base import schema
from disksla.promise.catalogue.cost_model import Chunks, CostModel, Metered, Rates
from disksla.promise.catalogue.limits import Bucket, Burst, DrainKind, Resource
from disksla.promise.catalogue.rules import PeakRule, RuleInput, SizeRule, allocation_units

_PERCENT = 100


class UnitBoost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unit-boost"):
    """A small disk may run at the rates of a disk with more allocation units.

    The boost is a whole per cent. Credits are seconds of baseline service above the baseline;
    the capacity allows `boost_s` of full boost in each `refill_s`, and a new disk starts full.
    `baseline_depth_s` of baseline service may be used at once without credits.
    Source: https://github.com/ydb-platform/nbs, boosted time bucket and volume model.
    """

    unit_bytes: schema.Bytes
    level_units: Annotated[int, schema.whole_number(1, 10**6)]
    boost_s: schema.Seconds
    refill_s: schema.Seconds
    baseline_depth_s: schema.Seconds = 0.1


class BurstSeconds(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="rule",
    tag="seconds-of-burst",
):
    """Credits for a number of seconds at the burst rate: the excess over the baseline, summed."""

    seconds: schema.Seconds


class _BucketRule(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="resource"
):
    """Credits of one resource, by the size of the disk; see `Bucket` for the kinds of drain.

    Without `fill_per_second` the bucket is filled at the baseline rate.
    """

    resource: ClassVar[Resource]
    initial_share: (
        Annotated[float, schema.number(0, 1, "a share from 0 to 1, such as 0.75")] | None
    ) = None
    drain: DrainKind = "use"
    baseline_depth_s: schema.Seconds = 0.1


class IopsBucketRule(_BucketRule, frozen=True, tag="iops"):
    """Credits counted in I/Os."""

    resource: ClassVar[Resource] = "iops"
    capacity: SizeRule[schema.Number] | BurstSeconds
    fill_per_second: SizeRule[schema.Number] | None = None


class BytesBucketRule(_BucketRule, frozen=True, tag="bytes"):
    """Credits counted in bytes."""

    resource: ClassVar[Resource] = "bytes"
    capacity: SizeRule[schema.Bytes] | BurstSeconds
    fill_per_second: SizeRule[schema.BytesPerSecond] | None = None
    least_request_bytes: schema.Bytes | None = None
    """Bytes that a request uses at least, unless it continues the one before."""
    initial: schema.Bytes | None = None  # level of a new file storage, in place of a share


class ServiceBucketRule(_BucketRule, frozen=True, tag="service_seconds"):
    """Credits counted in seconds of baseline service."""

    resource: ClassVar[Resource] = "service_seconds"
    capacity: SizeRule[schema.Seconds] | BurstSeconds
    fill_per_second: SizeRule[schema.Number] | None = None


BucketRule = IopsBucketRule | BytesBucketRule | ServiceBucketRule


class _HigherRates(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rates above the baseline; one that is absent stays at its baseline."""

    read_iops: PeakRule[schema.Number] | None = None
    write_iops: PeakRule[schema.Number] | None = None
    read_bandwidth: PeakRule[schema.BytesPerSecond] | None = None
    write_bandwidth: PeakRule[schema.BytesPerSecond] | None = None
    up_to_bytes: schema.Bytes | None = None
    """Largest disk that has them; None for any. A disk whose baseline is as high has none."""
    above_provisioned: schema.Flag = False
    """Only where the baseline of writes is higher than the bandwidth that the customer bought."""


class TokenBuckets(_HigherRates, frozen=True, tag_field="type", tag="token-buckets"):
    """Higher rates while credits last."""

    buckets: tuple[BucketRule, ...]


class WithoutCredits(_HigherRates, frozen=True, tag_field="type", tag="without-credits"):
    """Higher rates at any time, or for a time that the provider does not publish."""

    length: Literal["unlimited", "unknown"]


BurstRule = UnitBoost | TokenBuckets | WithoutCredits


class Provision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that a customer chose for one disk."""

    iops: schema.Number | None = None
    bytes_per_second: schema.BytesPerSecond | None = None
    options: Mapping[str, schema.Text] = {}  # values of the options of its type


NOTHING_CHOSEN = Provision()


def burst_for(
    rule: BurstRule,
    size_bytes: int,
    base: Rates,
    cost: CostModel | None = None,
    bought: Provision = NOTHING_CHOSEN,
) -> Burst | None:
    """Return the burst of a disk of this size with these baseline rates; None if it has none."""
    if isinstance(rule, UnitBoost):
        return _unit_boost(rule, size_bytes, base)
    if rule.up_to_bytes is not None and size_bytes > rule.up_to_bytes:
        return None
    if rule.above_provisioned and (base.write_bytes_per_second or 0.0) <= (
        bought.bytes_per_second or 0.0
    ):
        return None
    basis = RuleInput(size_bytes)
    iops = basis._replace(provisioned=bought.iops)
    bandwidth = basis._replace(provisioned=bought.bytes_per_second)
    rates = Rates(
        _raised(base.read_iops, rule.read_iops, iops),
        _raised(base.write_iops, rule.write_iops, iops),
        _raised(base.read_bytes_per_second, rule.read_bandwidth, bandwidth),
        _raised(base.write_bytes_per_second, rule.write_bandwidth, bandwidth),
    )
    if rates == base:
        return None
    if isinstance(rule, WithoutCredits):
        return Burst(rates, length=rule.length)
    buckets = (_bucket(bucket, basis, base, rates, cost) for bucket in rule.buckets)
    return Burst(rates, tuple(bucket for bucket in buckets if bucket is not None))


def burst_buckets(base: Rates, peak: Rates, seconds: float) -> tuple[Bucket, ...]:
    """Return full buckets of I/Os and of bytes that last so long at the peak rates.

    They are filled at the baseline. A resource whose peak is not above it has none.
    """
    rules = (
        kind(capacity=BurstSeconds(seconds), initial_share=1.0)
        for kind in (IopsBucketRule, BytesBucketRule)
    )
    found = (_bucket(rule, RuleInput(0), base, peak, None) for rule in rules)
    return tuple(bucket for bucket in found if bucket is not None)


def _unit_boost(rule: UnitBoost, size_bytes: int, base: Rates) -> Burst | None:
    percent = _PERCENT * rule.level_units // allocation_units(size_bytes, rule.unit_bytes)
    if percent <= _PERCENT:
        return None
    capacity_s = (percent - _PERCENT) * rule.boost_s / _PERCENT
    bucket = Bucket(
        "service_seconds",
        capacity_s,
        fill_per_second=capacity_s / rule.refill_s,
        base_per_second=1.0,
        peak_per_second=percent / _PERCENT,
        initial_share=1.0,
        drain="excess",
        baseline_depth_s=rule.baseline_depth_s,
    )
    return Burst(
        Rates(
            *(
                None if rate is None else rate * percent / _PERCENT
                for rate in msgspec.structs.astuple(base)
            )
        ),
        (bucket,),
    )


def _bucket(
    rule: BucketRule, basis: RuleInput, base: Rates, peak: Rates, cost: CostModel | None
) -> Bucket | None:
    """Return the bucket of one resource; None if the burst rate is not above the baseline."""
    meter = cost if rule.resource == "bytes" and isinstance(cost, Metered) else None
    base_per_second, peak_per_second = _base_and_peak(rule.resource, base, peak, meter)
    if peak_per_second <= base_per_second:
        return None
    capacity = (
        (peak_per_second - base_per_second) * rule.capacity.seconds
        if isinstance(rule.capacity, BurstSeconds)
        else rule.capacity.rate(basis)
    )
    return Bucket(
        resource=rule.resource,
        capacity=capacity,
        fill_per_second=base_per_second
        if rule.fill_per_second is None
        else rule.fill_per_second.rate(basis),
        base_per_second=base_per_second,
        peak_per_second=peak_per_second,
        initial_share=_initial_share(rule, capacity),
        drain=rule.drain,
        baseline_depth_s=rule.baseline_depth_s,
        chunk_bytes=cost.chunk_bytes
        if rule.resource == "iops" and isinstance(cost, Chunks)
        else None,
        least_request_bytes=rule.least_request_bytes
        if isinstance(rule, BytesBucketRule)
        else None,
        metered=meter,
    )


def _initial_share(rule: BucketRule, capacity: float) -> float | None:
    """Return the level of a new disk as a share of the capacity; None if unknown."""
    if isinstance(rule, BytesBucketRule) and rule.initial is not None:
        return min(1.0, rule.initial / capacity)
    return rule.initial_share


def _base_and_peak(
    resource: Resource, base: Rates, peak: Rates, meter: Metered | None
) -> tuple[float, float]:
    """Return both rates of a resource; of reads and writes, the higher rate counts."""
    if resource == "iops":
        return _higher(base.read_iops, base.write_iops), _higher(peak.read_iops, peak.write_iops)
    if resource == "bytes":
        divisor = 1 if meter is None else meter.read_divisor
        low, high = (
            _higher((each.read_bytes_per_second or 0.0) / divisor, each.write_bytes_per_second)
            for each in (base, peak)
        )
        return low, high
    pairs = zip(msgspec.structs.astuple(base), msgspec.structs.astuple(peak), strict=True)
    return 1.0, max((high / low for low, high in pairs if low and high), default=1.0)


def _higher(read: float | None, write: float | None) -> float:
    return max(read or 0.0, write or 0.0)


def _raised(base: float | None, rule: PeakRule[float] | None, basis: RuleInput) -> float | None:
    if base is None or rule is None:
        return base
    return max(base, rule.rate(basis._replace(other=base)) or 0.0)
