"""Credits: what terms let a disk of one size do for a while."""

from typing import Annotated

import msgspec

from disksla.core.laws import Positive, SizeLaw, WholeBytes, units_of
from disksla.core.limits import Bucket, Burst, DrainKind, Rates, Resource

_PERCENT = 100


class UnitBoost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unit-boost"):
    """A small disk may work at the level of one with more units of space.

    The boost is a whole per cent. Credits are seconds of base-level service above the base, so
    many that `boost_s` of full boost are had out of each `refill_s`; a new disk has all of them.
    Source: https://github.com/ydb-platform/nbs, boosted time bucket and volume model.
    """

    unit_bytes: WholeBytes
    level_units: Annotated[int, msgspec.Meta(gt=0)]
    boost_s: Positive
    refill_s: Positive


class BucketLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits of one resource, by the size of the disk."""

    resource: Resource
    capacity: SizeLaw
    fill_per_second: SizeLaw
    initial_share: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    drain: DrainKind = "net"


class TokenBuckets(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="token-buckets"):
    """Higher rates while tokens last; a rate that is not named stays at its base.

    Disks whose base is as high already have no burst.
    """

    buckets: tuple[BucketLaw, ...]
    read_iops: SizeLaw | None = None
    write_iops: SizeLaw | None = None
    read_bandwidth: SizeLaw | None = None
    write_bandwidth: SizeLaw | None = None


BurstLaw = UnitBoost | TokenBuckets


def burst_for(law: BurstLaw, size_bytes: int, base: Rates) -> Burst | None:
    """Give the burst of a disk of this size with these base rates; None if it has none."""
    if isinstance(law, UnitBoost):
        return _unit_boost(law, size_bytes, base)
    return _token_buckets(law, size_bytes, base)


def _unit_boost(law: UnitBoost, size_bytes: int, base: Rates) -> Burst | None:
    percent = _PERCENT * law.level_units // units_of(size_bytes, law.unit_bytes)
    if percent <= _PERCENT:
        return None
    capacity_s = (percent - _PERCENT) * law.boost_s / _PERCENT
    bucket = Bucket("service_seconds", capacity_s, capacity_s / law.refill_s, initial_share=1.0)
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
    buckets = tuple(
        Bucket(
            bucket.resource,
            bucket.capacity.rate(size_bytes),
            bucket.fill_per_second.rate(size_bytes),
            bucket.initial_share,
            bucket.drain,
        )
        for bucket in law.buckets
    )
    return Burst(rates, buckets)


def _raised(base: float | None, law: SizeLaw | None, size_bytes: int) -> float | None:
    if base is None or law is None:
        return base
    return max(base, law.rate(size_bytes))
