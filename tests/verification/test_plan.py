import pytest

from disksla.config.custom_terms import SumBurst, SumTerms, custom_limits
from disksla.verification.plan import SuitePlan, base_estimate_s
from disksla.verification.suites import make_suite

LIMITS = custom_limits(SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8500.0)))
PLAN = SuitePlan(make_suite("terms", LIMITS, 0.03), "/dev/x", None, 10.0, 0.03, with_writes=False)


def test_plan_estimates_its_duration() -> None:
    assert PLAN.estimate_s == pytest.approx(13)
    assert base_estimate_s(LIMITS) == pytest.approx(5)


def test_plan_without_writes_runs_reads_only() -> None:
    assert [test.name for test in PLAN.tests] == ["randread-4k"]
    assert len(PLAN._replace(with_writes=True).tests) == 2


def test_tests_not_run_are_unmeasured_or_skipped() -> None:
    results = PLAN.not_run("why")
    assert [result.reason for result in results][:2] == [
        "why",
        "the terms promise no bandwidth for reads",
    ]
    assert "--file DIR" in results[3].reason
    assert [result.verdict for result in results] == ["unmeasured", *["skipped"] * 5]
