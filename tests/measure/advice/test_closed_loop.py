"""What higher limits would serve of a closed loop: laws, and simulated disks under both limits."""

import math
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.measure.advice.closed_loop import ClosedLoop, ThrottledTime, closed_loop_of
from disksla.measure.advice.demand import demand_of, served_of
from disksla.measure.advice.search import Needs, counts_small_requests_as, halving
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.state.pipeline import State, advance, window_records
from support.simulated_host import CATALOG
from support.simulated_limiter import Closed, Limiter, Load, Open, Scenario, run, summed

LOOP = ClosedLoop(served_iops=250, inflight=8, service_s=0.001)
LOOPS = st.builds(ClosedLoop, st.floats(1, 1e5), st.floats(0.1, 256), st.just(0.0)) | st.builds(
    lambda iops, inflight, share: ClosedLoop(iops, inflight, share * inflight / iops),
    st.floats(1, 1e5),
    st.floats(0.1, 256),
    st.floats(0.001, 1),
)
LIMITS = st.floats(1, 1e6)


def test_each_step_halves_the_waiting_until_nothing_waits() -> None:
    steps = list(LOOP.steps())
    assert steps == [250, 500, 1000, 2000, 4000]
    assert [LOOP.waits_s(iops) for iops in steps] == pytest.approx(
        [0.031, 0.015, 0.007, 0.003, 1e-3]
    )
    assert list(LOOP._replace(inflight=0.6).steps()) == [250, 500, 1000]


def test_no_more_is_served_than_the_disk_can() -> None:
    assert LOOP.served(4000) == (250, 4000)
    assert LOOP.served(80000) == (250, 8000)
    assert LOOP.served(100) == (100, 100)


@given(LOOPS, LIMITS, LIMITS)
def test_a_higher_limit_serves_no_less_and_makes_wait_no_longer(
    loop: ClosedLoop, iops: float, other: float
) -> None:
    low, high = sorted((iops, other))
    assert loop.served(low).least <= loop.served(high).least
    assert loop.served(low).most <= loop.served(high).most
    assert loop.served(low).least <= loop.served(low).most <= low
    assert loop.waits_s(low) >= loop.waits_s(high)


@given(LOOPS)
def test_twice_the_limit_halves_the_waiting(loop: ClosedLoop) -> None:
    assert loop.is_halved(2.0001 * loop.served_iops)
    assert loop.is_halved(loop.served_iops) == (loop.waits_s(loop.served_iops) == 0)


def times(*inflight: float) -> list[ThrottledTime]:
    return [ThrottledTime(1, 100, 130, each) for each in inflight]


def test_data_writes_between_two_bounds_are_those_of_the_limit() -> None:
    for limit_iops, served_iops in ((50, 100), (115, 115), (500, 130), (math.inf, 130)):
        loop = closed_loop_of(times(8, 8, 8), 3, limit_iops)
        assert loop == ClosedLoop(served_iops, 8, 0)


def test_other_loads_have_no_answer() -> None:
    assert closed_loop_of(times(1, 4, 8), 3) is None  # grows as an open loop does
    assert closed_loop_of(times(8, 8, 8), 10) is None  # hardly throttled
    assert closed_loop_of(times(8, 8), 2) is None
    assert closed_loop_of([], 1) is None


def scenario(iops: float, *loads: Load) -> Scenario:
    limiter = Limiter(buckets=summed(iops))
    return Scenario(limiter=limiter, loads=loads, terms=SumTerms(iops=iops))


def needs_of(simulated: Scenario) -> Needs:
    """Return what a simulated load needs by the windows of the pipeline."""
    first = State(Configuration(simulated.settings(), CATALOG))
    states = list(accumulate(run(simulated).ticks, advance, initial=first))
    records = [record for pair in pairwise(states) for record in window_records(*pair)]
    [disk] = states[-1].monitored.values()
    return Needs(demand_of(served_of(records), disk.assignment.limits), 0.001, 0.05)


def loop_of(simulated: Scenario) -> ClosedLoop:
    loop = needs_of(simulated).demand.loop
    assert loop is not None
    return loop


@pytest.mark.parametrize("depth", [4, 8, 32])
@pytest.mark.parametrize("think_s", [0.0, 0.01])
def test_what_was_predicted_is_what_a_higher_limit_does(depth: int, think_s: float) -> None:
    """Clients that compute between two requests are in the bounds as well as those that do not."""
    load = Closed(depth=1, think_s=think_s)
    before = loop_of(scenario(100, *[load] * depth))
    after = loop_of(scenario(150, *[load] * depth))
    least, most = before.served(150)
    assert least <= 1.02 * after.served_iops
    assert after.served_iops <= 1.02 * most
    assert after.request_s <= 1.05 * before.waits_s(150)


def test_an_open_loop_is_none() -> None:
    assert needs_of(scenario(100, Open(per_second=150))).demand.loop is None


def test_types_that_halve_the_waiting() -> None:
    needs = needs_of(scenario(250, Closed(depth=8)))
    catalog = load_catalog()

    def iops_of(name: str) -> list[float]:
        return [each.performance_iops for each in halving(catalog[name], 100 * GIB, needs)]

    assert iops_of("aws.gp3") == [3000]
    assert iops_of("aws.gp2") == pytest.approx([501], abs=3)
    assert iops_of("aws.io2") == [600], "sold by the hundred"
    assert iops_of("aws.standard") == []
    assert halving(catalog["aws.standard"], 2048 * GIB, needs) == []


def test_a_type_that_counts_small_requests_as_large_is_not_sold_for_them() -> None:
    needs = needs_of(scenario(100, Closed(depth=8, read_bytes=8192)))
    [st1] = halving(load_catalog()["aws.st1"], 100 * GIB, needs)
    assert counts_small_requests_as(st1.candidate.limits, needs) == 2**20
    large = needs_of(scenario(100, Closed(depth=8, read_bytes=131072)))
    assert counts_small_requests_as(st1.candidate.limits, large) is None
