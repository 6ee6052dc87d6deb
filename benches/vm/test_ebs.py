"""What `make ebs` compares. Needs no virtual machine."""

from random import Random

import pytest

from nvme.page import LIMITS
from vm.ebs import loads, read_metrics, since, unlike_truth, unlike_verdicts

PAGE = """\
disksla_provider_throttled_seconds_total{device="nvme0n1",limit="iops"} 12.5
disksla_provider_throttled_seconds_total{device="nvme0n1",limit="machine_iops"} 0.0
disksla_throttled_seconds_total{device="nvme0n1",limit="iops"} 12.1
disksla_provider_statistics_failures_total{device="nvme0n1",reason="magic"} 2.0
"""
TRUTH = {"iops": 12.5, "bandwidth": 0.0, "machine_iops": 0.0, "machine_bandwidth": 0.0}


def test_metrics_are_read_by_their_labels() -> None:
    found = read_metrics(PAGE)
    assert found.provider == {"iops": 12.5, "machine_iops": 0.0}
    assert found.throttled == {"iops": 12.1}
    assert found.failures == {"magic": 2.0}


def test_growth_is_by_key() -> None:
    assert since({"a": 3.0, "b": 1.0}, {"a": 2.0}) == {"a": 1.0, "b": 1.0}


def test_expected_seconds_do_not_differ() -> None:
    assert list(unlike_truth(TRUTH, {"iops": 12.500001})) == []
    assert list(unlike_verdicts("iops", TRUTH, {"iops": 12.1})) == []


@pytest.mark.parametrize("provider", [{}, {"iops": 12.51}, {"iops": 12.5, "bandwidth": 0.1}])
def test_each_difference_from_the_target_is_found(provider: dict[str, float]) -> None:
    assert len(list(unlike_truth(TRUTH, provider))) == 1


@pytest.mark.parametrize(
    "throttled", [{"iops": 11.0}, {"iops": 14.0}, {"iops": 12.5, "unknown": 1.0}]
)
def test_each_difference_of_the_verdicts_is_found(throttled: dict[str, float]) -> None:
    assert len(list(unlike_verdicts("iops", TRUTH, throttled))) == 1


def test_each_limit_has_a_load() -> None:
    assert {load.limit for load in loads(Random(1))} == set(LIMITS)
