"""The simulation of a limiter, a disk and the counters of the kernel.

Runs at night: it is a test of tests/support, and what the simulation does wrong, the expected
verdicts of other tests show.
"""

import math
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import KIB
from disksla.kernel.procfs.diskstats import Counters, parse_line, to_counters
from support.examples import scaled
from support.scenarios import AT_TIMES, FREE, SCENARIOS, THROTTLED
from support.simulated_limiter import (
    ORIGIN_S,
    Bucket,
    Closed,
    Limiter,
    Medium,
    Open,
    Run,
    Scenario,
    Window,
    run,
    separate,
    summed,
)

pytestmark = pytest.mark.nightly

ALWAYS_ACTIVE = [
    name
    for name in THROTTLED
    if name not in {"iops-300-paused", "iops-1000-stalled", "burst-in-turns"}
]


def counters(result: Run) -> list[Counters]:
    return [to_counters(parse_line(tick.diskstats or "").reading) for tick in result.ticks]


def requests_per_tick(result: Run) -> list[int]:
    totals = [(now.reads or 0) + (now.writes or 0) for now in counters(result)]
    return [after - before for before, after in pairwise(totals)]


def io_ms(now: Counters) -> int:
    return (now.read_ms or 0) + (now.write_ms or 0)


def excess(amounts: list[int], bucket: Bucket, largest: int, window_s: float | None) -> float:
    """Return by how much consecutive windows exceed what a bucket allows; negative if none do.

    A bucket that is filled once per window is full at the start of the first one; a smooth one is
    also filled during the first one. The last request may overdraw.
    """
    totals = [0, *accumulate(amounts)]
    base = bucket.per_second * 0.1
    capacity = base if bucket.capacity is None else bucket.capacity
    peak = (bucket.peak_per_second or math.inf) * 0.1
    extra = 1 if window_s is None else 0
    return max(
        totals[end]
        - totals[start]
        - min(capacity + base * (end - start - 1 + extra), peak * (end - start + extra))
        - largest
        for end in range(1, len(totals))
        for start in range(end)
    )


