"""From terms and a size to limits and effective IOPS, for every shape of terms."""

import datetime as dt
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.limits.derive import derive_limits, effective_iops
from disksla.limits.limits import (
    NO_LIMITS,
    Limits,
    PromisedShare,
    Rates,
    build_limits,
    promised_share,
)
from disksla.limits.terms import Provision, Terms
from disksla.units import GIB, KIB, MIB

SHARES = (
    PromisedShare(4 * KIB, 1.0),
    PromisedShare(8 * KIB, 0.75),
    PromisedShare(16 * KIB, 0.5),
)
SHARED_RATES = Rates(1000.0, 1000.0, 1e8, 1e8)


def terms(**fields: Any) -> Terms:
    row = {
        "id": "acme.disk",
        "title": "A disk",
        "provider": "acme",
        "provider_name": "Acme",
        "sources": [{"url": "https://example.com/", "date": dt.date(2026, 1, 2)}],
        "examples": [{"size_bytes": GIB, "rates": {}}],
    }
    return msgspec.convert(row | fields, Terms)


def both(iops: dict[str, Any], bandwidth: dict[str, Any]) -> dict[str, Any]:
    return {
        "read_iops": iops,
        "write_iops": iops,
        "read_bandwidth": bandwidth,
        "write_bandwidth": bandwidth,
    }


PROVISIONED = terms(
    budget="sum",
    cost={"type": "chunks", "chunk_bytes": 256 * KIB},
    **both(
        {
            "law": "provisioned",
            "minimum": 3000,
            "maximum": 16000,
            "default": 3000,
            "maximum_per_gib": 500,
        },
        {
            "law": "provisioned",
            "minimum": 125 * MIB,
            "maximum": 1000 * MIB,
            "default": 125 * MIB,
            "maximum_per_iops": MIB / 4,
        },
    ),
)
MUST_BE_CHOSEN = terms(
    budget="sum",
    **both(
        {"law": "provisioned", "minimum": 100, "maximum": 64000},
        {"law": "from-iops", "bytes_per_io": 256 * KIB, "maximum": 1000 * MIB},
    ),
)
TIERED = terms(
    budget="sum",
    burst={
        "type": "token-buckets",
        "read_iops": {"law": "clamp", "base": 3500},
        "write_iops": {"law": "clamp", "base": 3500},
        "buckets": [
            {
                "resource": "iops",
                "capacity": {"law": "clamp", "base": 5e6},
                "fill_per_second": {"law": "clamp", "base": 120},
            }
        ],
    },
    **both(
        {
            "law": "tiers",
            "steps": [
                {"up_to_bytes": 32 * GIB, "rate": 120},
                {"up_to_bytes": 16384 * GIB, "rate": 18000},
            ],
        },
        {"law": "clamp", "base": 25e6, "per_gib": 1e5, "maximum": 900e6},
    ),
)


def test_terms_without_limits_promise_nothing() -> None:
    assert derive_limits(terms(), GIB) == NO_LIMITS
    assert derive_limits(terms(), 0) == NO_LIMITS


def test_what_was_not_chosen_is_the_default() -> None:
    assert derive_limits(PROVISIONED, 100 * GIB).rates == Rates(3000, 3000, 125 * MIB, 125 * MIB)


def test_what_was_chosen_is_the_limit() -> None:
    chosen = Provision(iops=4000, bytes_per_second=250 * MIB)
    limits = derive_limits(PROVISIONED, 100 * GIB, chosen)
    assert limits.rates == Rates(4000, 4000, 250 * MIB, 250 * MIB)


@pytest.mark.parametrize(
    ("row", "chosen", "said"),
    [
        (PROVISIONED, Provision(iops=2999), "2999 IOPS for acme.disk .* between 3000 and 5000"),
        (PROVISIONED, Provision(iops=5001), "between 3000 and 5000"),
        (PROVISIONED, Provision(bytes_per_second=751 * MIB), "between 125 MiB/s and 750 MiB/s"),
        (MUST_BE_CHOSEN, None, "no IOPS for acme.disk given: .* between 100 and 64000"),
        (MUST_BE_CHOSEN, Provision(200, 1e6), "the bandwidth of acme.disk cannot be chosen"),
        (TIERED, Provision(iops=100), "the IOPS of acme.disk cannot be chosen"),
        (terms(), Provision(iops=100), "the IOPS of acme.disk cannot be chosen"),
    ],
)
def test_what_cannot_be_had_is_refused(row: Terms, chosen: Provision | None, said: str) -> None:
    with pytest.raises(DiskslaError, match=said):
        derive_limits(row, 10 * GIB, chosen)


