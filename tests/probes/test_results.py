"""How a probe went, and what its latencies come to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.settings import ProbeEntry, ProbeKind
from disksla.fio.result import DirectionResult, FioResult, LatencyBin
from disksla.limits.limits import NO_LIMITS
from disksla.pipeline.probe_results import Skip, quantile_s
from disksla.probes.plan import failed_result, measured_result, plan_probe, skipped_result
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
def test_a_run_is_told_by_the_direction_of_its_kind(kind: ProbeKind, result: FioResult) -> None:
    plan = plan_probe(ProbeEntry(kind=kind), "vda", NO_LIMITS)
    outcome = measured_result(plan, result, 1.7e9, 5.4)
    assert outcome.is_success
    assert (outcome.device, outcome.kind) == ("vda", kind)
    assert (outcome.target_iops, outcome.achieved_iops) == (20.0, 20.0)
    assert outcome.requests == 100
    assert outcome.transferred_bytes == outcome.spent_bytes == 409_600 + plan.file_bytes
    assert plan.file_bytes == (0 if kind == "read-latency" else MIB)
    assert outcome.bins == BINS


def test_a_run_in_which_nothing_completed_has_failed() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    outcome = measured_result(plan, FioResult("3.33", NONE, DONE), 1.7e9, 5.4)
    assert (outcome.failure, outcome.message) == ("error", "fio completed no request")


def test_a_failure_costs_all_that_it_may_have_used() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    outcome = failed_result(plan, "timeout", "ended after 15 s", 1.7e9, 15.0)
    assert not outcome.is_success
    assert outcome.spent_bytes == plan.most_bytes
    assert outcome.transferred_bytes == 0


def test_a_skip_costs_nothing() -> None:
    plan = plan_probe(ProbeEntry(kind="read-latency"), "vda", NO_LIMITS)
    outcome = skipped_result(plan, Skip("busy", "85% is in use"), 1.7e9)
    assert not outcome.is_success
    assert (outcome.skipped, outcome.message, outcome.spent_bytes) == ("busy", "85% is in use", 0)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.0, 0.001), (0.5, 0.001), (0.9, 0.001), (0.99, 0.002), (1.0, 0.5)]
)
def test_quantiles(share: float, seconds: float) -> None:
    assert quantile_s(BINS, share) == seconds


def test_nothing_has_no_quantile() -> None:
    assert quantile_s((), 0.5) is None
    assert quantile_s((LatencyBin(0.1, 0),), 0.5) is None


@given(st.lists(st.floats(1e-6, 10), min_size=1), st.floats(0, 1))
def test_a_quantile_parts_the_requests(latencies: list[float], share: float) -> None:
    bins = tuple(LatencyBin(latency, 1) for latency in sorted(latencies))
    found = quantile_s(bins, share)
    assert found is not None
    below = sum(latency <= found for latency in latencies)
    assert below >= share * len(latencies)
    assert sum(latency < found for latency in latencies) < max(share * len(latencies), 1e-12) or (
        found == min(latencies)
    )
