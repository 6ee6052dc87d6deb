"""Throttling detection, compared with the truth of simulated limiters."""

import math
from dataclasses import replace

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumTerms
from disksla.units import KIB
from support.examples import scaled
from support.scenario_verdicts import ScenarioVerdicts, judged
from support.scenarios import BELOW, FREE, SCENARIOS, THROTTLED
from support.simulated_limiter import (
    WINDOW_S,
    Closed,
    Limiter,
    Medium,
    Open,
    Scenario,
    summed,
)

DETECTED_WITHIN_S = 0.3
WAIT_NOT_COMPARED = {
    "iops-300-poisson-120": "its queue grows; requests that still wait at the end are not counted",
    "bandwidth-5": "a tenth of its few requests is still waiting at the end",
    "iops-20000-deep": "requests wait for the disk as well",
    "iops-300-thinking": "service times were learned from a few requests in whole milliseconds",
}
RATE_VARIES = {
    "burst-in-turns": "its credits are used up and refill",
    "mixed-separate": "one of two limits is always reached, the other sometimes",
    "mixed-time-shared": "its sum depends on the mix, which is random",
    "below-600-lowered": "covered by the tests of verdicts",
}
NO_CONSTANT_RATE = {
    "bandwidth-5": "ten requests in two seconds are too few for a rate",
    "bandwidth-5-split": "twenty requests in two seconds are too few for a rate",
    "mixed-time-shared": "its rate varies with its mix",
    "iops-300-thinking": "the program thinks for a third of the time",
    "below-600-of-1000-shallow": "never throttled",
}
DETECTED_LATER = {
    "burst-then-base-synchronous": "the requests of its burst wait for half a millisecond",
}
FEW_REQUESTS = {"bandwidth-5": "one request more or less is 1 % of its ten seconds"}
ANY_PHASE = [
    "iops-300-deep",
    "iops-1000-deep",
    "bandwidth-25",
    "mixed-separate",
    "mixed-summed",
    "burst-then-base",
    "iops-300-synchronous",
    "bandwidth-25-synchronous",
    "iops-300-paused",
]


def assert_seconds_are_right(found: ScenarioVerdicts) -> None:
    """Check throttled seconds; two windows may be wrong at each edge of an episode.

    The part of a window in which the disk serves the requests of that window is not throttled,
    but may be reported.
    """
    edges_s = 4 * WINDOW_S * len(found.episodes())
    least_s = min(found.true_throttled_s, found.true_throttled_windows_s)
    most_s = max(found.true_throttled_s, found.true_throttled_windows_s)
    assert 0.98 * least_s - edges_s <= found.throttled_s <= 1.02 * most_s + edges_s


