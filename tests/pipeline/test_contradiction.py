"""What the provider's count contradicts: limits of the terms, bounds of credits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import CustomTerms, SumBurst, SumTerms
from disksla.credits.account import CreditAccount
from disksla.credits.bounds import from_bounds
from disksla.limits.limits import NO_LIMITS, Bucket, Burst, Limits, Rates, build_limits
from disksla.pipeline.contradiction import Contradiction, contradictions
from disksla.pipeline.provider_span import ProviderSpan
from disksla.units import MIB
from pipeline.test_provider_agreement import (
    AFTER_S,
    comparison_of,
    last_of,
    seconds_apart,
)
from support.examples import halved
from support.simulated_limiter import Closed, Limiter, Load, Open, Run, Scenario, run, summed
from support.simulated_pages import readings, with_readings

RATES = Rates(1000.0, 1000.0, 100.0 * MIB, 100.0 * MIB)
LIMITS = build_limits(RATES, "sum")
BUCKET = Bucket("iops", 10_000.0, 1000.0, 1000.0, 3000.0)
BURSTING = build_limits(RATES, "sum", burst=Burst(Rates(3000.0, 3000.0), (BUCKET,)))


def span(served: float, served_bytes: float = 0.0, **throttled_s: float) -> ProviderSpan:
    seconds = (throttled_s.get("iops", 0.0), throttled_s.get("bandwidth", 0.0), 0.0, 0.0)
    return ProviderSpan(
        0.0, 1.0, seconds, (round(served / 2), round(served / 2), round(served_bytes), 0)
    )


def credits_left(lower: float) -> CreditAccount:
    return CreditAccount((from_bounds(BUCKET, lower, 10_000.0, (lower + 10_000.0) / 2),), 0.0)


@pytest.mark.parametrize(
    ("limits", "served", "expected"),
    [
        (LIMITS, span(1000, iops=1.0), []),
        (LIMITS, span(800, iops=1.0), []),
        (LIMITS, span(700, iops=1.0), ["limit_too_high"]),
        (LIMITS, span(700, iops=0.8), []),
        (LIMITS, span(700, 100 * MIB, bandwidth=1.0), []),
        (LIMITS, span(700, 70 * MIB, bandwidth=1.0), ["limit_too_high"]),
        (LIMITS, span(1300), ["limit_too_low"]),
        (LIMITS, span(1100), []),
        (LIMITS, span(1300, iops=0.1), []),
        (BURSTING, span(1300), []),
        (BURSTING, span(3700), ["limit_too_low"]),
        (NO_LIMITS, span(1300, iops=1.0), []),
        (NO_LIMITS, span(1300), []),
    ],
)
def test_limits(limits: Limits, served: ProviderSpan, expected: list[Contradiction]) -> None:
    assert list(contradictions(served, limits, None)) == expected


@pytest.mark.parametrize(
    ("lower", "served", "expected"),
    [
        (5000.0, span(1000, iops=1.0), ["credits_too_high"]),
        (500.0, span(1000, iops=1.0), []),
        (0.0, span(1000, iops=1.0), []),
        (5000.0, span(3000, iops=1.0), []),
        (5000.0, span(1000, 100 * MIB, bandwidth=1.0), []),
    ],
)
def test_credits(lower: float, served: ProviderSpan, expected: list[Contradiction]) -> None:
    assert list(contradictions(served, BURSTING, credits_left(lower))) == expected


def simulated(
    true_iops: float, terms: CustomTerms, load: Load, **burst: float
) -> dict[Contradiction, float]:
    scenario = Scenario(
        loads=(replace(load, active=((1.0, 7.0),)),),
        limiter=Limiter(buckets=summed(true_iops, **burst)),
        seconds=7.0 + AFTER_S,
        terms=terms,
    )
    result: Run = run(scenario)
    messages = readings(result.truth, seconds_apart(scenario, 1.0))
    disk_state = last_of(scenario, with_readings(result.ticks, messages))
    return comparison_of(disk_state).by_contradiction()


@halved()
@given(st.integers(100, 1000), st.integers(1, 32), st.sampled_from((None, 500.0, 20_000.0)))
def test_right_terms_are_never_contradicted(iops: int, depth: int, left: float | None) -> None:
    peak, load = 3.0 * iops, Closed(depth=depth)
    if left is None:
        assert simulated(iops, SumTerms(iops=float(iops)), load) == {}
        return
    burst = {"peak_per_second": peak, "capacity": 30_000.0, "initial": left}
    terms = SumTerms(iops=float(iops), burst=SumBurst(iops=peak, iops_credits=30_000.0))
    assert simulated(iops, terms, load, **burst) == {}


def test_terms_of_a_larger_disk_are_contradicted() -> None:
    found = simulated(500.0, SumTerms(iops=1000.0), Closed(depth=16))
    assert found.keys() == {"limit_too_high"}
    assert 4 < found["limit_too_high"] < 7


def test_terms_of_a_smaller_disk_are_contradicted() -> None:
    found = simulated(5000.0, SumTerms(iops=500.0), Open(per_second=2000.0))
    assert found.keys() == {"limit_too_low"}
    assert 4 < found["limit_too_low"] < 8
