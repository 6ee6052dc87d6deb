import math
import random

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumTerms
from disksla.verdict.interval import Interval
from disksla.verdict.limiter_window import limiter_window, window_length_s
from support.scenario_verdicts import judged
from support.simulated_limiter import Closed, Limiter, Medium, Scenario, summed

TICK_S = 0.1


def release(requests: int, seconds: float = TICK_S) -> Interval:
    return Interval(
        end_s=0.0,
        seconds=seconds,
        reads=requests,
        writes=0,
        read_bytes=4096 * requests,
        written_bytes=0,
        read_ms=100 * requests,
        write_ms=0,
        flushes=0,
        inflight=8,
        busy_ms=round(1000 * seconds),
    )


def admitted(requests: float, window_s: float, phase_s: float, samples: int) -> list[Interval]:
    """Return what samples count that a limiter admits at the start of its windows."""
    found = []
    before = silent = 0
    for number in range(samples + 1):
        windows = math.floor((number * TICK_S + phase_s) / window_s)
        total = math.floor(windows * requests)
        if number and total == before:
            silent += 1
            continue
        if number:
            found.append(release(total - before, (silent + 1) * TICK_S))
        before, silent = total, 0
    return found


@given(
    requests=st.integers(40, 400),
    window_s=st.one_of(st.floats(0.025, 0.08), st.floats(0.13, 0.8)),
    phase_s=st.floats(0.0, 0.1),
)
def test_window_that_is_no_multiple_of_samples_is_found(
    requests: float, window_s: float, phase_s: float
) -> None:
    each = TICK_S / window_s
    hypothesis.assume(abs(each - round(each)) > 0.1 or window_s > TICK_S)  # else, it is a line
    releases = admitted(requests, window_s, phase_s, 100)[-32:]
    found = limiter_window(tuple(releases), TICK_S)
    assert found is not None
    seconds = sum(each.seconds for each in releases)
    rate = found.amount / found.seconds
    assert rate == pytest.approx(requests / window_s, rel=max(window_s, TICK_S) / seconds + 0.02)


@given(
    requests=st.integers(20, 400),
    window_s=st.one_of(st.floats(0.021, 0.09), st.floats(0.11, 0.24)),
    phase_s=st.floats(0.0, 0.1),
)
def test_length_of_a_window_is_right_or_not_known(
    requests: float, window_s: float, phase_s: float
) -> None:
    releases = tuple(admitted(requests, window_s, phase_s, 100)[-32:])
    found = window_length_s(releases, TICK_S)
    each = TICK_S / window_s
    if abs(each - round(each)) > 0.1 or window_s > TICK_S + 0.02:
        assert found == pytest.approx(window_s, rel=0.05)
    else:
        assert found is None or found == pytest.approx(window_s, rel=0.05)


@pytest.mark.parametrize("in_each", [1, 2, 3, 5])
def test_length_of_a_window_is_not_known_if_as_many_fall_into_each_sample(in_each: int) -> None:
    releases = admitted(40, TICK_S / in_each, 0.003, 40)[-32:]
    assert window_length_s(tuple(releases), TICK_S) is None


@pytest.mark.parametrize(
    "amounts",
    [
        [80] * 3 + [112, 48] + [80] * 9,  # windows of 80: one ended after a late sample
        [80] * 8 + [40, 120] + [80] * 20,
        [80] * 9 + [40] + [80] * 20,
    ],
)
def test_length_of_a_window_is_not_known_if_it_may_be_twice_as_long(amounts: list[int]) -> None:
    releases = tuple(release(amount) for amount in amounts)
    assert limiter_window(releases, TICK_S) is not None
    assert window_length_s(releases, TICK_S) is None


def test_window_may_have_few_of_the_requests_of_a_sample() -> None:
    """Samples of a limiter that admits 15.3 every 17 ms: six windows, and now and then five."""
    releases = tuple(release(amount) for amount in ([92, 92, 91, 92, 92, 92, 92, 77] * 4))
    window = limiter_window(releases, TICK_S)
    assert window is not None
    assert window.amount == pytest.approx(15.3, rel=0.01)
    assert window.seconds == pytest.approx(0.017, rel=0.01)


def test_constant_rate_has_no_windows_although_samples_are_late() -> None:
    """Each sample has a whole number of 10 ms, and so many requests."""
    late = [release(297, 0.11), release(243, 0.09)] * 6
    assert limiter_window((*late, *[release(270)] * 10), TICK_S) is None


def test_one_window_in_each_sample_is_any_constant_rate() -> None:
    assert limiter_window(tuple([release(60)] * 20), TICK_S) is None
    late = [*[release(60)] * 10, release(120, 2 * TICK_S), *[release(60)] * 10]
    assert limiter_window(tuple(late), TICK_S) is None


def test_too_few_requests_or_releases_have_no_window() -> None:
    assert limiter_window(tuple([release(30), release(60)] * 2), TICK_S) is None
    assert limiter_window(tuple([release(0)] * 20), TICK_S) is None
    assert limiter_window(tuple([release(3), release(6)] * 10), TICK_S) is None


def test_sums_that_are_no_whole_numbers_of_windows_have_none() -> None:
    uneven = [release(amount) for amount in (30, 60, 41, 52, 37, 60, 33, 58, 49, 44)]
    assert limiter_window(tuple(uneven), TICK_S) is None


def test_windows_at_a_varying_rate_are_batches() -> None:
    batches = [release(40), release(80)] * 5 + [release(120), release(160)] * 5
    assert limiter_window(tuple(batches), TICK_S) is None


@pytest.mark.parametrize("seed", range(8))
def test_counts_that_vary_by_chance_have_no_window(seed: int) -> None:
    chance = random.Random(seed)
    amounts = [max(1, round(chance.gauss(100, 10))) for _ in range(32)]
    assert limiter_window(tuple(map(release, amounts)), TICK_S) is None


@pytest.mark.parametrize("window_s", [0.017, 0.043, 0.07, 0.13, 0.27, 0.73])
@pytest.mark.parametrize("depth", [1, 16])
def test_unknown_limit_with_any_window_is_found(window_s: float, depth: int) -> None:
    scenario = Scenario(
        limiter=Limiter(buckets=summed(900), window_s=window_s),
        loads=(Closed(depth=depth),),
        medium=Medium(service_s=0.0001, jitter=0.3),
        seconds=20.0,
    )
    found = judged(scenario)
    assert found.throttled_s > (0.6 if depth == 1 else 0.7) * found.true_throttled_s
    assert {row.limit for row in found.with_verdict("throttled")} == {"unknown"}


@pytest.mark.parametrize("window_s", [0.041, 0.074, 0.0783])
def test_one_request_at_a_time_does_not_teach_what_a_limiter_makes_it_take(
    window_s: float,
) -> None:
    """Its windows are no multiple of samples, so the number of requests varies."""
    scenario = Scenario(
        limiter=Limiter(buckets=summed(1616), window_s=window_s),
        loads=(Closed(depth=1, active=((1.67, 26.0),)),),
        medium=Medium(service_s=0.00009, jitter=0.3),
        terms=SumTerms(iops=1616.0),
        seconds=28.0,
    )
    found = judged(scenario)
    assert found.throttled_s > 0.5 * found.true_throttled_s  # a tenth, before
