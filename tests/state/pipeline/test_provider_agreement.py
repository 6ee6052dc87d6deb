"""Verdicts of a disk behind a limiter that counts its own throttled time, through `advance`."""

from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import KIB, MIB
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.state.history import History
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.recording import decode_tick, encode
from disksla.state.pipeline.snapshot import DiskSnapshot, disk_snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from disksla.state.provider_count.agreement import NOT_THROTTLED
from disksla.state.provider_count.comparison import Comparison
from disksla.tell.explanation import HistoryView
from disksla.verdict.throttling.throttle import LIMIT_KINDS
from disksla.verdict.throttling.verdict import VERDICTS
from support.examples import halved
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, ORIGIN_S, Closed, Limiter, Run, Scenario, run, summed
from support.simulated_pages import exceeded_s, readings, with_readings

AFTER_S = 6.0
"""Time without a load at the end of each run, in which everything that waits is decided."""


def a_scenario(
    iops: float | None = None, bandwidth: float | None = None, **options: object
) -> Scenario:
    size = 64 * KIB if bandwidth else 4 * KIB
    load = Closed(depth=16, read_bytes=size, active=((2.0, 8.0),))
    limiter = Limiter(buckets=summed(iops, bandwidth))
    return Scenario(loads=(load,), limiter=limiter, seconds=8.0 + AFTER_S, **options)  # type: ignore[arg-type]


def seconds_apart(scenario: Scenario, apart_s: float, seed: int = 1) -> list[float]:
    """Return times at which the page is read, with the jitter of a process that sleeps."""
    random, times_s = Random(seed), [ORIGIN_S + 0.4]
    while times_s[-1] < ORIGIN_S + scenario.seconds - 0.2:
        times_s.append(times_s[-1] + apart_s * random.uniform(0.99, 1.02))
    return times_s[:-1]


def states(scenario: Scenario, ticks: list[Tick]) -> list[State]:
    state = State(Configuration(scenario.settings(), CATALOG))
    found = []
    for tick in ticks:
        state = advance(state, tick)
        found.append(state)
    return found


def last_of(scenario: Scenario, ticks: list[Tick]) -> DiskState:
    return states(scenario, ticks)[-1].monitored[DEVICE]


def comparison_of(disk_state: DiskState) -> Comparison:
    assert disk_state.comparison is not None
    return disk_state.comparison


def named(disk_state: DiskState) -> dict[str, float]:
    return {limit: s for limit, s in zip(LIMIT_KINDS, disk_state.throttled_s, strict=True) if s}


def own_s(disk_state: DiskState) -> float:
    return sum(disk_state.totals.verdict_totals.throttled_s)


def both_s(disk_state: DiskState) -> float:
    by_pair = comparison_of(disk_state).agreement.by_pair()
    return sum(s for pair, s in by_pair.items() if NOT_THROTTLED not in pair)


@pytest.mark.parametrize("apart_s", [1.0, 0.1])
@pytest.mark.parametrize(
    ("truth", "page"),
    [
        ("iops", "iops"),
        ("iops", "machine_iops"),
        ("bandwidth", "bandwidth"),
        ("bandwidth", "machine_bandwidth"),
    ],
)
def test_limit_is_the_one_that_the_page_counts(truth: str, page: str, apart_s: float) -> None:
    rates: dict[str, float] = {truth: 500.0 if truth == "iops" else 20 * MIB}
    scenario = a_scenario(**rates, terms=None)
    simulated = run(scenario)
    messages = readings(simulated.truth, seconds_apart(scenario, apart_s), limits={truth: page})
    disk_state = last_of(scenario, with_readings(simulated.ticks, messages))
    assert own_s(disk_state) > 5
    assert sum(named(disk_state).values()) == pytest.approx(own_s(disk_state))
    assert named(disk_state)[page] >= 0.99 * own_s(disk_state)
    assert both_s(disk_state) > 0.9 * sum(exceeded_s(simulated.truth, 1e9).values())


def test_without_a_page_the_limit_is_that_of_the_verdict() -> None:
    scenario = a_scenario(iops=500.0)
    disk_state = last_of(scenario, run(scenario).ticks)
    assert disk_state.comparison is None
    assert named(disk_state) == {"unknown": own_s(disk_state)}


