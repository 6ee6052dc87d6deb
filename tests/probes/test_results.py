"""Results of probes, and quantiles of their latencies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.settings import ProbeEntry, ProbeKind
from disksla.fio.result import DirectionResult, FioResult, LatencyBin
from disksla.limits.limits import NO_LIMITS
from disksla.pipeline.probe_results import Skip, quantile_s
from disksla.probes.probe_plan import failed_result, measured_result, plan_probe, skipped_result
from disksla.units import MIB

BINS = (LatencyBin(0.001, 90), LatencyBin(0.002, 9), LatencyBin(0.5, 1))
DONE = DirectionResult(100, 409_600, 5.0, 20.0, 81_920.0, 0.0066, BINS)
NONE = DirectionResult(0, 0, 5.0, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("read-latency", FioResult("3.33", DONE, NONE)),
        ("write-latency", FioResult("3.33", NONE, DONE)),
    ],
)
def test_result_is_that_of_the_direction(kind: ProbeKind, result: FioResult) -> None:
    plan = plan_probe(ProbeEntry(kind=kind), "vda", NO_LIMITS)
    probe = measured_result(plan, result, 1.7e9, 5.4)
    assert probe.is_success
    assert (probe.device, probe.kind) == ("vda", kind)
    assert (probe.target_iops, probe.achieved_iops) == (20.0, 20.0)
    assert probe.requests == 100
    assert probe.transferred_bytes == probe.spent_bytes == 409_600 + plan.file_bytes
    assert plan.file_bytes == (0 if kind == "read-latency" else MIB)
    assert probe.bins == BINS


def test_run_without_completed_requests_failed() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    probe = measured_result(plan, FioResult("3.33", NONE, DONE), 1.7e9, 5.4)
    assert (probe.failure, probe.message) == ("error", "fio completed no request")


def test_failure_counts_all_its_bytes() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    probe = failed_result(plan, "timeout", "ended after 15 s", 1.7e9, 15.0)
    assert not probe.is_success
    assert probe.spent_bytes == plan.most_bytes
    assert probe.transferred_bytes == 0


def test_skip_counts_no_bytes() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    probe = skipped_result(plan, Skip("busy", "the load is 85%"), 1.7e9)
    assert not probe.is_success
    assert (probe.skipped, probe.message, probe.spent_bytes) == ("busy", "the load is 85%", 0)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.0, 0.001), (0.5, 0.001), (0.9, 0.001), (0.99, 0.002), (1.0, 0.5)]
)
def test_quantiles(share: float, seconds: float) -> None:
    assert quantile_s(BINS, share) == seconds


def test_quantile_of_nothing_is_none() -> None:
    assert quantile_s((), 0.5) is None
    assert quantile_s((LatencyBin(0.1, 0),), 0.5) is None


@given(st.lists(st.floats(1e-6, 10), min_size=1), st.floats(0, 1))
def test_quantile_divides_the_requests(latencies: list[float], share: float) -> None:
    bins = tuple(LatencyBin(latency, 1) for latency in sorted(latencies))
    found = quantile_s(bins, share)
    assert found is not None
    below = sum(latency <= found for latency in latencies)
    assert below >= share * len(latencies)
    assert sum(latency < found for latency in latencies) < max(share * len(latencies), 1e-12) or (
        found == min(latencies)
    )
