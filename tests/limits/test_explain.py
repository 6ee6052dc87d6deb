"""The arithmetic of limits, written out."""

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
    """Give terms that promise reads only."""
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


def test_allocation_units() -> None:
    assert derivation(CATALOG["yandex.network-hdd"], 257 * GIB)[0] == DerivationStep(
        "read IOPS", "ceil(257 GiB / 256 GiB) = 2, x 300 = 600, at most 2000", "600"
    )


def test_clamp_and_bandwidth_from_iops() -> None:
    workings = derivation(CATALOG["vk.ceph-ssd"], 500 * GIB)
    assert workings[0] == DerivationStep(
        "read IOPS", "30 x 500 GiB = 15000, at least 1000, at most 16000", "15000"
    )
    assert workings[3] == DerivationStep(
        "write bandwidth", "7500 IOPS x 128 KiB = 937.5 MiB/s, at most 400 MiB/s", "400 MiB/s"
    )


@pytest.mark.parametrize(
    ("law", "steps", "result"),
    [
        (Clamp(base=100, per_gib=2), "100 + 2 x 10 GiB = 120", "120"),
        (
            Tiers(steps=(Tier(8 * GIB, 120), Tier(32 * GIB, 500))),
            "the step of the table up to 32 GiB",
            "500",
        ),
        (
            Provisioned(minimum=100, maximum=64000, maximum_per_gib=500, default=3000),
            "provisioned, between 100 and 5000 at this size",
            "3000",
        ),
    ],
)
def test_other_laws(law: IopsRule, steps: str, result: str) -> None:
    assert derivation(terms_of(law), 10 * GIB) == (DerivationStep("read IOPS", steps, result),)


def test_provisioned_bandwidth_is_bounded_by_the_iops() -> None:
    bandwidth = Provisioned(minimum=MIB, maximum=1000 * MIB, maximum_per_iops=256 * KIB)
    terms = terms_of(Provisioned(minimum=100, maximum=16000), bandwidth)
    provision = Provision(iops=1000, bytes_per_second=200 * MIB)
    assert derivation(terms, GIB, provision)[1] == DerivationStep(
        "read bandwidth", "provisioned, between 1 MiB/s and 250 MiB/s at this size", "200 MiB/s"
    )


def test_what_cannot_be_derived_is_refused() -> None:
    with pytest.raises(DiskslaError):
        derivation(terms_of(Provisioned(minimum=100, maximum=16000)), GIB)


def test_bandwidth_from_iops_between_bounds() -> None:
    terms = terms_of(Clamp(base=1000), FromIops(bytes_per_io=KIB, minimum=MIB, maximum=9 * MIB))
    assert derivation(terms, GIB)[1].steps == (
        "1000 IOPS x 1 KiB = 1000 KiB/s, at least 1 MiB/s, at most 9 MiB/s"
    )


@given(st.sampled_from([row.id for row in CATALOG.rows]), st.integers(1, 2**47))
def test_results_are_the_limits(name: str, size_bytes: int) -> None:
    rates = derive_limits(CATALOG[name], size_bytes).rates
    expected = {
        "read IOPS": rates.read_iops and format_count(rates.read_iops),
        "write IOPS": rates.write_iops and format_count(rates.write_iops),
        "read bandwidth": rates.read_bytes_per_second
        and format_bandwidth(rates.read_bytes_per_second),
        "write bandwidth": rates.write_bytes_per_second
        and format_bandwidth(rates.write_bytes_per_second),
    }
    workings = derivation(CATALOG[name], size_bytes)
    assert {working.name: working.result for working in workings} == {
        key: value for key, value in expected.items() if value is not None
    }
