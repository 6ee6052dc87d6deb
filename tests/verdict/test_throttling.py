"""Throttling detection, compared with the truth of simulated limiters."""

from dataclasses import replace

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumTerms
from disksla.limits.cost_model import Charge
from disksla.limits.limits import NO_LIMITS, Rates, build_limits
from disksla.verdict.interval import Interval
from disksla.verdict.throttling import (
    Throttle,
    binding_limit,
    has_waiting,
    throttled_at_flat_rate,
    throttled_at_limit,
    throttled_intermittently,
    wait_s,
)
from disksla.verdict.window import sum_windows
from support.examples import scaled
from support.scenario_verdicts import ScenarioVerdicts, judged
from support.scenarios import BELOW, FREE, SCENARIOS, THROTTLED
from support.simulated_limiter import WINDOW_S, Closed, Medium, Open, Scenario

DETECTED_WITHIN_S = 0.3
WAIT_NOT_COMPARED = {
    "iops-300-poisson-120": "its queue grows; requests that still wait at the end are not counted",
    "bandwidth-5": "a tenth of its few requests is still waiting at the end",
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
    "iops-300-synchronous": "one at a time",
    "iops-300-thinking": "one at a time",
    "iops-300-smooth-synchronous": "one at a time",
    "bandwidth-25-synchronous": "one at a time",
    "burst-then-base-synchronous": "one at a time",
    "below-600-of-1000-synchronous": "one at a time",
    "below-600-of-1000-shallow": "never throttled",
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


def window(
    reads: int = 30,
    read_ms: int = 0,
    inflight: int = 0,
    request_bytes: int = 4096,
    seconds: float = 0.1,
) -> Interval:
    return Interval(1.0, seconds, reads, 0, reads * request_bytes, 0, read_ms, 0, inflight)


def assert_seconds_are_right(found: ScenarioVerdicts) -> None:
    """Check throttled seconds; two windows may be wrong at each edge of an episode."""
    edges_s = 4 * WINDOW_S * len(found.episodes())
    assert found.throttled_s == pytest.approx(
        found.true_throttled_s, abs=0.02 * found.true_throttled_s + edges_s
    )


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


@pytest.mark.parametrize("name", ["iops-300-poisson-90", "iops-1000-poisson-90"])
def test_load_near_the_limit_is_sometimes_throttled(name: str) -> None:
    """A constant service time makes too little waiting visible: real disks are nearer."""
    found = judged(SCENARIOS[name])
    assessed_s = sum(row.window_s or 0.0 for row in found.rows)
    assert found.throttled_s / assessed_s == pytest.approx(
        found.true_throttled_s / assessed_s, abs=0.09
    )


@pytest.mark.parametrize("name", ["iops-300-bursts", "iops-300-bursts-open"])
def test_short_throttling_is_detected(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.throttled_s > 0.9
    assert_seconds_are_right(found)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FREE)
def test_free_disk_is_never_throttled(name: str, known: bool) -> None:
    scenario = SCENARIOS[name]
    found = judged(scenario if known else replace(scenario, terms=None))
    assert found.with_verdict("throttled") == []


@pytest.mark.parametrize("name", [n for n in THROTTLED | BELOW if n not in NO_CONSTANT_RATE])
def test_unknown_limit_is_detected_by_its_constant_rate(name: str) -> None:
    scenario = SCENARIOS[name]
    found = judged(replace(scenario, terms=None))
    throttled = found.with_verdict("throttled")
    assert {(row.limit, row.level) for row in throttled} == {("unknown", "unknown")}
    deep_from_s = next(row.monotonic_s for row in found.rows if (row.inflight or 0) > 1)
    assert throttled[0].monotonic_s < deep_from_s + 2.5
    if name not in RATE_VARIES:
        assert_ceiling_is_right(found)


@pytest.mark.parametrize("name", NO_CONSTANT_RATE)
def test_without_constant_rate_and_terms_is_unproven(name: str) -> None:
    found = judged(replace(SCENARIOS[name], terms=None))
    assert {row.verdict for row in found.rows} == {"idle", "unproven"}


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
    assert len(found.with_verdict("throttled")) <= 1  # one window has that rate by chance


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
    assert found.throttled_s == pytest.approx(
        found.true_throttled_s, abs=0.1 * found.true_throttled_s + edges_s
    )


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


@pytest.mark.parametrize(
    ("sampled", "service_s", "expected"),
    [
        (window(inflight=2), 0.0002, True),
        (window(reads=0, inflight=1), 0.0002, True),
        (window(reads=30, read_ms=6, inflight=1), 0.0002, False),
        (window(reads=30, read_ms=99, inflight=1), 0.0002, True),
        (window(reads=30, read_ms=99, inflight=0), 0.0033, False),
        (window(reads=30, read_ms=20), 0.0, False),
        (window(reads=30, read_ms=30), 0.0, True),
    ],
)
def test_has_waiting_beyond_service_time(
    sampled: Interval, service_s: float, expected: bool
) -> None:
    assert has_waiting(sampled, service_s) is expected


@given(st.integers(0, 1000), st.integers(0, 10**6), st.floats(0, 1))
def test_wait_s_is_between_zero_and_time_taken(reads: int, read_ms: int, service_s: float) -> None:
    assert 0 <= wait_s(window(reads, read_ms), service_s) <= read_ms / 1000


LIMITS = build_limits(Rates(300.0, 300.0), "sum")


@pytest.mark.parametrize(
    ("windows", "waiting_windows", "is_throttled"),
    [
        ([30], 1, True),
        ([60, 30], 2, True),  # the first contains two windows of the limiter
        ([30, 0, 60], 3, True),  # samples while the limiter admits requests
        ([30, 30, 0, 60], 4, True),
        ([20, 20, 20], 3, False),
        ([60, 60, 60], 3, False),
        ([0], 1, False),
        ([1], 1, False),
    ],
)
def test_throttled_at_limit_if_the_rate_is_the_limit(
    windows: list[int], waiting_windows: int, is_throttled: bool
) -> None:
    sampled = tuple(window(reads, inflight=2) for reads in windows)
    expected = Throttle("base", "iops") if is_throttled else None
    assert throttled_at_limit(sampled, waiting_windows, None, LIMITS, 0.03, 0.1) == expected


def test_throttled_at_limit_until_a_window_off() -> None:
    behind = tuple(window(reads, inflight=2) for reads in (30, 30, 30, 5))
    assert throttled_at_limit(behind, 4, None, LIMITS, 0.03, 0.1) is None
    assert throttled_at_limit(behind, 4, "base", LIMITS, 0.03, 0.1) == Throttle("base", "iops")
    away = tuple(window(reads, inflight=2) for reads in (30, 5, 5, 5))
    assert throttled_at_limit(away, 4, "base", LIMITS, 0.03, 0.1) is None


def test_throttled_at_limit_needs_a_promise() -> None:
    assert throttled_at_limit((window(inflight=2),), 1, None, NO_LIMITS, 0.03, 0.1) is None


def intermittent(*reads: int, before: int = 0) -> Throttle | None:
    windows = tuple(window(each, read_ms=40, inflight=before) for each in reads[:-1])
    return throttled_intermittently((*windows, window(reads[-1], read_ms=40)), LIMITS, 0.03, 0.1)


def test_throttled_intermittently() -> None:
    often = (30, 30, 20, 20, 25, 20, 25, 20, 30)
    assert intermittent(*often, 27) == Throttle("base", "iops")
    assert intermittent(*often[:-1], 20, 30) == Throttle("base", "iops")
    assert intermittent(*often[:-1], 20, 27) is None  # neither was at the limit
    assert intermittent(*[30] * 10) is None  # the load does not vary
    assert intermittent(*often[1:], 27) is None  # too few windows
    assert intermittent(*often, 10) is None  # too few requests to be throttled
    assert intermittent(*often, 27, before=5) is None  # the requests waited in the window before
    assert intermittent(30, 20, 20, 20, 20, 20, 20, 20, 20, 25) is None
    assert intermittent(60, 60, 60, 20, 20, 25, 30, 30, 30, 27) is None  # above the limit


def test_throttled_at_flat_rate() -> None:
    flat = tuple(window(30, read_ms=960, inflight=32) for _ in range(20))
    assert throttled_at_flat_rate(flat) == Throttle("unknown", "unknown")
    assert throttled_at_flat_rate(flat[1:]) is None
    assert throttled_at_flat_rate((*flat[1:], window(30, read_ms=960, inflight=1))) is None
    brief = tuple(window(30, read_ms=20, inflight=32) for _ in range(20))
    assert throttled_at_flat_rate(brief) is None
    wandering = tuple(window(20 + 2 * n, read_ms=960, inflight=32) for n in range(20))
    assert throttled_at_flat_rate(wandering) is None
    rare = tuple(window(1, read_ms=960, inflight=32) for _ in range(20))
    assert throttled_at_flat_rate(rare) is None


@given(
    requests=st.integers(20, 2000),
    late=st.integers(0, 18),
    late_at=st.integers(1, 18),
)
def test_throttled_at_flat_rate_despite_a_late_sample(
    requests: int, late: int, late_at: int
) -> None:
    more = requests * late // 100
    amounts = [requests] * 20
    amounts[late_at] += more
    amounts[late_at + 1] -= more
    windows = tuple(
        window(each, read_ms=each * 20, inflight=32, seconds=0.1 * each / requests)
        for each in amounts
    )
    assert throttled_at_flat_rate(windows) == Throttle("unknown", "unknown")


def test_binding_limit_is_the_most_used() -> None:
    charges = (Charge("iops", read_s=1 / 300), Charge("bandwidth", read_byte_s=1 / 25e6))
    assert binding_limit(sum_windows((window(30),)), charges) == "iops"
    assert binding_limit(sum_windows((window(10, request_bytes=262144),)), charges) == "bandwidth"
    service = (Charge("service", read_s=1 / 300, read_byte_s=1 / 25e6),)
    assert binding_limit(sum_windows((window(30),)), service) == "iops"
    assert binding_limit(sum_windows((window(10, request_bytes=262144),)), service) == "bandwidth"
