"""The depth of the token bucket of a limiter, as far as a disk has used it."""

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.limits import Charge
from disksla.units import KIB
from disksla.verdict.burst_depth import Served, ServedCurve
from disksla.verdict.interval import Interval
from support.scenario_verdicts import judged
from support.scenarios import SCENARIOS
from support.simulated_limiter import Closed, Limiter, Load, Open, Scenario, separate, summed

TICK_S = 0.1
MOST_STARTS = 32


def curve_of(requests: list[int], from_s: float = 100.0, flushes: int = 0) -> ServedCurve:
    """Return the curve of a disk that served so many writes in each sample; 0 is idle."""
    curve = ServedCurve()
    for number, writes in enumerate(requests):
        end_s = from_s + (number + 1) * TICK_S
        interval = Interval(end_s, TICK_S, 0, writes, 0, writes * 4096, 0, 0, 1, flushes)
        if writes:
            curve = curve.plus(interval, end_s - TICK_S, end_s)
    return curve


def charge_of(iops: float) -> tuple[Charge, ...]:
    return (Charge("iops", 1 / iops, 1 / iops),)


def by_all_times(requests: list[int], iops: float) -> float:
    """Return the most that was served beyond a rate since the start of any sample, in seconds."""
    served = [sum(requests[number:]) for number in range(len(requests))]
    return max(
        each / iops - (len(requests) - number) * TICK_S for number, each in enumerate(served)
    )


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=60).filter(lambda counts: counts[-1]),
    st.integers(10, 4000),
)
@example([0] * 20 + [300] * 20 + [30] * 20, 300)
def test_begin_of_a_burst_is_found_for_any_rate(requests: list[int], iops: int) -> None:
    found = curve_of(requests).beyond_s(charge_of(iops), 0.0)
    assert found == pytest.approx(max(0.0, by_all_times(requests, iops)), abs=1e-6)


@given(st.integers(), st.integers(50, 2000), st.floats(0.2, 60))
def test_no_load_exceeds_the_depth_of_a_token_bucket(seed: int, iops: int, depth_s: float) -> None:
    """A bucket that is full at first admits its depth beyond its rate, and never more."""
    random = Random(seed)
    tokens = capacity = depth_s * iops
    curve, demand = ServedCurve(), 0.0
    for number in range(600):
        if number % 50 == 0:
            demand = random.choice((0.0, 0.5, 1.0, 3.0, 20.0))
        tokens = min(capacity, tokens + iops * TICK_S)
        admitted = min(int(tokens), int(demand * iops * TICK_S))
        tokens -= admitted
        end_s = (number + 1) * TICK_S
        window = Interval(end_s, TICK_S, admitted, 0, admitted * 4096, 0, 0, 0, 1)
        curve = curve.plus(window, end_s - TICK_S, end_s)
        beyond = curve.beyond_s(charge_of(iops), 0.0) * iops
        assert beyond <= capacity + 1e-6
        assert beyond == pytest.approx(capacity - tokens, abs=iops * TICK_S + 1e-6)


@given(st.integers())
def test_few_starts_are_kept_of_a_long_ramp(seed: int) -> None:
    """The rate increases all day, so that each sample might be the start of a burst."""
    random = Random(seed)
    steps = sorted(random.randint(1, 3000) for _ in range(400))
    curve = curve_of(steps)
    assert len(curve.starts) <= MOST_STARTS
    for iops in (100, 1000, 5000, 20_000):
        found, true = curve.beyond_s(charge_of(iops), 0.0), by_all_times(steps, iops)
        assert 0.98 * true - TICK_S <= found <= true + 1e-6


def test_half_of_the_writes_may_be_empty_flushes() -> None:
    requests = [300] * 20
    counted = curve_of(requests, flushes=1).beyond_s(charge_of(300), 0.0)
    assert counted == pytest.approx(by_all_times([150] * 20, 300))


