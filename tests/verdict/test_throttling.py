"""Whether a disk is held at its limit, against simulated limiters that know."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
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
from support.scenario_verdicts import Judged, judged
from support.scenarios import BELOW, FREE, SCENARIOS, THROTTLED
from support.simulated_limiter import WINDOW_S, Closed, Medium, Open, Scenario

DETECTED_WITHIN_S = 0.3
WAIT_NOT_COMPARED = {
    "iops-300-poisson-120": "its queue grows, and what still waits at the end was not counted",
    "bandwidth-5": "a tenth of its few requests still waits at the end",
    "iops-300-thinking": "service times were learned from a few requests in whole milliseconds",
}
RATE_VARIES = {
    "burst-in-turns": "its credits end, and come back",
    "mixed-separate": "one of two limits is always reached, the other now and then",
    "mixed-time-shared": "what it adds up to depends on the mix, which is random",
    "below-600-lowered": "told of in the tests of verdicts",
}
SIGNATURE_UNSEEN = {
    "bandwidth-5": "ten requests in two seconds show no rate",
    "bandwidth-5-split": "twenty requests in two seconds show no rate",
    "mixed-time-shared": "its rate varies with its mix",
    "iops-300-synchronous": "one at a time",
    "iops-300-thinking": "one at a time",
    "iops-300-smooth-synchronous": "one at a time",
    "bandwidth-25-synchronous": "one at a time",
    "burst-then-base-synchronous": "one at a time",
    "below-600-of-1000-synchronous": "one at a time",
    "below-600-of-1000-shallow": "never held",
}
FEW_REQUESTS = {"bandwidth-5": "one request more or less is 1 % of its ten seconds"}
AT_ANY_TIME = [
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


def assert_seconds_are_right(found: Judged) -> None:
    """Two windows at each edge of each time that the disk was held may be wrong."""
    edges_s = 4 * WINDOW_S * len(found.episodes())
    assert found.throttled_s == pytest.approx(found.held_s, abs=0.02 * found.held_s + edges_s)


@pytest.mark.parametrize("name", THROTTLED)
def test_throttled_seconds_are_those_that_the_limiter_held(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.held_s > 4.0
    assert_seconds_are_right(found)
    assert {row.limit for row in found.said("throttled")} == {
        held.limit for held in found.truth if held.held
    }
    assert {row.level for row in found.said("throttled")} == {
        held.held_at for held in found.truth if held.held
    }


@pytest.mark.parametrize("name", THROTTLED)
def test_onset_and_end_are_seen_at_once(name: str) -> None:
    found = judged(SCENARIOS[name])
    for episode in found.episodes():
        onset = found.between(episode.start_s, episode.start_s + DETECTED_WITHIN_S)
        assert "throttled" in {row.verdict for row in onset}
        end = found.between(episode.end_s, episode.end_s + DETECTED_WITHIN_S)
        assert len(end) < 3 or any(row.verdict != "throttled" for row in end)


@pytest.mark.parametrize("name", sorted(THROTTLED.keys() - RATE_VARIES.keys()))
def test_the_ceiling_is_the_rate_at_which_the_disk_was_held(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert_ceiling_is_right(found, rel=0.02 if name in FEW_REQUESTS else 0.01)


def assert_ceiling_is_right(found: Judged, rel: float = 0.01) -> None:
    last = [held for held in found.truth if held.held][-1]
    alike = [
        held for held in found.truth if (held.held_at, held.limit) == (last.held_at, last.limit)
    ]
    steady = [held for held in alike if held.start_s > alike[0].start_s + 1.0]
    if last.limit == "iops":
        iops = sum(held.ops for held in steady) / len(steady) / WINDOW_S
        assert found.ceiling.iops == pytest.approx(iops, rel=rel)
    else:
        rate = sum(held.bytes for held in steady) / len(steady) / WINDOW_S
        assert found.ceiling.bytes_per_second == pytest.approx(rate, rel=rel)


@pytest.mark.parametrize("name", sorted(THROTTLED.keys() - WAIT_NOT_COMPARED.keys()))
def test_throttle_wait_is_what_the_limiter_made_requests_wait(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.throttle_wait_s == pytest.approx(found.held_io_s, rel=0.05)


@pytest.mark.parametrize("name", ["iops-300-poisson-90", "iops-1000-poisson-90"])
def test_a_load_near_the_limit_is_held_now_and_then(name: str) -> None:
    """A service time that never scatters shows too little waiting: real disks come nearer."""
    found = judged(SCENARIOS[name])
    assessed_s = sum(row.window_s or 0.0 for row in found.rows)
    assert found.throttled_s / assessed_s == pytest.approx(found.held_s / assessed_s, abs=0.09)


@pytest.mark.parametrize("name", ["iops-300-bursts", "iops-300-bursts-open"])
def test_short_holds_are_seen(name: str) -> None:
    found = judged(SCENARIOS[name])
    assert found.throttled_s > 0.9
    assert_seconds_are_right(found)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", FREE)
def test_what_nobody_limits_is_never_throttled(name: str, known: bool) -> None:
    scenario = SCENARIOS[name]
    found = judged(scenario if known else replace(scenario, terms=None))
    assert found.said("throttled") == []


@pytest.mark.parametrize("name", [n for n in THROTTLED | BELOW if n not in SIGNATURE_UNSEEN])
def test_a_limit_that_nobody_told_is_seen_by_its_signature(name: str) -> None:
    scenario = SCENARIOS[name]
    found = judged(replace(scenario, terms=None))
    throttled = found.said("throttled")
    assert {(row.limit, row.level) for row in throttled} == {("unknown", "unknown")}
    deep_from_s = next(row.monotonic_s for row in found.rows if (row.inflight or 0) > 1)
    assert throttled[0].monotonic_s < deep_from_s + 2.5
    if name not in RATE_VARIES:
        assert_ceiling_is_right(found)


@pytest.mark.parametrize("name", SIGNATURE_UNSEEN)
def test_without_terms_nothing_is_guessed(name: str) -> None:
    found = judged(replace(SCENARIOS[name], terms=None))
    assert {row.verdict for row in found.rows} == {"idle", "unproven"}


def test_an_unknown_limit_is_known_again_at_depth_one() -> None:
    found = judged(replace(SCENARIOS["iops-300-deep-then-synchronous"], terms=None))
    start_s = found.rows[0].monotonic_s
    alone = found.between(start_s + 5.5, start_s + 9.8)
    assert {row.inflight for row in alone} == {1}
    assert {row.verdict for row in alone} == {"throttled"}


@pytest.mark.parametrize("phase_s", [0.01, 0.037, 0.06, 0.09])
def test_peaks_above_the_promise_are_no_limit(phase_s: float) -> None:
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
    assert len(found.said("met")) > 15
    assert len(found.said("throttled")) <= 1  # a window has that rate by chance


def at(name: str, phase_s: float, seed: int) -> Scenario:
    return replace(SCENARIOS[name], sampler_phase_s=phase_s, seed=seed)


@hypothesis_settings(max_examples=40)
@given(
    name=st.sampled_from(AT_ANY_TIME),
    phase_s=st.floats(0.001, 0.099),
    seed=st.integers(0, 99),
)
def test_the_sampler_may_come_at_any_moment(name: str, phase_s: float, seed: int) -> None:
    assert_seconds_are_right(judged(at(name, phase_s, seed)))


@hypothesis_settings(max_examples=20)
@given(
    name=st.sampled_from(AT_ANY_TIME),
    phase_s=st.floats(0, 0.0005) | st.floats(0.0995, 0.0999),
    seed=st.integers(0, 99),
)
def test_little_is_missed_where_limiter_and_sampler_act_at_once(
    name: str, phase_s: float, seed: int
) -> None:
    found = judged(at(name, phase_s, seed))
    edges_s = 4 * WINDOW_S * len(found.episodes())
    assert found.throttled_s == pytest.approx(found.held_s, abs=0.1 * found.held_s + edges_s)


@hypothesis_settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(FREE.keys() - {"steady-90-fast"})),
    phase_s=st.floats(0, 0.0999),
    seed=st.integers(0, 99),
    known=st.booleans(),
)
def test_no_moment_makes_a_limit_of_none(
    name: str, phase_s: float, seed: int, known: bool
) -> None:
    scenario = at(name, phase_s, seed)
    found = judged(scenario if known else replace(scenario, terms=None))
    assert found.said("throttled") == []


@pytest.mark.parametrize(
    ("seen", "floor_s", "expected"),
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
def test_requests_wait_if_they_take_longer_than_service(
    seen: Interval, floor_s: float, expected: bool
) -> None:
    assert has_waiting(seen, floor_s) is expected


@given(st.integers(0, 1000), st.integers(0, 10**6), st.floats(0, 1))
def test_waiting_is_never_negative_nor_longer_than_it_took(
    reads: int, read_ms: int, floor_s: float
) -> None:
    assert 0 <= wait_s(window(reads, read_ms), floor_s) <= read_ms / 1000


LIMITS = build_limits(Rates(300.0, 300.0), "sum")


@pytest.mark.parametrize(
    ("windows", "run", "held"),
    [
        ([30], 1, True),
        ([60, 30], 2, True),  # the first holds two windows of the limiter
        ([30, 0, 60], 3, True),  # samples at the moment at which the limiter lets go
        ([30, 30, 0, 60], 4, True),
        ([20, 20, 20], 3, False),
        ([60, 60, 60], 3, False),
        ([0], 1, False),
        ([1], 1, False),
    ],
)
def test_a_disk_is_held_if_its_rate_is_that_of_the_limit(
    windows: list[int], run: int, held: bool
) -> None:
    seen = tuple(window(reads, inflight=2) for reads in windows)
    expected = Throttle("base", "iops") if held else None
    assert throttled_at_limit(seen, run, None, LIMITS, 0.03, 0.1) == expected


def test_what_was_held_still_is_until_it_is_a_whole_window_off() -> None:
    behind = tuple(window(reads, inflight=2) for reads in (30, 30, 30, 5))
    assert throttled_at_limit(behind, 4, None, LIMITS, 0.03, 0.1) is None
    assert throttled_at_limit(behind, 4, "base", LIMITS, 0.03, 0.1) == Throttle("base", "iops")
    away = tuple(window(reads, inflight=2) for reads in (30, 5, 5, 5))
    assert throttled_at_limit(away, 4, "base", LIMITS, 0.03, 0.1) is None


def test_without_a_promise_no_rate_is_that_of_a_limit() -> None:
    assert throttled_at_limit((window(inflight=2),), 1, None, NO_LIMITS, 0.03, 0.1) is None


def touching(*reads: int, before: int = 0) -> Throttle | None:
    windows = tuple(window(each, read_ms=40, inflight=before) for each in reads[:-1])
    return throttled_intermittently((*windows, window(reads[-1], read_ms=40)), LIMITS, 0.03, 0.1)


def test_a_load_that_varies_touches_its_limit() -> None:
    often = (30, 30, 20, 20, 25, 20, 25, 20, 30)
    assert touching(*often, 27) == Throttle("base", "iops")
    assert touching(*often[:-1], 20, 30) == Throttle("base", "iops")
    assert touching(*often[:-1], 20, 27) is None  # neither was at the limit
    assert touching(*[30] * 10) is None  # nothing varies
    assert touching(*often[1:], 27) is None  # too little was seen
    assert touching(*often, 10) is None  # so few requests were not held
    assert touching(*often, 27, before=5) is None  # they waited in the window before
    assert touching(30, 20, 20, 20, 20, 20, 20, 20, 20, 25) is None
    assert touching(60, 60, 60, 20, 20, 25, 30, 30, 30, 27) is None  # above the limit


def test_a_flat_rate_is_a_limit() -> None:
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
def test_one_late_sample_does_not_hide_a_flat_rate(requests: int, late: int, late_at: int) -> None:
    more = requests * late // 100
    amounts = [requests] * 20
    amounts[late_at] += more
    amounts[late_at + 1] -= more
    windows = tuple(
        window(each, read_ms=each * 20, inflight=32, seconds=0.1 * each / requests)
        for each in amounts
    )
    assert throttled_at_flat_rate(windows) == Throttle("unknown", "unknown")


def test_the_binding_limit_is_the_fullest() -> None:
    charges = (Charge("iops", read_s=1 / 300), Charge("bandwidth", read_byte_s=1 / 25e6))
    assert binding_limit(sum_windows((window(30),)), charges) == "iops"
    assert binding_limit(sum_windows((window(10, request_bytes=262144),)), charges) == "bandwidth"
    service = (Charge("service", read_s=1 / 300, read_byte_s=1 / 25e6),)
    assert binding_limit(sum_windows((window(30),)), service) == "iops"
    assert binding_limit(sum_windows((window(10, request_bytes=262144),)), service) == "bandwidth"