@pytest.mark.parametrize("name", ["iops-300-deep", "bandwidth-25", "iops-300-bursts", "steady-90"])
def test_verdicts_are_the_same_with_a_page(name: str) -> None:
    """Only the name of the limit is the provider's: what throttles, and for how long, is not."""
    scenario = SCENARIOS[name]
    simulated = run(scenario)
    messages = readings(simulated.truth, seconds_apart(scenario, 1.0))
    [*_, before] = states(scenario, simulated.ticks)
    [*_, after] = states(scenario, with_readings(simulated.ticks, messages))
    was, now = disk_snapshot(before, DEVICE), disk_snapshot(after, DEVICE)
    assert was is not None
    assert now is not None
    assert now.verdict_totals.seconds == pytest.approx(was.verdict_totals.seconds)
    assert now.verdict_totals.wait_s == was.verdict_totals.wait_s
    assert now.ceiling == was.ceiling


def test_limit_that_the_provider_does_not_name_yet_is_not_said_to_be_unknown() -> None:
    scenario = SCENARIOS["iops-300-deep"]
    simulated = run(scenario)
    messages = readings(simulated.truth, seconds_apart(scenario, 1.0))
    history, said = History(), set()
    for state in states(scenario, with_readings(simulated.ticks, messages)):
        history, snapshot = history.after(state), disk_snapshot(state, DEVICE)
        assert snapshot is not None
        said.add(HistoryView(history).condition(snapshot))
    assert said <= {None, "idle", "ok", "your_limit"}
    assert "your_limit" in said


@pytest.mark.parametrize("page", ["iops", "machine_iops"])
@pytest.mark.parametrize("name", ["below-60-of-100"])
def test_below_the_promise_is_of_the_machine_where_the_page_counts_its_limit(
    name: str, page: str
) -> None:
    """Half of the promise is not the volume's fault, if the instance gives no more."""
    scenario = SCENARIOS[name]
    simulated = run(scenario)
    without = last_of(scenario, simulated.ticks)
    below_s = without.totals.verdict_totals.seconds[VERDICTS.index("below")]
    assert below_s > 3
    messages = readings(simulated.truth, seconds_apart(scenario, 0.1), limits={"iops": page})
    ticks = with_readings(simulated.ticks, messages)
    disk_state = last_of(scenario, ticks)
    now_s = dict(zip(VERDICTS, disk_state.totals.verdict_totals.seconds, strict=True))
    assert both_s(disk_state) == 0  # the own answer is that it is not throttled
    if page == "iops":
        assert now_s["below"] == pytest.approx(below_s)
        return
    assert now_s["below"] < 0.4
    assert now_s["throttled"] == pytest.approx(below_s, rel=0.1)
    waiting_s = sum(each.throttled_s for each in comparison_of(disk_state).windows)
    assert named(disk_state).get("machine_iops", 0.0) + waiting_s == pytest.approx(
        now_s["throttled"]
    )
    assert disk_state.totals.verdict_totals.wait_s > without.totals.verdict_totals.wait_s


def test_rest_of_a_throttled_window_is_not_below_either() -> None:
    """The volume is throttled as promised first, and then the instance gives less."""
    scenario = SCENARIOS["below-600-lowered"]
    simulated = run(scenario)
    times_s = seconds_apart(scenario, 0.1)
    messages = readings(simulated.truth, times_s, limits={"iops": "machine_iops"})
    disk_state = last_of(scenario, with_readings(simulated.ticks, messages))
    assert disk_state.totals.verdict_totals.seconds[VERDICTS.index("below")] == 0
    assert set(named(disk_state)) == {"machine_iops"}


def test_recording_has_the_readings() -> None:
    scenario = a_scenario(iops=500.0)
    simulated = run(scenario)
    messages = readings(simulated.truth, seconds_apart(scenario, 1.0))
    ticks = with_readings(simulated.ticks, messages)
    replayed = [decode_tick(encode(tick), 1) for tick in ticks]
    assert last_of(scenario, replayed) == last_of(scenario, ticks)