@pytest.mark.parametrize("name", THROTTLED)
def test_throttled_seconds_agree_with_the_truth(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.true_throttled_s > 4.0
    assert_seconds_are_right(found)
    assert {row.limit for row in found.with_verdict("throttled")} == {
        window.limit for window in found.truth if window.throttled
    }
    assert {row.level for row in found.with_verdict("throttled")} == {
        window.throttled_at for window in found.truth if window.throttled
    }


@pytest.mark.parametrize("name", THROTTLED)
def test_onset_and_end_are_detected_within_300_ms(name: str) -> None:
    found = judged(SCENARIOS[name])
    for episode in found.episodes():
        onset = found.between(episode.start_s, episode.start_s + DETECTED_WITHIN_S)
        assert "throttled" in {row.verdict for row in onset}
        end = found.between(episode.end_s, episode.end_s + DETECTED_WITHIN_S)
        assert len(end) < 3 or any(row.verdict != "throttled" for row in end)


@pytest.mark.parametrize("name", sorted(THROTTLED.keys() - RATE_VARIES.keys()))
def test_ceiling_is_the_throttled_rate(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert_ceiling_is_right(found, rel=0.02 if name in FEW_REQUESTS else 0.01)


def assert_ceiling_is_right(found: ScenarioVerdicts, rel: float = 0.01) -> None:
    last = [each for each in found.truth if each.throttled][-1]
    alike = [
        each
        for each in found.truth
        if (each.throttled_at, each.limit) == (last.throttled_at, last.limit)
    ]
    steady = [each for each in alike if each.start_s > alike[0].start_s + 1.0]
    if last.limit == "iops":
        iops = sum(each.ops for each in steady) / len(steady) / WINDOW_S
        assert found.ceiling.iops == pytest.approx(iops, rel=rel)
    else:
        rate = sum(each.bytes for each in steady) / len(steady) / WINDOW_S
        assert found.ceiling.bytes_per_second == pytest.approx(rate, rel=rel)


@pytest.mark.parametrize("name", sorted(THROTTLED.keys() - WAIT_NOT_COMPARED.keys()))
def test_throttle_wait_agrees_with_the_truth(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.throttle_wait_s == pytest.approx(found.true_throttle_wait_s, rel=0.05)


@pytest.mark.parametrize("phase_s", [0.013, 0.037, 0.061, 0.087])
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("iops-300-poisson-90", 0.02),
        ("iops-1000-poisson-90", 0.01),
        ("iops-300-poisson-95", 0.08),
        ("iops-1000-poisson-95", 0.03),
    ],
)
def test_load_near_the_limit_is_sometimes_throttled(
    name: str, tolerance: float, phase_s: float
) -> None:
    found = judged(replace(SCENARIOS[name], sampler_phase_s=phase_s))
    assessed_s = sum(row.window_s or 0.0 for row in found.rows)
    assert found.throttled_s / assessed_s == pytest.approx(
        found.true_throttled_s / assessed_s, abs=tolerance
    )


@pytest.mark.parametrize("window_s", [WINDOW_S, None])
@pytest.mark.parametrize(
    ("depth", "think_s"), [(1, 0.0), (1, 0.001), (2, 0.0), (4, 0.0), (16, 0.0)]
)
def test_closed_loop_after_a_load_near_the_limit(
    depth: int, think_s: float, window_s: float | None
) -> None:
    near = Open(per_second=255, active=((0.53, 4.53),))
    full = Closed(depth=depth, think_s=think_s, active=((4.53, 9.53),))
    scenario = Scenario(
        limiter=Limiter(buckets=summed(300), window_s=window_s),
        loads=(near, full),
        terms=SumTerms(iops=300.0),
    )
    assert_seconds_are_right(judged(scenario))


@pytest.mark.parametrize("iops", [200, 450])
@pytest.mark.parametrize("window_s", [0.4, 1.0])
def test_one_request_at_a_time_takes_much_of_a_long_window(iops: int, window_s: float) -> None:
    """The requests of a window follow one another for up to 0.36 s, and the next one waits."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(iops), window_s=window_s),
        loads=(Closed(depth=1, active=((3.3, 21.9),)),),
        medium=Medium(service_s=0.0008, jitter=0.3),
        terms=SumTerms(iops=float(iops)),
        seconds=24.0,
    )
    found = judged(scenario)
    assert found.throttled_s == pytest.approx(found.true_throttled_s, rel=0.15)


def test_sample_between_the_requests_of_a_window() -> None:
    """As many requests complete before it as were in flight, and each has waited for 0.2 s."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(248), window_s=0.2),
        loads=(Closed(depth=4, write_share=0.3, active=((3.0, 15.5),)),),
        medium=Medium(service_s=0.0003, jitter=0.1),
        terms=SumTerms(iops=248.0),
        seconds=20.0,
        sampler_phase_s=0.0003,
    )
    found = judged(scenario)
    assert found.throttled_s == pytest.approx(found.true_throttled_s, rel=0.05)


def test_requests_that_are_served_do_not_wait_together() -> None:
    """At 98 % of the limit, six requests are in flight on average without any waiting."""
    iops, share, medium = 3000, 0.98, Medium(service_s=0.002, jitter=0.5)
    loads = (
        Open(per_second=0.3 * iops, poisson=True, active=((0.0, 8.0),)),
        Open(per_second=share * iops, poisson=True, active=((8.0, 60.0),)),
    )
    scenario = Scenario(
        limiter=Limiter(buckets=summed(iops)),
        loads=loads,
        medium=medium,
        terms=SumTerms(iops=float(iops)),
        seconds=60.0,
        seed=3,
    )
    found = judged(scenario)
    assert found.throttled_s / 52 == pytest.approx(found.true_throttled_s / 52, abs=0.1)


