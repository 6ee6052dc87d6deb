"""Credits: what terms let a disk of one size do for a while."""

from typing import Annotated

import msgspec

from disksla.limits.limits import Bucket, Burst, DrainKind, Rates, Resource
from disksla.limits.size_rules import Positive, SizeRule, WholeBytes, allocation_units

_PERCENT = 100


class UnitBoost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unit-boost"):
    """A small disk may work at the level of one with more units of space.

    The boost is a whole per cent. Credits are seconds of base-level service above the base, so
    many that `boost_s` of full boost are had out of each `refill_s`; a new disk has all of them.
    `plain_s` of base service may be used at once without credits.
    Source: https://github.com/ydb-platform/nbs, boosted time bucket and volume model.
    """

    unit_bytes: WholeBytes
    level_units: Annotated[int, msgspec.Meta(gt=0)]
    boost_s: Positive
    refill_s: Positive
    baseline_depth_s: Positive = 0.1


class BurstSeconds(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="law",
    tag="seconds-of-burst",
):
    """Credits for so many seconds at the peak, counted in what the peak gives above the base."""

    seconds: Positive


class BucketRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits of one resource, by the size of the disk; see `Bucket` for the kinds of drain."""

    resource: Resource
    capacity: SizeRule | BurstSeconds
    fill_per_second: SizeRule | None = None
    """None where they come back at the base rate."""
    initial_share: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    drain: DrainKind = "use"
    baseline_depth_s: Positive = 0.1


class TokenBuckets(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="token-buckets"):
    """Higher rates while tokens last; a rate that is not named stays at its base.

    Disks whose base is as high already have no burst.
    """

    buckets: tuple[BucketRule, ...]
    read_iops: SizeRule | None = None
    write_iops: SizeRule | None = None
    read_bandwidth: SizeRule | None = None
    write_bandwidth: SizeRule | None = None


BurstRule = UnitBoost | TokenBuckets


def burst_for(law: BurstRule, size_bytes: int, base: Rates) -> Burst | None:
    """Give the burst of a disk of this size with these base rates; None if it has none."""
    if isinstance(law, UnitBoost):
        return _unit_boost(law, size_bytes, base)
    return _token_buckets(law, size_bytes, base)


def _unit_boost(law: UnitBoost, size_bytes: int, base: Rates) -> Burst | None:
    percent = _PERCENT * law.level_units // allocation_units(size_bytes, law.unit_bytes)
    if percent <= _PERCENT:
        return None
    capacity_s = (percent - _PERCENT) * law.boost_s / _PERCENT
    bucket = Bucket(
        "service_seconds",
        capacity_s,
        fill_per_second=capacity_s / law.refill_s,
        base_per_second=1.0,
        peak_per_second=percent / _PERCENT,
        initial_share=1.0,
        drain="excess",
        baseline_depth_s=law.baseline_depth_s,
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


def _token_buckets(law: TokenBuckets, size_bytes: int, base: Rates) -> Burst | None:
    rates = Rates(
        _raised(base.read_iops, law.read_iops, size_bytes),
        _raised(base.write_iops, law.write_iops, size_bytes),
        _raised(base.read_bytes_per_second, law.read_bandwidth, size_bytes),
        _raised(base.write_bytes_per_second, law.write_bandwidth, size_bytes),
    )
    if rates == base:
        return None
    buckets = (_bucket(bucket, size_bytes, base, rates) for bucket in law.buckets)
    return Burst(rates, tuple(bucket for bucket in buckets if bucket is not None))


def _bucket(law: BucketRule, size_bytes: int, base: Rates, peak: Rates) -> Bucket | None:
    """Give the bucket of one resource; None if the peak gives no more of it than the base."""
    base_per_second, peak_per_second = _paces(law.resource, base, peak)
    if peak_per_second <= base_per_second:
        return None
    return Bucket(
        law.resource,
        (peak_per_second - base_per_second) * law.capacity.seconds
        if isinstance(law.capacity, BurstSeconds)
        else law.capacity.rate(size_bytes),
        base_per_second if law.fill_per_second is None else law.fill_per_second.rate(size_bytes),
        base_per_second,
        peak_per_second,
        law.initial_share,
        law.drain,
        law.baseline_depth_s,
    )


def _paces(resource: Resource, base: Rates, peak: Rates) -> tuple[float, float]:
    """Give what base and peak come to in a resource; the more of reads and writes counts."""
    if resource == "iops":
        return _more(base.read_iops, base.write_iops), _more(peak.read_iops, peak.write_iops)
    if resource == "bytes":
        return (
            _more(base.read_bytes_per_second, base.write_bytes_per_second),
            _more(peak.read_bytes_per_second, peak.write_bytes_per_second),
        )
    pairs = zip(msgspec.structs.astuple(base), msgspec.structs.astuple(peak), strict=True)
    return 1.0, max((high / low for low, high in pairs if low and high), default=1.0)


def _more(read: float | None, write: float | None) -> float:
    return max(read or 0.0, write or 0.0)


def _raised(base: float | None, law: SizeRule | None, size_bytes: int) -> float | None:
    if base is None or law is None:
        return base
    return max(base, law.rate(size_bytes))
