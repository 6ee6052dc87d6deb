"""Burst rules: burst rates and credits by the size of a disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.promise.catalogue import burst_rules
from disksla.promise.catalogue.limits import Bucket, Burst, Rates
from disksla.promise.catalogue.rules import Clamp

BOOST = burst_rules.UnitBoost(unit_bytes=256 * GIB, level_units=4, boost_s=1800, refill_s=43200)
TO_3000 = burst_rules.TokenBuckets(
    read_iops=Clamp(base=3000),
    write_iops=Clamp(base=3000),
    buckets=(
        burst_rules.IopsBucketRule(
            capacity=Clamp(base=5.4e6),
            fill_per_second=Clamp(per_gib=3, minimum=100, maximum=16000),
            initial_share=1.0,
        ),
    ),
)


@given(st.integers(1, 768))
def test_unit_boost_credits_refill_in_time(size_gib: int) -> None:
    burst = burst_rules.burst_for(BOOST, size_gib * GIB, Rates(300.0, 300.0, 30.0))
    assert burst is not None
    (bucket,) = burst.buckets
    assert bucket.capacity / bucket.fill_per_second == pytest.approx(43200)


def test_token_buckets_raise_only_named_rates() -> None:
    burst = burst_rules.burst_for(TO_3000, 100 * GIB, Rates(300.0, 300.0, 128e6, 128e6))
    assert burst == Burst(
        Rates(3000.0, 3000.0, 128e6, 128e6),
        (Bucket("iops", 5.4e6, 300.0, 300.0, 3000.0, initial_share=1.0),),
    )


def test_bucket_of_burst_seconds_fills_at_baseline() -> None:
    rule = burst_rules.TokenBuckets(
        read_iops=Clamp(base=3500),
        write_iops=Clamp(base=3500),
        read_bandwidth=Clamp(base=170e6),
        buckets=(
            burst_rules.IopsBucketRule(capacity=burst_rules.BurstSeconds(seconds=1800)),
            burst_rules.BytesBucketRule(capacity=burst_rules.BurstSeconds(seconds=1800)),
        ),
    )
    burst = burst_rules.burst_for(rule, 100 * GIB, Rates(500.0, 500.0, 100e6, 100e6))
    assert burst is not None
    assert burst.buckets == (
        Bucket("iops", 1800 * 3000.0, 500.0, 500.0, 3500.0),
        Bucket("bytes", 1800 * 70e6, 100e6, 100e6, 170e6),
    )


def test_service_bucket_drains_at_highest_peak() -> None:
    rule = burst_rules.TokenBuckets(
        read_iops=Clamp(base=1000),
        write_iops=Clamp(base=450),
        buckets=(
            burst_rules.ServiceBucketRule(
                capacity=Clamp(base=600), fill_per_second=Clamp(base=0.1), drain="excess"
            ),
        ),
    )
    burst = burst_rules.burst_for(rule, 100 * GIB, Rates(500.0, 300.0))
    assert burst is not None
    assert burst.buckets == (Bucket("service_seconds", 600.0, 0.1, 1.0, 2.0, drain="excess"),)


def test_bucket_is_absent_if_peak_is_not_higher() -> None:
    rule = burst_rules.TokenBuckets(
        read_iops=Clamp(base=3000),
        buckets=(
            burst_rules.IopsBucketRule(capacity=Clamp(base=1e6)),
            burst_rules.BytesBucketRule(capacity=Clamp(base=10**9)),
        ),
    )
    burst = burst_rules.burst_for(rule, 100 * GIB, Rates(300.0, 300.0, 1e6, 1e6))
    assert burst is not None
    assert [bucket.resource for bucket in burst.buckets] == ["iops"]


@pytest.mark.parametrize("iops", [3000.0, 9000.0])
def test_token_buckets_are_absent_if_baseline_is_as_high(iops: float) -> None:
    assert burst_rules.burst_for(TO_3000, 1000 * GIB, Rates(iops, iops)) is None


@given(st.integers(1, 10_000), st.floats(1, 1e5))
def test_burst_is_never_below_baseline(size_gib: int, iops: float) -> None:
    burst = burst_rules.burst_for(TO_3000, size_gib * GIB, Rates(iops, iops))
    assert burst is None or (burst.rates.read_iops or 0) > iops