loads = st.lists(
    st.one_of(
        st.builds(
            Closed,
            depth=st.integers(1, 40),
            think_s=st.sampled_from([0.0, 0.0005, 0.02]),
            write_share=st.floats(0, 1),
            read_bytes=st.sampled_from([4096, 65536, 1048576]),
            write_bytes=st.sampled_from([512, 16384]),
            active=st.sampled_from([((0.53, 1.5),), ((0.2, 0.4), (0.9, 1.31))]),
        ),
        st.builds(
            Open,
            per_second=st.floats(10, 1500),
            poisson=st.booleans(),
            read_bytes=st.sampled_from([4096, 262144]),
            active=st.sampled_from([((0.53, 1.5),), ((0.2, 0.4), (0.9, 1.31))]),
        ),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@given(
    loads=loads,
    iops=st.floats(50, 3000),
    bandwidth=st.floats(1e6, 1e8),
    burst=st.sampled_from([None, (1.5, 0.3), (8.0, 2.0)]),
    window_s=st.sampled_from([0.1, None]),
    seed=st.integers(0, 99),
)
def test_admitted_requests_never_exceed_the_buckets(
    loads: tuple[Closed | Open, ...],
    iops: float,
    bandwidth: float,
    burst: tuple[float, float] | None,
    window_s: float | None,
    seed: int,
) -> None:
    peak = {"peak_per_second": burst[0] * iops, "capacity": burst[1] * iops} if burst else {}
    buckets = summed(iops, bandwidth, **peak)
    limiter = Limiter(buckets=buckets, window_s=window_s)
    truth = run(Scenario(limiter=limiter, loads=loads, seconds=2.0, seed=seed)).truth
    of_iops, of_bytes = buckets
    assert excess([window.ops for window in truth], of_iops, 1, window_s) < 1e-6
    largest = max(max(load.read_bytes, load.write_bytes) for load in loads)
    assert excess([window.bytes for window in truth], of_bytes, largest, window_s) < 1e-2


@given(loads=loads, limited=st.booleans(), seed=st.integers(0, 99))
def test_counters_agree_with_requests_in_flight(
    loads: tuple[Closed | Open, ...], limited: bool, seed: int
) -> None:
    limiter = Limiter(buckets=summed(2000)) if limited else None
    medium = Medium(service_s=0.001, jitter=0.4, servers=8)
    result = run(Scenario(limiter=limiter, medium=medium, loads=loads, seconds=4.0, seed=seed))
    *_, last = result.ticks
    assert parse_line(last.diskstats or "").inflight == 0
    in_flight_s = sum(window.inflight_io_seconds for window in result.truth)
    assert io_ms(counters(result)[-1]) == pytest.approx(in_flight_s * 1000, abs=2)
    assert sum(requests_per_tick(result)) == sum(window.ops for window in result.truth)
    assert all(w.throttled_io_seconds <= w.inflight_io_seconds + 1e-9 for w in result.truth)
    assert all(w.throttled_s <= 0.1 + 1e-9 for w in result.truth)


def test_deep_queue_at_300_iops_completes_30_per_window() -> None:
    result = run(SCENARIOS["iops-300-deep"])
    assert set(requests_per_tick(result)[6:]) == {30}
    assert {window.ops for window in result.truth[6:]} == {30}
    before, *_, after = counters(result)[20:]
    requests = (after.reads or 0) - (before.reads or 0)
    assert (io_ms(after) - io_ms(before)) / requests == pytest.approx(32 / 0.3, rel=0.01)
    assert {tick.inflight["vdx"] for tick in result.ticks[10:]} == {(32, 0)}


def test_synchronous_writer_waits_for_the_limiter_only() -> None:
    result = run(SCENARIOS["iops-300-synchronous"])
    assert set(requests_per_tick(result)[6:]) == {30}
    assert {sum(tick.inflight["vdx"]) for tick in result.ticks[10:]} == {1}
    before, *_, after = counters(result)[20:]
    requests = (after.writes or 0) - (before.writes or 0)
    assert (io_ms(after) - io_ms(before)) / requests == pytest.approx(1000 / 300, rel=0.02)


def test_requests_that_do_not_divide_the_window_alternate() -> None:
    result = run(SCENARIOS["bandwidth-25"])
    assert set(requests_per_tick(result)[6:]) == {9, 10}
    assert sum(requests_per_tick(result)[10:]) * 256 * KIB == pytest.approx(25e6 * 9, rel=0.002)


def test_request_larger_than_a_window_is_paid_back() -> None:
    truth = run(SCENARIOS["bandwidth-5"]).truth
    assert {window.ops for window in truth[6:]} == {0, 1}
    assert sum(window.bytes for window in truth[10:]) == pytest.approx(5e6 * 9, rel=0.03)


def test_smooth_limiter_admits_requests_one_by_one() -> None:
    result = run(SCENARIOS["iops-300-smooth"])
    assert set(requests_per_tick(result)[8:]) <= {29, 30, 31}
    assert sum(requests_per_tick(result)[10:]) == pytest.approx(2700, abs=2)


@pytest.mark.parametrize("name", ALWAYS_ACTIVE)
def test_throttled_scenarios_are_always_throttled(name: str) -> None:
    assert run(SCENARIOS[name]).throttled_share(1.0) == 1.0


@pytest.mark.parametrize("name", FREE)
def test_free_scenarios_are_never_throttled(name: str) -> None:
    assert run(SCENARIOS[name]).throttled_share() == 0.0


@pytest.mark.parametrize("name", AT_TIMES)
def test_intermittent_scenarios_are_sometimes_throttled(name: str) -> None:
    assert 0.05 < run(SCENARIOS[name]).throttled_share(1.0) < 0.7


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("iops-20000-deep", "iops"),
        ("bandwidth-300", "bandwidth"),
        ("mixed-separate", "iops"),
        ("mixed-separate-bandwidth", "bandwidth"),
        ("mixed-summed-bandwidth", "bandwidth"),
        ("mixed-additive", "iops"),
        ("mixed-additive-large", "bandwidth"),
    ],
)
def test_truth_has_the_limit(name: str, limit: str) -> None:
    assert {window.limit for window in run(SCENARIOS[name]).truth[10:]} == {limit}