def test_a_disk_without_size_is_refused() -> None:
    with pytest.raises(DiskslaError, match="a disk of 0 bytes"):
        derive_limits(TIERED, 0)


def test_bandwidth_follows_from_chosen_iops() -> None:
    assert derive_limits(MUST_BE_CHOSEN, GIB, Provision(iops=400)).rates == Rates(
        400, 400, 100 * MIB, 100 * MIB
    )


def test_a_burst_comes_with_the_small_tiers_only() -> None:
    small = derive_limits(TIERED, 32 * GIB)
    assert small.burst is not None
    assert small.burst.rates.read_iops == 3500
    assert derive_limits(TIERED, 64 * GIB).burst is None


@pytest.mark.parametrize("row", [PROVISIONED, TIERED])
@given(st.integers(1, 2**46), st.integers(1, 2**46))
def test_limits_never_fall_as_a_disk_grows(row: Terms, one: int, other: int) -> None:
    small, large = (derive_limits(row, size).rates for size in sorted((one, other)))
    pairs = zip(msgspec.structs.astuple(small), msgspec.structs.astuple(large), strict=True)
    assert all(0 < before <= after for before, after in pairs)


@pytest.mark.parametrize(
    ("request_kib", "share"), [(0.5, 1.0), (4, 1.0), (5, 0.75), (8, 0.75), (9, 0.5), (1024, 0.5)]
)
def test_between_sizes_the_share_of_the_larger_is_promised(
    request_kib: float, share: float
) -> None:
    assert promised_share(SHARES, int(request_kib * KIB)) == share


def test_without_shares_every_size_counts_in_full() -> None:
    assert promised_share((), 2**20) == 1.0


def test_separate_budgets_limit_the_mix_by_the_fuller_one() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")

    def iops(write_share: float) -> float:
        band = effective_iops(limits, 4 * KIB, write_share, SHARES)
        assert band is not None
        return band.promise

    assert iops(0.0) == pytest.approx(15000)
    assert iops(0.2) == pytest.approx(18750)
    assert iops(0.5) == pytest.approx(15000)
    assert iops(1.0) == pytest.approx(7500)


def test_a_promise_is_never_more_than_the_bandwidth_carries() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")
    band = effective_iops(limits, MIB, 0.0, SHARES)
    assert band == pytest.approx((400, 400))


def test_a_share_widens_the_band() -> None:
    limits = build_limits(Rates(15000.0, 7500.0, 400 * MIB, 400 * MIB), "separate")
    assert effective_iops(limits, 8 * KIB, 0.0, SHARES) == pytest.approx((11250, 15000))


@pytest.mark.parametrize("write_share", [0.0, 0.3, 1.0])
def test_a_sum_does_not_mind_the_mix(write_share: float) -> None:
    limits = build_limits(SHARED_RATES, "sum")
    assert effective_iops(limits, KIB, write_share) == pytest.approx((1000, 1000))


@given(st.floats(0, 1), st.floats(1, 1e5), st.floats(1, 1e5))
def test_shared_time_is_the_harmonic_mean(share: float, read: float, write: float) -> None:
    limits = build_limits(Rates(read, write), "time_shared")
    expected = 1 / (share / write + (1 - share) / read)
    assert effective_iops(limits, KIB, share) == pytest.approx((expected, expected))


@pytest.mark.parametrize("limits", [NO_LIMITS, build_limits(Rates(100.0), "separate")])
def test_where_nothing_is_promised_there_are_no_effective_iops(limits: Limits) -> None:
    assert effective_iops(limits, KIB, write_share=1.0) is None


@given(st.integers(1, 2**24), st.integers(1, 2**24), st.floats(0, 1))
def test_larger_requests_never_have_more(one: int, other: int, write_share: float) -> None:
    limits = derive_limits(PROVISIONED, 100 * GIB)
    small, large = (
        effective_iops(limits, size, write_share, SHARES) for size in sorted((one, other))
    )
    assert small is not None
    assert large is not None
    assert small.promise >= large.promise
    assert large.enforced >= large.promise
