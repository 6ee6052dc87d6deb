"""Limits, effective IOPS and bursts, derived from terms of every kind."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MIB
from disksla.promise.catalogue import burst_rules
from disksla.promise.catalogue.derive import (
    beyond_bounds,
    beyond_sizes,
    derive_limits,
    effective_iops,
)
from disksla.promise.catalogue.limits import (
    NO_LIMITS,
    Bucket,
    Burst,
    Limits,
    PromisedShare,
    Rates,
    build_limits,
    promised_share,
)
from disksla.promise.catalogue.rules import Clamp
from disksla.promise.catalogue.terms import Provision, Terms
from support.catalog_rows import make_terms

SHARES = (PromisedShare(4 * KIB, 1.0), PromisedShare(8 * KIB, 0.75), PromisedShare(16 * KIB, 0.5))
SHARED_RATES = Rates(1000.0, 1000.0, 1e8, 1e8)


def both(iops: dict[str, Any], bandwidth: dict[str, Any]) -> dict[str, Any]:
    return {
        "read_iops": iops,
        "write_iops": iops,
        "read_bandwidth": bandwidth,
        "write_bandwidth": bandwidth,
    }


PROVISIONED = make_terms(
    budget="sum",
    cost={"type": "chunks", "chunk_bytes": "256KiB"},
    **both(
        {
            "rule": "provisioned",
            "minimum": 3000,
            "maximum": {"rule": "clamp", "per_gib": 500, "maximum": 16000},
            "default": 3000,
        },
        {
            "rule": "provisioned",
            "minimum": "125MiB/s",
            "maximum": {"rule": "from-iops", "bytes_per_io": "256KiB", "maximum": "1000MiB/s"},
            "default": "125MiB/s",
        },
    ),
)
MUST_BE_CHOSEN = make_terms(
    budget="sum",
    **both(
        {"rule": "provisioned", "minimum": 100, "maximum": 64000},
        {"rule": "from-iops", "bytes_per_io": "256KiB", "maximum": "1000MiB/s"},
    ),
)
TIERED = make_terms(
    budget="sum",
    burst={
        "type": "token-buckets",
        "read_iops": {"rule": "clamp", "base": 3500},
        "write_iops": {"rule": "clamp", "base": 3500},
        "buckets": [
            {
                "resource": "iops",
                "capacity": {"rule": "clamp", "base": 5000000},
                "fill_per_second": {"rule": "clamp", "base": 120},
            }
        ],
    },
    **both(
        {
            "rule": "tiers",
            "steps": [
                {"up_to_bytes": "32GiB", "rate": 120},
                {"up_to_bytes": "16384GiB", "rate": 18000},
            ],
        },
        {"rule": "clamp", "base": "25MB/s", "per_gib": "100kB/s", "maximum": "900MB/s"},
    ),
)


def test_derive_limits_without_budget() -> None:
    assert derive_limits(make_terms(), GIB) == NO_LIMITS
    assert derive_limits(make_terms(), 0) == NO_LIMITS


def test_derive_limits_uses_provisioned_defaults() -> None:
    assert derive_limits(PROVISIONED, 100 * GIB).rates == Rates(3000, 3000, 125 * MIB, 125 * MIB)


def test_derive_limits_uses_provisioned_values() -> None:
    chosen = Provision(iops=4000, bytes_per_second=250 * MIB)
    limits = derive_limits(PROVISIONED, 100 * GIB, chosen)
    assert limits.rates == Rates(4000, 4000, 250 * MIB, 250 * MIB)


@pytest.mark.parametrize(
    ("row", "chosen", "problem"),
    [
        (MUST_BE_CHOSEN, None, "acme.disk needs provisioned IOPS; expected 100 to 64000"),
        (MUST_BE_CHOSEN, Provision(200, 1e6), "the size determines the bandwidth of acme.disk"),
        (TIERED, Provision(iops=100), "the size determines the IOPS of acme.disk"),
        (make_terms(), Provision(iops=100), "found provisioned IOPS; expected none"),
    ],
)
def test_derive_limits_rejects_provisioned_values(
    row: Terms, chosen: Provision | None, problem: str
) -> None:
    with pytest.raises(DiskslaError, match=problem):
        derive_limits(row, 10 * GIB, chosen)


@pytest.mark.parametrize(
    ("chosen", "note"),
    [
        (None, None),
        (Provision(iops=5000, bytes_per_second=750 * MIB), None),
        (
            Provision(iops=2999),
            "2999 IOPS of acme.disk: below what Acme sells (catalogue: 3000 to 5000 at this size)",
        ),
        (
            Provision(iops=5001),
            "5001 IOPS of acme.disk: above what Acme sells (catalogue: 3000 to 5000 at this size)",
        ),
        (
            Provision(bytes_per_second=751 * MIB),
            (
                "751 MiB/s bandwidth of acme.disk: above what Acme sells"
                " (catalogue: 125 MiB/s to 750 MiB/s at this size)"
            ),
        ),
    ],
)
def test_value_beyond_the_catalogue_counts(chosen: Provision | None, note: str | None) -> None:
    assert beyond_bounds(PROVISIONED, 10 * GIB, chosen) == [note] * (note is not None)
    if chosen is not None and chosen.iops is not None:
        assert derive_limits(PROVISIONED, 10 * GIB, chosen).rates.read_iops == chosen.iops


def test_bounds_without_a_maximum() -> None:
    row = make_terms(budget="separate", read_iops={"rule": "provisioned", "minimum": 100})
    assert beyond_bounds(row, GIB, Provision(iops=99.0)) == [
        "99 IOPS of acme.disk: below what Acme sells (catalogue: at least 100 at this size)"
    ]


@pytest.mark.parametrize(
    ("sizes", "size_gib", "expected"),
    [
        ({}, 1, None),
        ({"least_bytes": "4GiB"}, 4, None),
        ({"least_bytes": "4GiB"}, 3, "at least 4 GiB"),
        ({"most_bytes": "4GiB"}, 5, "at most 4 GiB"),
        ({"least_bytes": "4GiB", "most_bytes": "64TiB"}, 1, "4 GiB to 64 TiB"),
    ],
)
def test_sizes_that_are_not_sold(
    sizes: dict[str, str], size_gib: int, expected: str | None
) -> None:
    notes = beyond_sizes(make_terms(sizes=sizes), size_gib * GIB)
    text = f"found {size_gib} GiB for acme.disk; expected {expected}"
    assert notes == [text] * (expected is not None)


def test_derive_limits_rejects_zero_size() -> None:
    with pytest.raises(DiskslaError, match="found a size of 0 bytes"):
        derive_limits(TIERED, 0)


def test_derive_limits_computes_bandwidth_from_iops() -> None:
    assert derive_limits(MUST_BE_CHOSEN, GIB, Provision(iops=400)).rates == Rates(
        400, 400, 100 * MIB, 100 * MIB
    )


def test_derive_limits_adds_burst_to_small_tiers() -> None:
    small = derive_limits(TIERED, 32 * GIB)
    assert small.burst is not None
    assert small.burst.rates.read_iops == 3500
    assert derive_limits(TIERED, 64 * GIB).burst is None


@pytest.mark.parametrize("row", [PROVISIONED, TIERED])
@given(st.integers(1, 2**46), st.integers(1, 2**46))
def test_derive_limits_does_not_decrease_with_size(row: Terms, one: int, other: int) -> None:
    small, large = (derive_limits(row, size).rates for size in sorted((one, other)))
    pairs = zip(msgspec.structs.astuple(small), msgspec.structs.astuple(large), strict=True)
    assert all(0 < before <= after for before, after in pairs)


@pytest.mark.parametrize(
    ("request_kib", "share"), [(0.5, 1.0), (4, 1.0), (5, 0.75), (8, 0.75), (9, 0.5), (1024, 0.5)]
)
def test_promised_share_between_sizes_is_that_of_larger(request_kib: float, share: float) -> None:
    assert promised_share(SHARES, int(request_kib * KIB)) == share


def test_promised_share_without_table_is_one() -> None:
    assert promised_share((), 2**20) == 1.0


def test_effective_iops_of_separate_budgets() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")

    def iops(write_share: float) -> float:
        band = effective_iops(limits, 4 * KIB, write_share, SHARES)
        assert band is not None
        return band.promise

    assert iops(0.0) == pytest.approx(15000)
    assert iops(0.2) == pytest.approx(18750)
    assert iops(0.5) == pytest.approx(15000)
    assert iops(1.0) == pytest.approx(7500)


def test_effective_iops_are_limited_by_bandwidth() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")
    band = effective_iops(limits, MIB, 0.0, SHARES)
    assert band == pytest.approx((400, 400))


def test_effective_iops_with_promised_shares() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")
    assert effective_iops(limits, 8 * KIB, 0.0, SHARES) == pytest.approx((11250, 15000))


@pytest.mark.parametrize("write_share", [0.0, 0.3, 1.0])
def test_effective_iops_of_sum_do_not_depend_on_mix(write_share: float) -> None:
    limits = build_limits(SHARED_RATES, "sum")
    assert effective_iops(limits, KIB, write_share) == pytest.approx((1000, 1000))


@given(st.floats(0, 1), st.floats(1, 1e5), st.floats(1, 1e5))
def test_effective_iops_of_shared_time_are_harmonic_mean(
    share: float, read: float, write: float
) -> None:
    limits = build_limits(Rates(read, write), "time_shared")
    expected = 1 / (share / write + (1 - share) / read)
    assert effective_iops(limits, KIB, share) == pytest.approx((expected, expected))


@pytest.mark.parametrize("limits", [NO_LIMITS, build_limits(Rates(100.0), "separate")])
def test_effective_iops_without_limits_are_none(limits: Limits) -> None:
    assert effective_iops(limits, KIB, write_share=1.0) is None


@given(st.integers(1, 2**24), st.integers(1, 2**24), st.floats(0, 1))
def test_effective_iops_do_not_increase_with_request_size(
    one: int, other: int, write_share: float
) -> None:
    limits = derive_limits(PROVISIONED, 100 * GIB)
    small, large = (
        effective_iops(limits, size, write_share, SHARES) for size in sorted((one, other))
    )
    assert small is not None
    assert large is not None
    assert small.promise >= large.promise
    assert large.enforced >= large.promise


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
