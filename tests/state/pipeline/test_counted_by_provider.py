"""Verdicts on a disk behind a limiter that counts its own throttled time, through `advance`."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import KIB, MIB
from disksla.clouds.ebs_statistics.reading import Reading
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick, decode_tick, encode
from disksla.state.provider_count import MOST_OVER_S
from disksla.verdict.throttling.throttle import LIMIT_KINDS
from disksla.verdict.throttling.verdict import VERDICTS
from support.examples import halved
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, ORIGIN_S, Closed, Limiter, Run, Scenario, run, summed
from support.simulated_pages import readings, with_readings

AFTER_S = 3.0
"""Time without a load at the end of each run, in which everything that waits is decided."""
MOST_LATE_S = 2.0


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


def read(scenario: Scenario, simulated: Run, apart_s: float, **options: object) -> list[Tick]:
    """Return the ticks of a run, with the page read so many seconds apart."""
    messages = readings(simulated.truth, seconds_apart(scenario, apart_s), **options)  # type: ignore[arg-type]
    return with_readings(simulated.ticks, messages)


def without_count(ticks: list[Tick]) -> list[Tick]:
    """Return the ticks with pages that say that no limit was ever exceeded."""

    def page(reading: Reading) -> Reading:
        statistics = msgspec.structs.replace(
            reading.statistics, exceeded_us=dict.fromkeys(reading.statistics.exceeded_us, 0)
        )
        return msgspec.structs.replace(reading, statistics=statistics)

    return [
        msgspec.structs.replace(
            tick, provider=tuple(page(each) for each in tick.provider if isinstance(each, Reading))
        )
        for tick in ticks
    ]


def states(scenario: Scenario, ticks: list[Tick]) -> list[DiskState]:
    state = State(Configuration(scenario.settings(), CATALOG))
    found = []
    for tick in ticks:
        state = advance(state, tick)
        found.append(state.monitored[DEVICE])
    return found


def last_of(scenario: Scenario, ticks: list[Tick]) -> DiskState:
    return states(scenario, ticks)[-1]


def seconds(disk_state: DiskState) -> dict[str, float]:
    """Return the seconds by verdict."""
    return dict(zip(VERDICTS, disk_state.totals.verdict_totals.seconds, strict=True))


def throttled_s(disk_state: DiskState) -> dict[str, float]:
    """Return the throttled seconds by limit, without those that have none."""
    totals = zip(LIMIT_KINDS, disk_state.totals.verdict_totals.throttled_s, strict=True)
    return {limit: s for limit, s in totals if s}


def counted_s(disk_state: DiskState) -> dict[str, float]:
    """Return what the page counted since the first reading, without limits that have none."""
    assert disk_state.provider is not None
    return {limit: us / 1e6 for limit, us in disk_state.provider.throttled_us.items() if us}


def test_page_of_another_volume_says_nothing_of_a_disk() -> None:
    scenario = a_scenario(iops=300)
    simulated = run(scenario)
    disk_state = last_of(scenario, simulated.ticks)
    own = msgspec.structs.replace(
        disk_state, disk=msgspec.structs.replace(disk_state.disk, serial="vol1")
    )
    [page] = readings(simulated.truth, [ORIGIN_S + 0.4])
    other = msgspec.structs.replace(page, serial="vol2")
    assert own.with_provider([other], 1.0) is own
    assert own.with_provider([msgspec.structs.replace(page, serial="vol1")], 1.0).provider


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
def test_limit_and_seconds_are_those_of_the_page(truth: str, page: str, apart_s: float) -> None:
    rates: dict[str, float] = {truth: 500.0 if truth == "iops" else 20 * MIB}
    scenario = a_scenario(**rates, terms=None)
    disk_state = last_of(scenario, read(scenario, run(scenario), apart_s, limits={truth: page}))
    assert counted_s(disk_state)[page] > 5
    assert throttled_s(disk_state) == pytest.approx(counted_s(disk_state), abs=MOST_OVER_S)


def test_limits_of_one_time_have_what_was_counted() -> None:
    scenario = a_scenario(iops=500.0)
    ticks = read(scenario, run(scenario), 1.0)

    def page(reading: Reading) -> Reading:
        us = reading.statistics.exceeded_us["iops"]
        shared = {**reading.statistics.exceeded_us, "iops": 3 * us // 4, "machine_iops": us // 4}
        statistics = msgspec.structs.replace(reading.statistics, exceeded_us=shared)
        return msgspec.structs.replace(reading, statistics=statistics)

    ticks = [
        msgspec.structs.replace(
            tick, provider=tuple(page(each) for each in tick.provider if isinstance(each, Reading))
        )
        for tick in ticks
    ]
    disk_state = last_of(scenario, ticks)
    assert throttled_s(disk_state) == pytest.approx(counted_s(disk_state), abs=0.5)


@pytest.mark.parametrize("name", ["iops-300-deep", "below-60-of-100", "below-600-lowered"])
def test_page_that_counts_nothing_is_right(name: str) -> None:
    """What the signs would call throttled is as if no limiter was seen."""
    scenario = SCENARIOS[name]
    simulated = run(scenario)
    before = seconds(last_of(scenario, simulated.ticks))
    after = last_of(scenario, without_count(read(scenario, simulated, 1.0)))
    # The first second has no reading before it, so the signs decide.
    assert sum(throttled_s(after).values()) <= 1.0
    known = before["below"] if name != "iops-300-deep" else before["throttled"]
    assert seconds(after)["met" if name == "iops-300-deep" else "below"] >= known - 2.0


def test_unknown_limiter_that_is_none_leaves_a_disk_below_its_promise() -> None:
    """Deep queues are served at less than the promise: without a limiter, too, that is below."""
    scenario = a_scenario(iops=100.0, terms=SumTerms(iops=1000.0))
    scenario = replace(scenario, loads=(Closed(depth=64, active=((2.0, 8.0),)),))
    simulated = run(scenario)
    disk_state = last_of(scenario, without_count(read(scenario, simulated, 0.1)))
    assert throttled_s(disk_state) == {}
    assert seconds(disk_state)["below"] > 4


def test_below_the_promise_is_of_the_machine_where_the_page_counts_its_limit() -> None:
    """Half of the promise is not the volume's fault, if the instance gives no more."""
    scenario = SCENARIOS["below-60-of-100"]
    simulated = run(scenario)
    without = last_of(scenario, simulated.ticks)
    assert seconds(without)["below"] > 3
    disk_state = last_of(scenario, read(scenario, simulated, 0.1, limits={"iops": "machine_iops"}))
    assert seconds(disk_state)["below"] < 0.4
    assert set(throttled_s(disk_state)) == {"machine_iops"}
    wait_s = without.totals.verdict_totals.wait_s
    assert disk_state.totals.verdict_totals.wait_s > wait_s


