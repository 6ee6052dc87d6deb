"""The lines of each suite, against the catalogue's numbers and the providers' pages."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SeparateTerms, SumBurst, SumTerms, custom_limits
from disksla.limits.catalog import load_catalog
from disksla.limits.derive import derive_limits
from disksla.limits.limits import NO_LIMITS, Limits, PromisedShare, Rates, build_limits
from disksla.units import GIB, KIB, MIB
from disksla.verification.suites import Suite, SuiteTest, default_suite, make_suite

CATALOG = load_catalog()
TOLERANCE = 0.03


def suite(terms: str, size_bytes: int, name: str | None = None) -> Suite:
    row = CATALOG[terms]
    chosen = name or default_suite(row.provider)
    return make_suite(chosen, derive_limits(row, size_bytes), TOLERANCE)  # type: ignore[arg-type]


def by_test(made: Suite) -> dict[str, SuiteTest]:
    return {line.name: line for line in made.tests}


def required(made: Suite) -> dict[str, float | None]:
    return {
        line.name: line.requirement.required if line.requirement else None for line in made.tests
    }


@pytest.mark.parametrize(
    ("provider", "name"), [("vk", "vk"), ("yandex", "yandex"), ("configuration", "terms")]
)
def test_a_provider_has_its_own_suite(provider: str, name: str) -> None:
    assert default_suite(provider) == name


def test_vk_tests_three_sizes_in_32_threads_the_bandwidth_and_the_latency() -> None:
    made = suite("vk.ef-nvme", 500 * GIB)
    assert required(made) == pytest.approx(
        {
            "randread-4k": 37500,
            "randread-8k": 28125,
            "randread-16k": 18750,
            "read-1m": 1172 * MIB,
            "latency-randread-4k": 0.0005,
            "randwrite-4k": 17500,
            "randwrite-8k": 13125,
            "randwrite-16k": 8750,
            "write-1m": 547 * MIB,
            "latency-randwrite-4k": 0.0005,
        }
    )
    lines = by_test(made)
    assert {line.inflight for line in lines.values()} == {32, 16}
    assert lines["read-1m"].queue_depth == 16
    assert lines["latency-randread-4k"].rate_iops == pytest.approx(37500 * 0.97)
    assert [line.name for line in made.tests if line.writes] == list(lines)[5:]
    assert made.file_systems == ("ext2", "ext3", "ext4", "xfs")
    assert made.file_bytes == 512 * MIB


@pytest.mark.parametrize(("terms", "binding"), [("vk.ef-nvme", True), ("vk.ceph-ssd", False)])
def test_only_a_guaranteed_latency_can_fail(terms: str, binding: bool) -> None:
    requirement = by_test(suite(terms, 100 * GIB))["latency-randread-4k"].requirement
    assert requirement is not None
    assert requirement.is_binding is binding


def test_what_is_required_says_why() -> None:
    lines = by_test(suite("vk.ceph-ssd", 100 * GIB))
    requirement = lines["randread-8k"].requirement
    assert requirement is not None
    assert requirement.why == "75% of 3000 IOPS"
    assert (requirement.promised, requirement.required) == (3000, 2250)
    bandwidth = lines["read-1m"].requirement
    assert bandwidth is not None
    assert bandwidth.why == "bandwidth limit of 375 MiB/s"


def test_yandex_runs_the_six_examples_of_its_page() -> None:
    made = suite("yandex.network-ssd", 100 * GIB)
    assert [
        (line.name, line.pattern, line.request_bytes, line.queue_depth, line.workers)
        for line in made.tests
    ] == [
        ("read-4k", "read", 4 * KIB, 128, 8),
        ("randread-4k", "randread", 4 * KIB, 16, 8),
        ("read-4m", "read", 4 * MIB, 32, 1),
        ("write-4k", "write", 4 * KIB, 96, 4),
        ("randwrite-4k", "randwrite", 4 * KIB, 96, 1),
        ("write-4m", "write", 4 * MIB, 32, 1),
    ]
    assert made.file_bytes == GIB


def test_yandex_is_held_against_its_published_formula() -> None:
    made = required(suite("yandex.network-hdd", 256 * GIB))
    small = 1 / (1 / 300 + 4 * KIB / (30 * MIB))
    large = 4 * MIB / (1 / 300 + 4 * MIB / (30 * MIB))
    assert small == pytest.approx(288.72, abs=0.01)
    assert made["randread-4k"] == made["read-4k"] == pytest.approx(small)
    assert made["write-4m"] == pytest.approx(large)


def test_credits_are_known_to_the_lines() -> None:
    requirement = by_test(suite("yandex.network-hdd", 256 * GIB))["randread-4k"].requirement
    assert requirement is not None
    assert requirement.burst == pytest.approx(4 * requirement.promised)
    assert requirement.why == "published formula for requests of 4 KiB"


def test_a_suite_can_be_run_on_the_terms_of_another_provider() -> None:
    made = required(suite("yandex.network-hdd", 256 * GIB, "vk"))
    assert made["randread-8k"] == pytest.approx(1 / (1 / 300 + 8 * KIB / (30 * MIB)))
    assert required(suite("vk.ceph-hdd", 10 * GIB, "yandex"))["write-4m"] == 19 * MIB


def test_a_contract_is_tested_under_the_usual_conditions() -> None:
    contract = SeparateTerms(read_iops=500.0, write_bytes_per_second=40e6, latency_s=0.001)
    made = make_suite("terms", custom_limits(contract), TOLERANCE)
    lines = by_test(made)
    assert required(made) == {
        "randread-4k": 500,
        "read-1m": None,
        "latency-randread-4k": 0.001,
        "randwrite-4k": None,
        "write-1m": 40e6,
        "latency-randwrite-4k": None,
    }
    assert lines["read-1m"].skip_reason == "the terms promise no bandwidth for reads"
    assert lines["randwrite-4k"].skip_reason == "the terms promise no IOPS for writes"
    assert "no rate to test at" in lines["latency-randwrite-4k"].skip_reason
    assert (lines["randread-4k"].inflight, lines["read-1m"].inflight) == (32, 16)


def test_the_smaller_of_iops_and_bandwidth_is_required() -> None:
    """16 KiB x half of 20000 IOPS would be 156 MiB/s, and only 100 are promised."""
    limits = custom_limits(
        SeparateTerms(read_iops=20000.0, read_bytes_per_second=100.0 * MIB, latency_s=0.001)
    )
    lines = by_test(make_suite("vk", limits, TOLERANCE))
    requirement = lines["randread-16k"].requirement
    assert requirement is not None
    assert requirement.required == requirement.promised == pytest.approx(6400)
    assert requirement.why == "capped by the bandwidth limit for requests of 16 KiB"


def test_iops_may_be_what_bounds_the_bandwidth() -> None:
    limits = custom_limits(SeparateTerms(read_iops=50.0, read_bytes_per_second=100.0 * MIB))
    requirement = by_test(make_suite("terms", limits, TOLERANCE))["read-1m"].requirement
    assert requirement is not None
    assert requirement.required == 50 * MIB
    assert requirement.why == "capped by the IOPS limit for requests of 1 MiB"
    latency = by_test(make_suite("terms", limits, TOLERANCE))["latency-randread-4k"]
    assert latency.skip_reason == "the terms name no latency"


def test_a_latency_is_guaranteed_unless_told_otherwise() -> None:
    limits = msgspec.structs.replace(
        custom_limits(SeparateTerms(read_iops=500.0)), latency_s=0.001, latency_kind=None
    )
    requirement = by_test(make_suite("terms", limits, TOLERANCE))[
        "latency-randread-4k"
    ].requirement
    assert requirement is not None
    assert requirement.is_binding


def test_nothing_promised_requires_nothing() -> None:
    assert set(required(make_suite("vk", NO_LIMITS, TOLERANCE)).values()) == {None}


def test_a_line_becomes_a_job() -> None:
    line = by_test(suite("yandex.network-ssd", 100 * GIB))["write-4k"]
    job = line.job("/dev/vdb", 60.0, 512 * MIB)
    assert (job.name, job.target, job.pattern) == ("write-4k", "/dev/vdb", "write")
    assert (job.queue_depth, job.workers, job.request_bytes) == (96, 4, 4 * KIB)
    assert (job.runtime_s, job.span_bytes, job.rate_iops) == (60.0, 512 * MIB, None)


rates = st.none() | st.floats(1, 1e6)
contracts = st.builds(
    Rates, rates, rates, rates.map(lambda r: r and r * 1e4), rates.map(lambda r: r and r * 1e4)
)


@given(
    contracts,
    st.sampled_from(["separate", "time_shared"]),
    st.sampled_from(["vk", "yandex", "terms"]),
    st.sampled_from([(), (PromisedShare(4096, 1.0), PromisedShare(16384, 0.5))]),
)
def test_never_more_is_required_than_is_promised(
    promised: Rates, budget: str, name: str, shares: tuple[PromisedShare, ...]
) -> None:
    limits: Limits = msgspec.structs.replace(
        build_limits(promised, budget),  # type: ignore[arg-type]
        promised_shares=shares,
    )
    for line in make_suite(name, limits, TOLERANCE).tests:  # type: ignore[arg-type]
        assert (line.requirement is None) == bool(line.skip_reason)
        if line.requirement is None:
            continue
        assert 0 < line.requirement.required <= line.requirement.promised * (1 + 1e-9)
        way = ("write_" if line.writes else "read_") + line.requirement.unit
        limit = getattr(promised, way)
        assert line.requirement.promised <= limit * (1 + 1e-9)


def test_a_burst_is_more_than_the_promise() -> None:
    limits = custom_limits(SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0)))
    requirement = by_test(make_suite("terms", limits, TOLERANCE))["randread-4k"].requirement
    assert requirement is not None
    assert (requirement.promised, requirement.burst) == (300, 2000)
