"""The arithmetic of limits as text."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.errors import DiskslaError
from disksla.limits.catalog import load_catalog
from disksla.limits.derive import derive_limits
from disksla.limits.explain import DerivationStep, derivation
from disksla.limits.limits import Rates
from disksla.limits.size_rules import (
    BandwidthRule,
    Clamp,
    FromIops,
    IopsRule,
    Provisioned,
    Tier,
    Tiers,
)
from disksla.limits.terms import Example, Provision, Source, Terms
from disksla.units import GIB, KIB, MIB, format_bandwidth, format_count

CATALOG = load_catalog()


def terms_of(iops: IopsRule, bandwidth: BandwidthRule | None = None) -> Terms:
    """Return terms with limits of reads only."""
    return Terms(
        id="test.disk",
        title="Disk",
        provider="test",
        provider_name="Test",
        sources=(Source("https://example.org", dt.date(2026, 1, 1)),),
        examples=(Example(GIB, Rates()),),
        budget="separate",
        read_iops=iops,
        read_bandwidth=bandwidth,
    )


def test_derivation_of_allocation_units() -> None:
    assert derivation(CATALOG["yandex.network-hdd"], 257 * GIB)[0] == DerivationStep(
        "read IOPS", "ceil(257 GiB / 256 GiB) = 2, x 300 = 600, at most 2000", "600"
    )


def test_derivation_of_clamp_and_bandwidth_from_iops() -> None:
    steps = derivation(CATALOG["vk.ceph-ssd"], 500 * GIB)
    assert steps[0] == DerivationStep(
        "read IOPS", "30 x 500 GiB = 15000, at least 1000, at most 16000", "15000"
    )
    assert steps[3] == DerivationStep(
        "write bandwidth", "7500 IOPS x 128 KiB = 937.5 MiB/s, at most 400 MiB/s", "400 MiB/s"
    )


@pytest.mark.parametrize(
    ("rule", "steps", "result"),
    [
        (Clamp(base=100, per_gib=2), "100 + 2 x 10 GiB = 120", "120"),
        (Clamp(base=2000), "2000 at any size", "2000"),
        (Clamp(minimum=500), "500 at any size", "500"),
        (
            Tiers(steps=(Tier(8 * GIB, 120), Tier(32 * GIB, 500))),
            "table step up to 32 GiB",
            "500",
        ),
        (
            Provisioned(minimum=100, maximum=64000, maximum_per_gib=500, default=3000),
            "provisioned, 100 to 5000 at this size",
            "3000",
        ),
    ],
)
def test_derivation_of_other_rules(rule: IopsRule, steps: str, result: str) -> None:
    assert derivation(terms_of(rule), 10 * GIB) == (DerivationStep("read IOPS", steps, result),)


def test_derivation_of_provisioned_bandwidth_has_bounds_by_iops() -> None:
    bandwidth = Provisioned[float](minimum=MIB, maximum=1000 * MIB, maximum_per_iops=256 * KIB)
    terms = terms_of(Provisioned(minimum=100, maximum=16000), bandwidth)
    provision = Provision(iops=1000, bytes_per_second=200 * MIB)
    assert derivation(terms, GIB, provision)[1] == DerivationStep(
        "read bandwidth", "provisioned, 1 MiB/s to 250 MiB/s at this size", "200 MiB/s"
    )


def test_derivation_rejects_missing_provisioned_value() -> None:
    with pytest.raises(DiskslaError):
        derivation(terms_of(Provisioned(minimum=100, maximum=16000)), GIB)


def test_derivation_of_bandwidth_from_iops_with_bounds() -> None:
    terms = terms_of(Clamp(base=1000), FromIops(bytes_per_io=KIB, minimum=MIB, maximum=9 * MIB))
    assert derivation(terms, GIB)[1].steps == (
        "1000 IOPS x 1 KiB = 1000 KiB/s, at least 1 MiB/s, at most 9 MiB/s"
    )


@given(st.sampled_from([row.id for row in CATALOG.rows]), st.integers(1, 2**47))
def test_derivation_results_are_the_limits(name: str, size_bytes: int) -> None:
    rates = derive_limits(CATALOG[name], size_bytes).rates
    expected = {
        "read IOPS": rates.read_iops and format_count(rates.read_iops),
        "write IOPS": rates.write_iops and format_count(rates.write_iops),
        "read bandwidth": rates.read_bytes_per_second
        and format_bandwidth(rates.read_bytes_per_second),
        "write bandwidth": rates.write_bytes_per_second
        and format_bandwidth(rates.write_bytes_per_second),
    }
    steps = derivation(CATALOG[name], size_bytes)
    assert {step.name: step.result for step in steps} == {
        key: value for key, value in expected.items() if value is not None
    }