def test_credits_last_for_the_computed_time() -> None:
    truth = run(SCENARIOS["burst-then-base"]).truth
    burst = [window for window in truth if window.throttled_at == "burst"]
    base = [window for window in truth if window.throttled_at == "base"]
    assert 0.1 * len(burst) == pytest.approx(8000 / (2000 - 300), abs=0.15)
    assert {window.ops for window in burst} == {200}
    assert {window.ops for window in base[1:]} == {30}
    assert burst[-1].end_s == base[0].start_s


def test_credits_refill_while_idle() -> None:
    truth = run(SCENARIOS["burst-in-turns"]).truth
    levels = [window.levels[0] for window in truth]
    assert levels[30] == 0.0
    # From 3.1 s to 8.0 s the disk is idle, except for the 32 requests that were still waiting.
    assert levels[79] == pytest.approx(4.9 * 300 - 32)


def test_separate_budgets_of_reads_and_writes() -> None:
    limiter = Limiter(buckets=separate(500, 300), apart=True)
    streams = (Closed(depth=16), Closed(depth=4, write_share=1.0))
    before, *_, after = counters(run(Scenario(limiter=limiter, loads=streams)))[20:]
    assert (after.reads or 0) - (before.reads or 0) == 500 * 8
    assert (after.writes or 0) - (before.writes or 0) == 300 * 8


def test_time_shared_budget_is_not_exceeded() -> None:
    before, *_, after = counters(run(SCENARIOS["mixed-time-shared"]))[20:]
    reads = (after.reads or 0) - (before.reads or 0)
    writes = (after.writes or 0) - (before.writes or 0)
    assert reads / 500 + writes / 300 == pytest.approx(8.0, rel=0.005)


def test_limit_is_lowered() -> None:
    served = requests_per_tick(run(SCENARIOS["below-600-lowered"]))
    assert set(served[8:48]) == {100}
    assert set(served[52:]) == {60}


@pytest.mark.parametrize("name", ["iops-1000-stalled", "unlimited-stalled"])
def test_nothing_completes_in_a_stall(name: str) -> None:
    result = run(SCENARIOS[name])
    served = requests_per_tick(result)
    assert set(served[41:54]) == {0}
    milliseconds = [io_ms(after) - io_ms(before) for before, after in pairwise(counters(result))]
    assert set(milliseconds[41:54]) == {0}
    assert max(milliseconds) == milliseconds[54]
    assert not any(window.throttled for window in result.truth[42:54])


def test_queue_is_empty_after_the_load() -> None:
    result = run(SCENARIOS["iops-300-paused"])
    assert set(requests_per_tick(result)[33:58]) == {0}
    most = max(sum(tick.inflight.get("vdx", (0,))) for tick in result.ticks)
    assert most == 32


@scaled(10)
@given(st.sampled_from(sorted(set(SCENARIOS) - {"iops-20000-deep", "steady-90-fast"})))
def test_same_scenario_has_the_same_result(name: str) -> None:
    first, second = run(SCENARIOS[name]), run(SCENARIOS[name])
    assert first.ticks == second.ticks
    assert first.truth == second.truth


def test_windows_are_contiguous() -> None:
    truth: list[Window] = run(Scenario(seconds=3.0)).truth
    assert len(truth) == 30
    assert truth[0].start_s == ORIGIN_S
    assert all(before.end_s == after.start_s for before, after in pairwise(truth))


def test_lateness_of_the_sampler_is_realistic() -> None:
    ticks = run(Scenario(seconds=600.0)).ticks
    lateness = sorted(tick.lateness_s for tick in ticks)
    assert lateness[len(lateness) // 2] == pytest.approx(0.00015, rel=0.1)
    assert 0.005 < lateness[-1] < 0.018