def test_snapshot_names_the_limit_of_the_page() -> None:
    scenario = a_scenario(iops=500.0)
    simulated = run(scenario)
    messages = readings(
        simulated.truth, seconds_apart(scenario, 1.0), limits={"iops": "machine_iops"}
    )
    found: list[DiskSnapshot] = []
    for state in states(scenario, with_readings(simulated.ticks, messages)):
        snapshot = disk_snapshot(state, DEVICE)
        assert snapshot is not None
        found.append(snapshot)
    throttled = [each for each in found if each.throttle is not None]
    limits = {each.throttle.limit for each in throttled if each.throttle is not None}
    assert limits == {"machine_iops"}
    assert found[0].agreement is None
    assert found[-1].agreement is not None
    totals = found[-1].verdict_totals.throttled_s
    assert totals[LIMIT_KINDS.index("machine_iops")] == sum(totals)


def test_seconds_at_the_burst_rate_wait_with_the_others() -> None:
    scenario = replace(
        a_scenario(iops=500.0),
        limiter=Limiter(buckets=summed(500.0, peak_per_second=1500.0, capacity=3000.0)),
        terms=SumTerms(iops=500.0, burst=SumBurst(iops=1500.0, iops_credits=3000.0)),
    )
    simulated = run(scenario)
    messages = readings(simulated.truth, seconds_apart(scenario, 1.0))
    disk_state = last_of(scenario, with_readings(simulated.ticks, messages))
    own_burst_s = disk_state.totals.verdict_totals.burst_s
    assert 2 < own_burst_s < own_s(disk_state) - 2
    assert disk_state.burst_s == pytest.approx(own_burst_s)


@halved()
@given(
    iops=st.integers(50, 5000),
    depth=st.integers(1, 32),
    phase_s=st.floats(0.0, 0.099),
    apart_s=st.sampled_from((0.1, 0.3, 1.0)),
    begins=st.lists(st.floats(0.5, 7.0), min_size=1, max_size=3, unique=True).map(sorted),
    reset_s=st.one_of(st.none(), st.floats(1.0, 9.0)),
    late_at=st.one_of(st.none(), st.integers(20, 90)),
    seed=st.integers(0, 99),
)
def test_sums_of_random_loads(
    iops: int,
    depth: int,
    phase_s: float,
    apart_s: float,
    begins: list[float],
    reset_s: float | None,
    late_at: int | None,
    seed: int,
) -> None:
    active = tuple((begin_s, begin_s + 0.8) for begin_s in begins)
    scenario = Scenario(
        loads=(Closed(depth=depth, active=active),),
        limiter=Limiter(buckets=summed(float(iops))),
        seconds=9.0 + AFTER_S,
        sampler_phase_s=phase_s,
        seed=seed,
    )
    simulated: Run = run(scenario)
    times_s = seconds_apart(scenario, apart_s, seed)
    reset_at_s = float("inf") if reset_s is None else ORIGIN_S + reset_s
    messages = readings(simulated.truth, times_s, reset_at_s=reset_at_s)
    ticks = with_readings(simulated.ticks, messages)
    if late_at is not None:  # the sampler is stopped for a second: a gap
        waiting = sum((tick.provider for tick in ticks[late_at : late_at + 10]), ())
        after = ticks[late_at + 10]
        ticks[late_at : late_at + 11] = [
            msgspec.structs.replace(after, provider=(*waiting, *after.provider))
        ]
    before: DiskState | None = None
    for state in states(scenario, ticks):
        disk_state = state.monitored[DEVICE]
        if before is not None:
            for earlier_s, now_s in zip(before.throttled_s, disk_state.throttled_s, strict=True):
                assert earlier_s <= now_s
        before = disk_state
    assert before is not None
    comparison = comparison_of(before)
    assert not comparison.windows
    assert sum(before.throttled_s) == pytest.approx(own_s(before), abs=1e-6)
    compared_s = sum(comparison.agreement.seconds)
    assert comparison.last is not None
    covered_s = comparison.last.end_s - times_s[0]
    missing_s = (2.1 if reset_s is not None else 0) + (4.1 if late_at is not None else 0)
    assert covered_s - missing_s - 1e-6 <= compared_s <= covered_s + 1e-6
