"""What probes come to, turn by turn."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.fio.result import LatencyBin
from disksla.pipeline.probe_results import FAILURE_REASONS, SKIP_REASONS, ProbeResult, ProbeTotals

DAY_S = 86400.0

bins = st.lists(st.builds(LatencyBin, st.floats(1e-6, 10), st.integers(1, 1000)), max_size=5).map(
    tuple
)
outcomes = st.one_of(
    st.builds(
        ProbeResult,
        device=st.just("vda"),
        kind=st.just("read-latency"),
        timestamp_s=st.floats(0, 2e9),
        skipped=st.sampled_from(SKIP_REASONS),
    ),
    st.builds(
        ProbeResult,
        device=st.just("vda"),
        kind=st.just("read-latency"),
        timestamp_s=st.floats(0, 2e9),
        failure=st.none() | st.sampled_from(FAILURE_REASONS),
        requests=st.integers(0, 1000),
        transferred_bytes=st.integers(0, 10**7),
        spent_bytes=st.integers(0, 10**7),
        bins=bins,
    ),
)


def kept(*told: ProbeResult) -> ProbeTotals:
    ledger = ProbeTotals()
    for outcome in told:
        ledger = ledger.plus(outcome)
    return ledger


@given(st.lists(outcomes, max_size=20))
def test_everything_is_counted_once(told: list[ProbeResult]) -> None:
    ledger = kept(*told)
    runs = [outcome for outcome in told if outcome.skipped is None]
    assert ledger.runs == len(runs)
    assert sum(ledger.skips.values()) == len(told) - len(runs)
    assert sum(ledger.failures.values()) == sum(outcome.failure is not None for outcome in runs)
    assert ledger.requests == sum(outcome.requests for outcome in runs)
    assert ledger.transferred_bytes == sum(outcome.transferred_bytes for outcome in runs)
    assert ledger.latency_s.count == sum(each.requests for run in runs for each in run.bins)
    assert ledger.is_used == bool(told)
    assert ledger.skips.keys() == set(SKIP_REASONS)
    assert ledger.failures.keys() == set(FAILURE_REASONS)


@given(st.lists(outcomes, max_size=20), outcomes)
def test_a_skip_says_nothing_of_the_last_run(told: list[ProbeResult], last: ProbeResult) -> None:
    before, after = kept(*told), kept(*told, last)
    if last.skipped is not None:
        assert after.last == before.last
    else:
        assert after.last is not None
        assert after.last.timestamp_s == last.timestamp_s
        assert after.last.bins == ()


def spent(timestamp_s: float, amount: int) -> ProbeResult:
    return ProbeResult(
        device="vda", kind="read-latency", timestamp_s=timestamp_s, spent_bytes=amount
    )


def test_the_allowance_is_that_of_one_day() -> None:
    ledger = kept(spent(DAY_S - 2, 100), spent(DAY_S - 1, 50))
    assert ledger.spent_bytes(DAY_S - 0.5) == 150
    assert ledger.spent_bytes(DAY_S) == 0
    later = ledger.plus(spent(DAY_S + 1, 7))
    assert later.spent_bytes(DAY_S + 2) == 7


@given(st.lists(outcomes, max_size=20), st.floats(0, 2e9))
def test_a_turn_is_one_that_ran_or_waits_for_something_that_passes(
    told: list[ProbeResult], asked_s: float
) -> None:
    ledger = ProbeTotals().with_configured(asked_s)
    assert ledger.last_attempt_s == asked_s
    for outcome in told:
        before, ledger = ledger, ledger.plus(outcome)
        stands = outcome.skipped in {
            "device_missing",
            "not_sampled",
            "limit_too_low",
            "no_file_system",
        }
        assert ledger.last_attempt_s == (before.last_attempt_s if stands else outcome.timestamp_s)
    assert ledger.with_configured(asked_s + 1) == ledger
    assert ledger.with_configured(None).last_attempt_s is None


@given(outcomes)
def test_what_nobody_asks_for_has_no_turns(late: ProbeResult) -> None:
    assert ProbeTotals().plus(late).last_attempt_s is None
