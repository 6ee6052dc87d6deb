"""The tests of each suite, compared with the catalogue and the providers' pages."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB, KIB, MIB
from disksla.measure.verification.judge import SuitePlan, base_estimate_s
from disksla.measure.verification.suites import (
    Requirement,
    Suite,
    SuiteName,
    SuiteTest,
    default_suite,
    make_suite,
    within_machine,
)
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import (
    NO_LIMITS,
    Bucket,
    Burst,
    Limits,
    PromisedShare,
    Rates,
    build_limits,
)
from disksla.promise.catalogue.machine import SharedLimits
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumBurst,
    SumTerms,
    custom_limits,
)

CATALOG = load_catalog()
TOLERANCE = 0.03


def catalog_suite(terms_id: str, size_bytes: int, name: str | None = None) -> Suite:
    terms = CATALOG[terms_id]
    chosen = name or default_suite(terms.provider)
    return make_suite(chosen, derive_limits(terms, size_bytes), TOLERANCE)  # type: ignore[arg-type]


def by_test(suite: Suite) -> dict[str, SuiteTest]:
    return {test.name: test for test in suite.tests}


def requirement_of(suite: Suite, test: str) -> Requirement:
    found = by_test(suite)[test].requirement
    assert found is not None
    return found


def required(suite: Suite) -> dict[str, float | None]:
    return {
        test.name: test.requirement.required if test.requirement else None for test in suite.tests
    }


def test_vk_suite_has_sizes_bandwidth_and_latency() -> None:
    suite = catalog_suite("vk.ef-nvme", 500 * GIB)
    assert required(suite) == pytest.approx(
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
    tests = by_test(suite)
    assert {test.inflight for test in tests.values()} == {32, 16}
    assert tests["read-1m"].queue_depth == 16
    assert tests["latency-randread-4k"].rate_iops == pytest.approx(37500 * 0.97)
    assert [test.name for test in suite.tests if test.writes] == list(tests)[5:]
    assert suite.file_systems == ("ext2", "ext3", "ext4", "xfs")
    assert suite.file_bytes == 512 * MIB


def test_only_guaranteed_latency_is_binding() -> None:
    guaranteed, indicative = (
        requirement_of(catalog_suite(terms, 100 * GIB), "latency-randread-4k")
        for terms in ("vk.ef-nvme", "vk.ceph-ssd")
    )
    assert (guaranteed.is_binding, indicative.is_binding) == (True, False)
    limits = msgspec.structs.replace(
        custom_limits(SeparateTerms(read_iops=500.0)), latency_s=0.001, latency_kind=None
    )
    suite = make_suite("terms", limits, TOLERANCE)
    assert requirement_of(suite, "latency-randread-4k").is_binding


def test_requirement_names_its_reason() -> None:
    suite = catalog_suite("vk.ceph-ssd", 100 * GIB)
    requirement = requirement_of(suite, "randread-8k")
    assert requirement.why == "75% of 3000 IOPS"
    assert (requirement.promised, requirement.required) == (3000, 2250)
    assert requirement_of(suite, "read-1m").why == "bandwidth limit of 375 MiB/s"


def test_yandex_suite_has_the_six_examples_of_its_page() -> None:
    suite = catalog_suite("yandex.network-ssd", 100 * GIB)
    assert [
        (test.name, test.pattern, test.request_bytes, test.queue_depth, test.workers)
        for test in suite.tests
    ] == [
        ("read-4k", "read", 4 * KIB, 128, 8),
        ("randread-4k", "randread", 4 * KIB, 16, 8),
        ("read-4m", "read", 4 * MIB, 32, 1),
        ("write-4k", "write", 4 * KIB, 96, 4),
        ("randwrite-4k", "randwrite", 4 * KIB, 96, 1),
        ("write-4m", "write", 4 * MIB, 32, 1),
    ]
    assert suite.file_bytes == GIB


@pytest.mark.parametrize(
    ("latency_s", "inflight"), [(None, 100), (0.001, 100), (0.0002, 32), (0.004, 400)]
)
def test_tests_of_a_fast_disk_have_the_depth_that_it_needs(
    latency_s: float | None, inflight: int
) -> None:
    """Little's law; with 32 in flight, 100,000 IOPS would need 0.32 ms."""
    limits = custom_limits(SumTerms(iops=100_000.0, latency_s=latency_s))
    tests = by_test(make_suite("terms", limits, TOLERANCE))
    assert tests["randread-4k"].inflight == tests["randwrite-4k"].inflight == inflight
    assert tests["latency-randread-4k"].inflight == inflight
    eight = by_test(make_suite("yandex", limits, TOLERANCE))["randread-4k"]
    assert (eight.queue_depth, eight.workers) == (max(16, inflight // 8), 8)


def test_yandex_requires_its_published_formula() -> None:
    suite = catalog_suite("yandex.network-hdd", 256 * GIB)
    amounts = required(suite)
    small = 1 / (1 / 300 + 4 * KIB / (30 * MIB))
    large = 4 * MIB / (1 / 300 + 4 * MIB / (30 * MIB))
    assert small == pytest.approx(288.72, abs=0.01)
    assert amounts["randread-4k"] == amounts["read-4k"] == pytest.approx(small)
    assert amounts["write-4m"] == pytest.approx(large)
    requirement = requirement_of(suite, "randread-4k")
    assert requirement.burst == pytest.approx(4 * requirement.promised)
    assert requirement.why == "published formula for requests of 4 KiB"


def test_suite_for_terms_of_another_provider() -> None:
    amounts = required(catalog_suite("yandex.network-hdd", 256 * GIB, "vk"))
    assert amounts["randread-8k"] == pytest.approx(1 / (1 / 300 + 8 * KIB / (30 * MIB)))
    assert required(catalog_suite("vk.ceph-hdd", 10 * GIB, "yandex"))["write-4m"] == 19 * MIB


def test_custom_terms_use_default_conditions() -> None:
    terms = SeparateTerms(read_iops=500.0, write_bytes_per_second=40e6, latency_s=0.001)
    suite = make_suite("terms", custom_limits(terms), TOLERANCE)
    tests = by_test(suite)
    assert required(suite) == {
        "randread-4k": 500,
        "read-1m": None,
        "latency-randread-4k": 0.001,
        "randwrite-4k": None,
        "write-1m": 40e6,
        "latency-randwrite-4k": None,
    }
    assert tests["read-1m"].skip_reason == "the terms promise no bandwidth for reads"
    assert tests["randwrite-4k"].skip_reason == "the terms promise no IOPS for writes"
    assert "no rate to test at" in tests["latency-randwrite-4k"].skip_reason
    assert (tests["randread-4k"].inflight, tests["read-1m"].inflight) == (32, 16)


@pytest.mark.parametrize(
    ("terms", "name", "test", "required", "why"),
    [
        # 16 KiB x half of 20000 IOPS would be 156 MiB/s, and only 100 are promised.
        (
            (20_000.0, 100.0 * MIB),
            "vk",
            "randread-16k",
            6400,
            "bandwidth limit for requests of 16",
        ),
        ((50.0, 100.0 * MIB), "terms", "read-1m", 50 * MIB, "IOPS limit for requests of 1 MiB"),
    ],
)
def test_one_limit_caps_the_other(
    terms: tuple[float, float], name: SuiteName, test: str, required: float, why: str
) -> None:
    limits = custom_limits(SeparateTerms(read_iops=terms[0], read_bytes_per_second=terms[1]))
    suite = make_suite(name, limits, TOLERANCE)
    found = requirement_of(suite, test)
    assert found.required == pytest.approx(required)
    assert found.why.startswith(f"capped by the {why}")
    latency = by_test(suite)["latency-randread-4k"]
    assert latency.skip_reason == "the terms name no latency"


def test_no_limits_require_nothing() -> None:
    assert set(required(make_suite("vk", NO_LIMITS, TOLERANCE)).values()) == {None}


def test_plan_gives_a_fio_job() -> None:
    suite = catalog_suite("yandex.network-ssd", 100 * GIB)
    plan = SuitePlan(suite, "/dev/vdb", 512 * MIB, 60.0, TOLERANCE, with_writes=True)
    job = plan.job(by_test(suite)["write-4k"])
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
def test_required_never_exceeds_promised(
    promised: Rates, budget: str, name: str, shares: tuple[PromisedShare, ...]
) -> None:
    limits: Limits = msgspec.structs.replace(
        build_limits(promised, budget),  # type: ignore[arg-type]
        promised_shares=shares,
    )
    for test in make_suite(name, limits, TOLERANCE).tests:  # type: ignore[arg-type]
        assert (test.requirement is None) == bool(test.skip_reason)
        if test.requirement is None:
            continue
        assert 0 < test.requirement.required <= test.requirement.promised * (1 + 1e-9)
        field = ("write_" if test.writes else "read_") + test.requirement.unit
        limit = getattr(promised, field)
        assert test.requirement.promised <= limit * (1 + 1e-9)


M6I = SharedLimits(
    "ebs",
    "all EBS volumes of the instance together",
    "m6i.large",
    build_limits(Rates(3600.0, 3600.0, 81.25e6, 81.25e6), "sum"),
)


def test_tests_that_the_machine_does_not_allow_are_skipped() -> None:
    """6,000 IOPS and 125 MiB/s of a disk, on a machine that has 3,600 and 81.25 MB/s."""
    suite = make_suite("terms", build_limits(Rates(6000.0, 3000.0, 131e6, 64e6), "separate"), 0.03)
    within = by_test(within_machine(suite, [M6I], 0.03))
    skipped = {name: test.skip_reason for name, test in within.items() if not test.requirement}
    machine = "m6i.large allows all EBS volumes of the instance together only"
    assert skipped["randread-4k"] == f"{machine} 3600 such IOPS"
    assert skipped["read-1m"] == f"{machine} 77.5 such IOPS"
    assert {"randwrite-4k", "write-1m"} <= {*within} - {*skipped}
    assert within_machine(suite, [], 0.03) == suite


def test_latency_is_tested_only_at_a_rate_that_the_machine_allows() -> None:
    limits = build_limits(Rates(6000.0, 3000.0), "separate", 0.001, "guaranteed")
    within = by_test(within_machine(make_suite("terms", limits, 0.03), [M6I], 0.03))
    assert "3600 such IOPS" in within["latency-randread-4k"].skip_reason
    assert within["latency-randwrite-4k"].requirement is not None


def test_credits_of_the_machine_are_taken_to_be_full() -> None:
    burst = Burst(Rates(40_000.0, 40_000.0), (Bucket("iops", 65_520_000, 3600, 3600, 40_000),))
    limits = build_limits(Rates(3600.0, 3600.0), "sum", burst=burst)
    shared = msgspec.structs.replace(M6I, limits=limits)
    suite = make_suite("terms", build_limits(Rates(6000.0, 3000.0), "separate"), 0.03)
    assert within_machine(suite, [shared], 0.03) == suite


LIMITS = custom_limits(SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8500.0)))
PLAN = SuitePlan(make_suite("terms", LIMITS, 0.03), "/dev/x", None, 10.0, 0.03, with_writes=False)


def test_plan_without_writes_runs_reads_only() -> None:
    assert [test.name for test in PLAN.tests] == ["randread-4k"]
    assert len(PLAN._replace(with_writes=True).tests) == 2
    assert (PLAN.estimate_s, base_estimate_s(LIMITS)) == pytest.approx((13, 5))


def test_tests_not_run_are_unmeasured_or_skipped() -> None:
    results = PLAN.not_run("why")
    assert [result.reason for result in results][:2] == [
        "why",
        "the terms promise no bandwidth for reads",
    ]
    assert "--file DIR" in results[3].reason
    assert [result.verdict for result in results] == ["unmeasured", *["skipped"] * 5]