@pytest.mark.parametrize("name", ["iops-300-bursts", "iops-300-bursts-open"])
def test_short_throttling_is_detected(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.throttled_s > 0.5
    assert_seconds_are_right(found)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FREE)
def test_free_disk_is_never_throttled(name: str, known: bool) -> None:
    scenario = SCENARIOS[name]
    found = judged(scenario if known else replace(scenario, terms=None))
    assert found.with_verdict("throttled") == []


@scaled(20)
@given(
    megabytes=st.floats(20.0, 60.0),
    request_bytes=st.sampled_from([128 * KIB, 256 * KIB, 512 * KIB]),
    depth=st.sampled_from([4, 16, 32]),
    window_s=st.sampled_from([0.05, 0.1, 0.2]),
    begin_s=st.floats(0.5, 0.6),
    phase_s=st.floats(0.0, 0.1),
    seed=st.integers(0, 1000),
)
def test_few_large_requests_at_a_limit_are_detected_at_once(
    megabytes: float,
    request_bytes: int,
    depth: int,
    window_s: float,
    begin_s: float,
    phase_s: float,
    seed: int,
) -> None:
    """Within 0.3 s or two windows of the limiter, of which each has 2 to 90 requests."""
    bandwidth = megabytes * 1e6
    load = Closed(depth=depth, read_bytes=request_bytes, active=((begin_s, math.inf),))
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(bandwidth=bandwidth), window_s=window_s),
            loads=(load,),
            medium=Medium(service_s=0.0004, jitter=0.3),
            terms=SumTerms(bytes_per_second=bandwidth),
            seconds=3.0,
            sampler_phase_s=phase_s,
            seed=seed,
        )
    )
    first = found.with_verdict("throttled")[0]
    assert first.monotonic_s - found.episodes()[0].start_s <= max(0.3, 2 * window_s)


@scaled(20)
@given(
    iops=st.integers(200, 3000),
    ratio=st.floats(2.0, 6.0),
    servers=st.sampled_from([1, 4, 8]),
    per_server=st.sampled_from([2, 4, 8]),
    jitter=st.floats(0.1, 0.5),
    pauses=st.lists(st.tuples(st.floats(0.2, 0.6), st.floats(0.3, 1.5)), min_size=3, max_size=8),
    phase_s=st.floats(0.005, 0.095),
)
def test_loads_that_begin_and_end_within_a_window_reach_no_limit_by_chance(
    iops: int,
    ratio: float,
    servers: int,
    per_server: int,
    jitter: float,
    pauses: list[tuple[float, float]],
    phase_s: float,
) -> None:
    """Of a disk that is twice as fast as its terms, or more, the first window may be at them."""
    active = []
    end_s = 0.5
    for idle_s, busy_s in pauses:
        begin_s = end_s + idle_s
        end_s = begin_s + busy_s
        active.append((begin_s, end_s))
    found = judged(
        Scenario(
            loads=(Closed(depth=servers * per_server, active=tuple(active)),),
            medium=Medium(service_s=servers / (iops * ratio), jitter=jitter, servers=servers),
            terms=SumTerms(iops=float(iops)),
            seconds=end_s + 0.5,
            sampler_phase_s=phase_s,
        )
    )
    assert found.with_verdict("throttled") == []


@pytest.mark.parametrize("rate", [20, 50, 100, 200, 400, 1000])
@pytest.mark.parametrize(("servers", "depth"), [(1, 1), (1, 16), (4, 16)])
def test_disk_whose_service_times_vary_is_not_taken_for_a_limiter(
    rate: int, servers: int, depth: int
) -> None:
    """By a fifth (standard deviation) now and then, by three tenths never."""
    for spread, most_share in ((0.2, 0.1), (0.3, 0.0)):
        medium = Medium(service_s=servers / rate, jitter=spread, servers=servers)
        found = judged(Scenario(loads=(Closed(depth=depth),), medium=medium, seconds=20.0))
        assert found.throttled_s <= most_share * 20


