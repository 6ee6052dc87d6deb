"""The arithmetic of limits as text."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MIB, format_count, format_listed_bandwidth
from disksla.promise.catalogue.catalog import load_catalog, parse_catalog
from disksla.promise.catalogue.derivation import DerivationStep, derivation, latency_text
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import Rates
from disksla.promise.catalogue.rules import (
    BandwidthRule,
    Clamp,
    FromIops,
    IopsRule,
    Provisioned,
    Tier,
    Tiers,
)
from disksla.promise.catalogue.terms import Example, Provision, RowSource, Terms

CATALOG = load_catalog()
EVERY_RULE = Path(__file__).parent / "catalog.d" / "every-rule.yml"


def terms_of(iops: IopsRule, bandwidth: BandwidthRule | None = None) -> Terms:
    """Return terms with limits of reads only."""
    return Terms(
        id="test.disk",
        title="Disk",
        provider="test",
        provider_name="Test",
        sources=(RowSource("https://example.org", dt.date(2026, 1, 1)),),
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
        (Tiers(steps=(Tier(8 * GIB, 120), Tier(32 * GIB, 500))), "500 up to 32 GiB", "500"),
        (
            Provisioned(minimum=100, maximum=Clamp(per_gib=500), default=3000),
            "default, 100 to 5000 at this size",
            "3000",
        ),
    ],
)
def test_derivation_of_other_rules(rule: IopsRule, steps: str, result: str) -> None:
    assert derivation(terms_of(rule), 10 * GIB) == (DerivationStep("read IOPS", steps, result),)


def test_derivation_of_provisioned_bandwidth_has_bounds_by_iops() -> None:
    bandwidth = Provisioned[float](minimum=MIB, maximum=FromIops(bytes_per_io=256 * KIB))
    terms = terms_of(Provisioned(minimum=100, maximum=16000), bandwidth)
    provision = Provision(iops=1000, bytes_per_second=200 * MIB)
    assert derivation(terms, GIB, provision)[1] == DerivationStep(
        "read bandwidth", "provisioned, 1 MiB/s to 250 MiB/s at this size", "200 MiB/s"
    )


def test_derivation_of_laws_that_follow_from_others() -> None:
    row = parse_catalog(EVERY_RULE.read_bytes(), EVERY_RULE.name)["acme.bandwidth"]
    provision = Provision(1600.0, 100.0 * MIB)
    assert [step.steps for step in derivation(row, 100 * GIB, provision)] == [
        "100 MiB/s / 256 KiB = 400, at most 9600",
        "(1800 + 50 x 100 GiB = 6800) plus (provisioned, at least 0 at this size)",
        "provisioned, at least 10 MiB/s at this size",
        "(100 MiB/s at any size) plus (1600 bought IOPS x 16 KiB = 25 MiB/s)",
    ]


def test_derivation_of_the_greatest_law() -> None:
    row = parse_catalog(EVERY_RULE.read_bytes(), EVERY_RULE.name)["acme.provisioned"]
    assert derivation(row, 100 * GIB, Provision(4000.0))[3].steps == (
        "the greatest of: 4000 IOPS x 64 KiB = 250 MiB/s, at most 500 MiB/s; 50 MiB/s at any size"
    )


def test_derivation_rejects_missing_provisioned_value() -> None:
    with pytest.raises(DiskslaError):
        derivation(terms_of(Provisioned(minimum=100, maximum=16000)), GIB)


def test_derivation_of_bandwidth_from_iops_with_bounds() -> None:
    terms = terms_of(Clamp(base=1000), FromIops(bytes_per_io=KIB, minimum=MIB, maximum=9 * MIB))
    assert derivation(terms, GIB)[1].steps == (
        "1000 IOPS x 1 KiB = 1000 KiB/s, at least 1 MiB/s, at most 9 MiB/s"
    )


@given(st.sampled_from(CATALOG.rows), st.data())
def test_derivation_results_are_the_limits(row: Terms, data: st.DataObject) -> None:
    example = data.draw(st.sampled_from(row.examples))
    rates = derive_limits(row, example.size_bytes, example.provisioned).rates
    expected = {
        "read IOPS": rates.read_iops and format_count(rates.read_iops),
        "write IOPS": rates.write_iops and format_count(rates.write_iops),
        "read bandwidth": rates.read_bytes_per_second
        and format_listed_bandwidth(rates.read_bytes_per_second),
        "write bandwidth": rates.write_bytes_per_second
        and format_listed_bandwidth(rates.write_bytes_per_second),
    }
    steps = derivation(row, example.size_bytes, example.provisioned)
    assert {step.name: step.result for step in steps} == {
        key: value for key, value in expected.items() if value is not None
    }


@pytest.mark.parametrize(
    ("read_s", "write_s", "time_share", "text"),
    [
        (0.003, None, None, "3 ms, indicative"),
        (0.02, 0.01, None, "20 ms for reads, 10 ms for writes, indicative"),
        (None, 0.0002, None, "0.2 ms for writes, indicative"),
        (0.01, None, 0.999, "10 ms for 99.9 % of the time, indicative"),
    ],
)
def test_latency_in_words(
    read_s: float | None, write_s: float | None, time_share: float | None, text: str
) -> None:
    assert latency_text("indicative", read_s, write_s, time_share) == text
