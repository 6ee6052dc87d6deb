"""Totals of probe results."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.base.histogram import LatencyBin
from disksla.state.pipeline.probe_results import (
    FAILURE_REASONS,
    SKIP_REASONS,
    ProbeResult,
    ProbeTotals,
)
from support.any_records import Kinds, records

DAY_S = 86400.0

KINDS: Kinds = {float: st.floats(0, 2e9), int: st.integers(0, 10**7)}
OF_VDA = {"device": st.just("vda"), "kind": st.just("read-latency")}
bins = st.lists(st.builds(LatencyBin, st.floats(1e-6, 10), st.integers(1, 1000)), max_size=5)
results = records(
    ProbeResult, KINDS, "timestamp_s", skipped=st.sampled_from(SKIP_REASONS), **OF_VDA
) | records(
    ProbeResult,
    KINDS,
    "timestamp_s requests transferred_bytes spent_bytes",
    failure=st.none() | st.sampled_from(FAILURE_REASONS),
    bins=bins.map(tuple),
    **OF_VDA,
)


def totals_of(*added: ProbeResult) -> ProbeTotals:
    totals = ProbeTotals()
    for result in added:
        totals = totals.plus(result)
    return totals


@given(st.lists(results, max_size=20))
def test_each_result_is_counted_once(added: list[ProbeResult]) -> None:
    totals = totals_of(*added)
    runs = [result for result in added if result.skipped is None]
    assert totals.runs == len(runs)
    assert sum(totals.skips.values()) == len(added) - len(runs)
    assert sum(totals.failures.values()) == sum(result.failure is not None for result in runs)
    assert totals.requests == sum(result.requests for result in runs)
    assert totals.transferred_bytes == sum(result.transferred_bytes for result in runs)
    assert totals.latency_s.count == sum(each.requests for run in runs for each in run.bins)
    assert totals.is_used == bool(added)
    assert totals.skips.keys() == set(SKIP_REASONS)
    assert totals.failures.keys() == set(FAILURE_REASONS)


@given(st.lists(results, max_size=20), results)
def test_skip_keeps_the_last_run(added: list[ProbeResult], last: ProbeResult) -> None:
    before, after = totals_of(*added), totals_of(*added, last)
    if last.skipped is not None:
        assert after.last == before.last
    else:
        assert after.last is not None
        assert after.last.timestamp_s == last.timestamp_s
        assert after.last.bins == ()


def spent(timestamp_s: float, nbytes: int) -> ProbeResult:
    return ProbeResult(
        device="vda", kind="read-latency", timestamp_s=timestamp_s, spent_bytes=nbytes
    )


def test_spent_bytes_are_of_one_day() -> None:
    totals = totals_of(spent(DAY_S - 2, 100), spent(DAY_S - 1, 50))
    assert totals.spent_bytes(DAY_S - 0.5) == 150
    assert totals.spent_bytes(DAY_S) == 0
    later = totals.plus(spent(DAY_S + 1, 7))
    assert later.spent_bytes(DAY_S + 2) == 7


@given(st.lists(results, max_size=20), st.floats(0, 2e9))
def test_attempt_is_a_run_or_a_temporary_skip(
    added: list[ProbeResult], configured_s: float
) -> None:
    totals = ProbeTotals().with_configured(configured_s)
    assert totals.last_attempt_s == configured_s
    for result in added:
        before, totals = totals, totals.plus(result)
        is_permanent = result.skipped in {
            "device_missing",
            "not_sampled",
            "limit_too_low",
            "no_file_system",
        }
        assert totals.last_attempt_s == (
            before.last_attempt_s if is_permanent else result.timestamp_s
        )
    assert totals.with_configured(configured_s + 1) == totals
    assert totals.with_configured(None).last_attempt_s is None


@given(results)
def test_unconfigured_probe_has_no_attempts(late: ProbeResult) -> None:
    assert ProbeTotals().plus(late).last_attempt_s is None