@pytest.mark.parametrize("name", [n for n in THROTTLED | BELOW if n not in NO_CONSTANT_RATE])
def test_unknown_limit_is_detected_by_its_constant_rate(name: str) -> None:
    scenario = SCENARIOS[name]
    found = judged(replace(scenario, terms=None))
    throttled = found.with_verdict("throttled")
    assert {(row.limit, row.level) for row in throttled} == {("unknown", "unknown")}
    deep_from_s = next(row.monotonic_s for row in found.rows if row.inflight)
    if name not in DETECTED_LATER:
        assert throttled[0].monotonic_s < deep_from_s + 0.7
    if name not in RATE_VARIES:
        assert_ceiling_is_right(found)


@pytest.mark.parametrize("name", NO_CONSTANT_RATE)
def test_without_constant_rate_and_terms_is_unproven(name: str) -> None:
    found = judged(replace(SCENARIOS[name], terms=None))
    assert {row.verdict for row in found.rows} == {"idle", "unproven"}


@pytest.mark.parametrize("window_s", [0.5, 1.0])
@pytest.mark.parametrize("iops", [275, 700])
def test_unknown_limit_with_a_long_window_is_detected_at_depth_one(
    iops: int, window_s: float
) -> None:
    """Samples fall into the time in which the requests of a window follow one another."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(iops), window_s=window_s),
        loads=(Closed(depth=1),),
        medium=Medium(service_s=0.0003, jitter=0.3),
        seconds=20.0,
        sampler_phase_s=0.017,
    )
    found = judged(scenario)
    assert found.throttled_s > 0.75 * found.true_throttled_s - 4 * window_s


def test_unknown_limit_is_recognized_at_depth_one() -> None:
    found = judged(replace(SCENARIOS["iops-300-deep-then-synchronous"], terms=None))
    start_s = found.rows[0].monotonic_s
    alone = found.between(start_s + 5.5, start_s + 9.8)
    assert {row.inflight for row in alone} == {1}
    assert {row.verdict for row in alone} == {"throttled"}


@pytest.mark.parametrize("phase_s", [0.01, 0.037, 0.06, 0.09])
def test_peaks_above_the_promise_are_not_throttled(phase_s: float) -> None:
    found = judged(
        Scenario(
            loads=(
                Open(per_second=300, poisson=True),
                Closed(depth=8, active=tuple((n / 2 + 0.53, n / 2 + 0.56) for n in range(20))),
            ),
            medium=Medium(service_s=0.001, jitter=0.5),
            terms=SumTerms(iops=1000.0),
            sampler_phase_s=phase_s,
        )
    )
    assert len(found.with_verdict("met")) > 15
    assert found.throttled_s <= 0.1  # one window has that rate by chance


def at(name: str, phase_s: float, seed: int) -> Scenario:
    return replace(SCENARIOS[name], sampler_phase_s=phase_s, seed=seed)


@scaled(40)
@given(
    name=st.sampled_from(ANY_PHASE),
    phase_s=st.floats(0.001, 0.099),
    seed=st.integers(0, 99),
)
def test_throttled_seconds_at_any_phase(name: str, phase_s: float, seed: int) -> None:
    assert_seconds_are_right(judged(at(name, phase_s, seed)))


# The seed is fixed because examples otherwise depend on the source of this function. Known limit:
# of synchronous writers sampled up to 50 us after a window starts, 1 to 7 % miss the tolerance.
@hypothesis.seed(2)
@scaled(20)
@given(
    name=st.sampled_from(ANY_PHASE),
    phase_s=st.floats(0, 0.0005) | st.floats(0.0995, 0.0999),
    seed=st.integers(0, 99),
)
def test_throttled_seconds_in_phase_with_the_limiter(name: str, phase_s: float, seed: int) -> None:
    found = judged(at(name, phase_s, seed))
    edges_s = 4 * WINDOW_S * len(found.episodes())
    least_s = min(found.true_throttled_s, found.true_throttled_windows_s)
    most_s = max(found.true_throttled_s, found.true_throttled_windows_s)
    assert 0.9 * least_s - edges_s <= found.throttled_s <= 1.1 * most_s + edges_s


@scaled(25)
@given(
    name=st.sampled_from(sorted(FREE.keys() - {"steady-90-fast"})),
    phase_s=st.floats(0, 0.0999),
    seed=st.integers(0, 99),
    known=st.booleans(),
)
def test_free_disk_is_never_throttled_at_any_phase(
    name: str, phase_s: float, seed: int, known: bool
) -> None:
    scenario = at(name, phase_s, seed)
    found = judged(scenario if known else replace(scenario, terms=None))
    assert found.with_verdict("throttled") == []


@scaled(40)
@given(
    iops=st.integers(150, 1500),
    enforced_ratio=st.floats(0.98, 1.03),
    depth=st.sampled_from([1, 2, 4, 16, 64]),
    window_s=st.sampled_from([0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0]),
    phase_s=st.floats(0.005, 0.095),
    seed=st.integers(0, 99),
)
def test_any_limit_depth_and_window(
    iops: int, enforced_ratio: float, depth: int, window_s: float, phase_s: float, seed: int
) -> None:
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(iops * enforced_ratio), window_s=window_s),
            loads=(Closed(depth=depth),),
            medium=Medium(service_s=0.0002, jitter=0.2),
            terms=SumTerms(iops=float(iops)),
            seconds=8.0,
            sampler_phase_s=phase_s,
            seed=seed,
        )
    )
    assert found.with_verdict("stalled") == []
    begun_s = found.rows[0].monotonic_s + 0.5 + max(0.6, 3.1 * window_s)
    settled = found.between(begun_s, found.rows[-1].monotonic_s - window_s)
    # Of synchronous writers, about 1 in 100 combinations of rate, window and phase is missed for a
    # part of the time, where each sample divides what a limiter lets pass.
    settled_s = sum(row.window_s or 0.0 for row in settled)
    other_s = sum(row.window_s or 0.0 for row in settled if row.verdict != "throttled")
    assert other_s <= (0.15 * settled_s if depth == 1 else 0.0)
    if depth > 2:  # shallower, it is missed as seldom
        assert found.ceiling.iops == pytest.approx(iops * enforced_ratio, rel=0.015)


@pytest.mark.parametrize("known", [True, False])
def test_program_that_starts_a_request_whenever_a_timer_ends(known: bool) -> None:
    found = judged(
        Scenario(
            loads=(Open(per_second=100),),
            medium=Medium(service_s=0.006, jitter=0.02),
            terms=SumTerms(iops=500.0) if known else None,
        )
    )
    assert found.with_verdict("throttled") == []


@pytest.mark.parametrize("phase_s", [0.01, 0.037, 0.09])
def test_program_that_paces_itself_at_the_limit_is_not_throttled(phase_s: float) -> None:
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(400)),
            loads=(Open(per_second=400),),
            medium=Medium(service_s=0.0005, jitter=0.2),
            terms=SumTerms(iops=400.0),
            sampler_phase_s=phase_s,
        )
    )
    assert found.throttled_s == pytest.approx(found.true_throttled_s, abs=0.1)


@pytest.mark.parametrize("load", [80, 90, 95])
def test_time_of_a_load_that_touches_the_limit(load: int) -> None:
    found = judged(
        Scenario(
            limiter=Limiter(buckets=summed(850)),
            loads=(Open(per_second=850 * load / 100, poisson=True),),
            medium=Medium(service_s=0.0002, jitter=0.3, servers=4),
            terms=SumTerms(iops=850.0),
            seconds=30.0,
        )
    )
    assert found.throttled_s == pytest.approx(found.true_throttled_s, abs=0.05 * 30)


@pytest.mark.parametrize("jitter", [0.2, 0.7])
@pytest.mark.parametrize("sampler_phase_s", [0.0, 0.02, 0.05, 0.08])
def test_programs_that_think_are_throttled_at_any_phase(
    sampler_phase_s: float, jitter: float
) -> None:
    """After their requests, none is in flight at any sample, if these come early in a window."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(200)),
        loads=(
            Open(per_second=15, poisson=True, active=((0.53, 4.5),)),
            Closed(depth=4, think_s=0.0128, active=((5.0, math.inf),)),
        ),
        medium=Medium(service_s=0.0005, jitter=jitter),
        terms=SumTerms(iops=200.0),
        seconds=13.0,
        sampler_phase_s=sampler_phase_s,
    )
    found = judged(scenario)
    assert found.throttled_s == pytest.approx(found.true_throttled_s, abs=0.6)
