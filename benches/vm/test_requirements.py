import msgspec
import pytest

from lab.judge import Facts
from lab.scenario import Expectation
from lab.test_judge import windows_of
from vm.guest import DiskMetrics, disk_metrics
from vm.verdict import clock_problems, credit_problems, daemon_problems

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


def test_page_of_the_daemon_is_read() -> None:
    limits = {"iops": 4.8, "unknown": 0.2}
    assert disk_metrics(PAGE) == DiskMetrics(limits, 300.0, 301.0, None, {"iops": (40.0, 60.0)})
    assert disk_metrics(PAGE).throttled_s == 5.0
    assert disk_metrics("") == DiskMetrics({}, None, None, None, {})


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
