import msgspec
import pytest

from lab.judge import Facts, Findings, judge
from lab.requirements import unmet_requirements
from lab.scenario import Expectation
from lab.test_judge import row_of, rows_of, windows_of
from vm.daemon import MACHINE_PREFIX, DiskMetrics, disk_metrics
from vm.requirements import clock_problems, credit_problems, daemon_problems

ALL = Expectation(throttled="quarter", limit="iops", ceiling=True, credits=True)
PAGE = """\
disksla_throttled_seconds_total{device="vda",limit="iops"} 4.8
disksla_throttled_seconds_total{device="vda",limit="unknown"} 0.2
disksla_verdict_seconds_total{device="vda",verdict="met"} 9.0
disksla_limit_read_iops{device="vda"} 300.0
disksla_observed_ceiling_iops{device="vda"} 301.0
disksla_burst_credits_lower_bound{device="vda",resource="iops"} 40.0
disksla_burst_credits_upper_bound{device="vda",resource="iops"} 60.0
"""


def findings(throttled: list[bool], reported: list[bool]) -> Findings:
    truth = windows_of(throttled)
    found = judge(truth, rows_of(reported), Facts(limit_rate=300.0), ALL)
    return msgspec.structs.replace(found, credit_violation_share=0.0)


@pytest.mark.parametrize(("other", "problems"), [(0, 0), (2, 0), (3, 1), (50, 1)])
def test_another_limit_is_reported_in_two_windows_at_most(other: int, problems: int) -> None:
    truth = windows_of([True] * 50)
    rows = [row_of(window, "throttled", limit="iops") for window in truth[other:]]
    rows += [row_of(window, "throttled", limit="unknown") for window in truth[:other]]
    expected = Expectation(limit="iops")
    findings = judge(truth, rows, Facts(), expected)
    assert len(unmet_requirements(findings, expected)) == problems


def test_everything_else_is_required() -> None:
    found = msgspec.structs.replace(
        findings([True] * 50, [True] * 50),
        limits={"unknown": 5.0},
        ceiling_error=0.011,
        credit_violation_share=0.1,
    )
    never = msgspec.structs.replace(ALL, never=("throttled", "stalled"))
    assert list(unmet_requirements(found, never)) == [
        "limit unknown 5.0 s, expected iops",
        "ceiling: error 1.1 %, allowed 1 %",
        "throttled for 5.0 s, expected never",
        "truth outside the credit bounds by 10.0 %",
    ]
    unknown = msgspec.structs.replace(found, limits={}, ceiling_error=None)
    assert list(unmet_requirements(unknown, ALL))[:2] == [
        "limit none, expected iops",
        "ceiling: error unknown, allowed 1 %",
    ]


def test_page_of_the_daemon_is_read() -> None:
    limits = {"iops": 4.8, "unknown": 0.2}
    assert disk_metrics(PAGE) == DiskMetrics(limits, 300.0, 301.0, None, {"iops": (40.0, 60.0)})
    assert disk_metrics(PAGE).throttled_s == 5.0
    assert disk_metrics("") == DiskMetrics({}, None, None, None, {})


def test_metrics_of_the_machine_are_read() -> None:
    page = PAGE.replace("disksla_", MACHINE_PREFIX).replace('device="vda"', 'group="ebs"')
    assert disk_metrics(page, MACHINE_PREFIX).limits == {"iops": 4.8, "unknown": 0.2}
    assert disk_metrics(page) == disk_metrics("")


def test_metrics_of_the_daemon_agree_with_the_truth() -> None:
    daemon, none, truth = disk_metrics(PAGE), disk_metrics(""), windows_of([True] * 50)
    before = msgspec.structs.replace(none, limits={"iops": 1.8, "unknown": 0.2})
    assert list(daemon_problems(daemon, none, truth, Facts(300.0), ALL, 25.0)) == []
    assert list(daemon_problems(daemon, before, truth[:20], Facts(320.0), ALL, 25.0)) == [
        "/metrics: throttled for 3.00 s of 25.0, allowed 0.00 to 2.50",
        "/metrics: ceiling 301.0, expected 320",
    ]
    in_bytes = Facts(300.0, is_bandwidth=True)
    assert len(list(daemon_problems(daemon, none, truth, in_bytes, ALL, 25.0))) == 1


def test_other_limits_of_the_daemon_are_reported() -> None:
    page = PAGE.replace('"unknown"} 0.2', '"machine_iops"} 0.3')
    daemon, none, truth = disk_metrics(page), disk_metrics(""), windows_of([True] * 51)
    expected = Expectation(limit="iops", never=("machine_iops",))
    assert list(daemon_problems(daemon, none, truth, Facts(300.0), expected, 5.0)) == [
        "/metrics: machine_iops for 0.3 s, expected never",
        "/metrics: machine_iops for 0.3 s, expected iops",
    ]


@pytest.mark.parametrize(("level", "problems"), [(39.0, 1), (40.0, 0), (60.0, 0), (61.0, 1)])
def test_bounds_of_the_daemon_contain_the_level(level: float, problems: int) -> None:
    truth = windows_of([False] * 3, credit=level)
    assert len(list(credit_problems(disk_metrics(PAGE), truth))) == problems
    assert len(list(credit_problems(disk_metrics(""), truth))) == 1
    assert list(credit_problems(disk_metrics(""), windows_of([False]))) == []


def test_clocks_must_match() -> None:
    assert list(clock_problems(0.019)) == []
    assert list(clock_problems(0.021)) == ["clocks: error 21 ms, allowed 20 ms"]