def test_in_a_gap_requests_may_have_been_served_at_any_time() -> None:
    before = curve_of([30] * 10)
    gap = Interval(161.0, 0.0, 0, 3000, 0, 3000 * 4096, 0, 0, 1)
    after = before.plus(gap, 160.9, 161.0)
    assert after.last == Served(161.0, 0, 3300, 0, 3300 * 4096)
    assert after.beyond_s(charge_of(300), 0.0) == 0.0
    assert after.beyond_s(charge_of(30), 0.0) == pytest.approx(3300 / 30 - 61)


def test_curve_stays_where_the_clock_stands_still() -> None:
    before = curve_of([30] * 10)
    gap = Interval(101.0, 0.0, 0, 3000, 0, 3000 * 4096, 0, 0, 1)
    assert before.plus(gap, 101.0, 101.0) == before
    assert before.plus(gap, 50.0, 50.1) == before


BURST = summed(300, peak_per_second=2000, capacity=8000)
BURST_TERMS = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0))


@pytest.mark.parametrize(
    "terms",
    [
        None,
        SumTerms(iops=300.0),
        SumTerms(iops=300.0, burst=SumBurst(iops=2000, iops_credits=8000)),
    ],
    ids=["no-terms", "terms-without-burst", "terms-with-burst"],
)
@pytest.mark.parametrize("load", [Closed(depth=32), Closed(depth=16, read_bytes=64 * KIB)])
def test_burst_is_learned_whatever_the_terms_say(terms: SumTerms | None, load: Load) -> None:
    scenario = Scenario(limiter=Limiter(buckets=BURST), loads=(load,), terms=terms, seconds=15.0)
    found = judged(scenario).ceiling
    assert found.iops == pytest.approx(300, rel=0.01)
    burst = found.limiter.burst_requests
    assert burst is not None
    assert 0.95 * 8000 <= burst <= 8000 + 60  # two windows of the limiter may be in one sample


@pytest.mark.parametrize("smooth", [False, True])
def test_burst_of_bytes_is_learned(smooth: bool) -> None:
    buckets = summed(None, 25e6, capacity=120e6, peak_per_second=60e6)
    scenario = Scenario(
        limiter=Limiter(buckets=buckets, window_s=None if smooth else 0.1),
        loads=(Closed(depth=16, read_bytes=64 * KIB),),
        terms=SumTerms(bytes_per_second=25e6) if smooth else None,
        seconds=26.0,
    )
    found = judged(scenario).ceiling
    assert found.bytes_per_second == pytest.approx(25e6, rel=0.01)
    burst = found.limiter.burst_bytes
    assert burst is not None
    assert 0.9 * 120e6 <= burst <= 120e6 + 5e6


def test_burst_of_a_limiter_with_long_windows_is_learned() -> None:
    limiter = Limiter(buckets=summed(400, capacity=4000, peak_per_second=2000), window_s=0.5)
    found = judged(Scenario(limiter=limiter, loads=(Closed(depth=32),), seconds=14.0)).ceiling
    observed = found.limiter
    assert observed.window_s == pytest.approx(0.5, rel=0.1)
    assert observed.burst_requests is not None
    assert 0.8 * 4000 <= observed.burst_requests <= 4000 + 400


OTHERS = ("burst", "lowered", "20000", "1000-poisson")  # the last ones have many requests
NO_BURST = sorted(name for name in SCENARIOS if not any(part in name for part in OTHERS))


@pytest.mark.parametrize("name", NO_BURST)
def test_limiter_without_a_burst_has_none(name: str) -> None:
    """Neither have disks without a limiter."""
    ceiling = judged(SCENARIOS[name]).state.monitored["vdx"].detector.ceiling
    assert ceiling is None or ceiling.limiter.burst_requests is None


def test_unlimited_reads_before_limited_writes_are_no_burst() -> None:
    """Reads and writes have limits of their own, of which only that of writes applies."""
    scenario = Scenario(
        limiter=Limiter(buckets=separate(3000, 300)),
        loads=(
            Open(per_second=1500, active=((0.53, 8.0),)),
            Closed(depth=8, write_share=1.0, active=((8.5, 16.0),)),
        ),
        seconds=16.0,
    )
    found = judged(scenario).ceiling
    assert found.iops == pytest.approx(300, rel=0.01)
    assert found.limiter.burst_requests is None