@pytest.mark.parametrize("apart_s", [1.4, 4.0])
def test_signs_decide_between_readings_that_are_far_apart(apart_s: float) -> None:
    scenario = a_scenario(iops=500.0)
    simulated = run(scenario)
    without = last_of(scenario, simulated.ticks)
    disk_state = last_of(scenario, read(scenario, simulated, apart_s))
    assert throttled_s(disk_state) == throttled_s(without)
    assert seconds(disk_state) == {**seconds(without), "idle": seconds(disk_state)["idle"]}


def test_signs_decide_when_the_page_is_not_read_any_more() -> None:
    scenario = a_scenario(iops=500.0)
    simulated = run(scenario)
    ticks = read(scenario, simulated, 0.1, limits={"iops": "machine_iops"})
    ticks = [
        msgspec.structs.replace(tick, provider=())
        if tick.clocks.monotonic_s > ORIGIN_S + 5
        else tick
        for tick in ticks
    ]
    found = throttled_s(last_of(scenario, ticks))
    assert found["machine_iops"] == pytest.approx(3.0, abs=0.3)
    assert found["unknown"] == pytest.approx(3.0, abs=0.3)


def test_recording_has_the_readings() -> None:
    scenario = a_scenario(iops=500.0)
    ticks = read(scenario, run(scenario), 1.0)
    replayed = [decode_tick(encode(tick), 1) for tick in ticks]
    assert last_of(scenario, replayed) == last_of(scenario, ticks)


def test_seconds_at_the_burst_rate() -> None:
    scenario = replace(
        a_scenario(iops=500.0),
        limiter=Limiter(buckets=summed(500.0, peak_per_second=1500.0, capacity=3000.0)),
        terms=SumTerms(iops=500.0, burst=SumBurst(iops=1500.0, iops_credits=3000.0)),
    )
    simulated = run(scenario)
    own_burst_s = last_of(scenario, simulated.ticks).totals.verdict_totals.burst_s
    disk_state = last_of(scenario, read(scenario, simulated, 1.0))
    assert own_burst_s > 2
    assert disk_state.totals.verdict_totals.burst_s == pytest.approx(own_burst_s, abs=0.5)


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
    scenario = Scenario(
        loads=(Closed(depth=depth, active=tuple((at_s, at_s + 0.8) for at_s in begins)),),
        limiter=Limiter(buckets=summed(float(iops))),
        seconds=9.0 + AFTER_S,
        sampler_phase_s=phase_s,
        seed=seed,
    )
    simulated: Run = run(scenario)
    reset_at_s = float("inf") if reset_s is None else ORIGIN_S + reset_s
    messages = readings(
        simulated.truth, seconds_apart(scenario, apart_s, seed), reset_at_s=reset_at_s
    )
    ticks = with_readings(simulated.ticks, messages)
    if late_at is not None:  # the sampler is stopped for a second: a gap
        waiting = sum((tick.provider for tick in ticks[late_at : late_at + 10]), ())
        after = ticks[late_at + 10]
        ticks[late_at : late_at + 11] = [
            msgspec.structs.replace(after, provider=(*waiting, *after.provider))
        ]
    found = states(scenario, ticks)
    for before, now in pairwise(found):
        for earlier_s, now_s in zip(
            before.totals.verdict_totals.throttled_s,
            now.totals.verdict_totals.throttled_s,
            strict=True,
        ):
            assert earlier_s <= now_s
    for tick, now in zip(ticks, found, strict=True):
        undecided = now.totals.undecided.windows
        assessed_s = sum(seconds(now).values()) + sum(each.seconds for each in undecided)
        assert assessed_s == pytest.approx(now.totals.complete_to.seconds)
        assert not undecided or tick.clocks.monotonic_s - undecided[0].end_s < MOST_LATE_S
    last = found[-1]
    assert not last.totals.undecided.windows
    by_page_s = counted_s(last).get("iops", 0.0)
    by_signs_s = sum(throttled_s(last).values())
    assert set(throttled_s(last)) <= {"iops", "unknown"}
    if late_at is None and reset_s is None:
        assert by_signs_s <= by_page_s + 1e-6
        assert by_signs_s >= by_page_s - MOST_OVER_S * len(begins)
