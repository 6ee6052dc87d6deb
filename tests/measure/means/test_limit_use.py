"""For how long a disk ran at its limits, by means."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.means.limit_use import LimitUse, use_of_limits
from disksla.measure.means.mean import Mean, total_means
from disksla.promise.catalogue.cost_model import Rates
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import NO_LIMITS, Bucket, Burst, Limits, build_limits
from support.recorded_means import mean, means
from support.simulated_host import CATALOG

LIMITS = build_limits(Rates(1000, 1000, 1e8, 1e8), "sum")
SEPARATE = build_limits(Rates(1000, 500, None, None), "separate")
GIB = 2**30
GP2 = derive_limits(CATALOG["aws.gp2"], 100 * GIB)
"""300 IOPS, 3000 while there are credits."""
BASE, PEAK = Rates(300, 300, None, None), Rates(3000, 3000, None, None)
BUCKETS = {
    "use": Bucket("iops", 50_000.0, 300.0, 300.0, 3000.0),
    "excess": Bucket("iops", 50_000.0, 30.0, 300.0, 3000.0, drain="excess"),
    "constant": Bucket("iops", 50_000.0, 30.0, 300.0, 3000.0, drain="constant"),
}


def at(found: LimitUse) -> list[tuple[float, float, str, str]]:
    return [(each.start_s, each.end_s, each.level, each.limit) for each in found.at_limit]


@pytest.mark.parametrize(
    ("iops", "inflight", "expected_s"),
    [
        ((1000, 1000), 8.0, 30),
        ((1000, 1000, 500, 1000), 8.0, 30),
        ((1000, 500, 1000), 8.0, 0),
        ((988, 1025), 8.0, 30),
        ((987, 987), 8.0, 0),
        ((1026, 1026), 8.0, 0),
        ((900, 990, 1020, 990, 0), 8.0, 45),
        ((1000, 1000), 0.5, 30),
        ((1000, 1000), 0.49, 0),
    ],
)
def test_two_intervals_at_the_limit_with_requests_in_flight(
    iops: Sequence[float], inflight: float, expected_s: float
) -> None:
    assert use_of_limits(means(*iops, inflight=inflight), LIMITS).at_limit_s == expected_s


def test_intervals_with_a_gap_between_them_do_not_follow_each_other() -> None:
    apart = [mean(15, 1000), mean(45, 1000), mean(60, 1000), mean(90, 1000)]
    assert at(use_of_limits(apart, LIMITS)) == [(30, 60, "base", "iops")]
    large = [mean(15 * n, 100, request_bytes=10**6) for n in (1, 2)]
    assert at(use_of_limits(large, LIMITS)) == [(0, 30, "base", "bandwidth")]


def test_flushes_may_be_among_the_writes() -> None:
    with_flushes = [mean(15 * n, 1500, write_share=1.0, flushes=7500) for n in (1, 2)]
    found = use_of_limits(with_flushes, LIMITS)
    assert (found.at_limit_s, found.largest_load, found.beyond_s) == (30, 1.0, 0)


@pytest.mark.parametrize(
    ("write_share", "iops", "limits", "seconds"),
    [
        (0.0, 1000, SEPARATE, 30),
        (1.0, 500, SEPARATE, 30),
        (0.5, 1000, SEPARATE, 0),
        (0.5, 500, SEPARATE, 0),
        (0.5, 1000, LIMITS, 30),
    ],
)
def test_requests_that_are_not_told_apart(
    write_share: float, iops: float, limits: Limits, seconds: float
) -> None:
    mixed = [mean(15 * n, iops, write_share=write_share, is_told_apart=False) for n in (1, 2)]
    assert use_of_limits(mixed, limits).at_limit_s == seconds


def test_loads_and_what_is_beyond_the_limits() -> None:
    found = use_of_limits(means(810, 960, 1200, 100), LIMITS)
    assert (found.high_s, found.near_s, found.beyond_s) == (45, 30, 15)
    assert (found.largest_load, found.largest_timestamp_s) == (1.2, 45)
    assert (found.largest_iops, found.seconds, found.interval_s) == (1200, 60, 15)


def test_latency_by_the_law_of_little() -> None:
    found = use_of_limits([*means(1000, 1000), mean(45, 400, inflight=1.0)], LIMITS)
    assert found.latency_at_limit.request_s == pytest.approx(0.008)
    assert found.latency_otherwise.request_s == pytest.approx(0.0025)
    unknown = use_of_limits(means(50, 0), NO_LIMITS)
    assert (unknown.largest_load, unknown.at_limit, unknown.largest_iops) == (None, (), 50)


def test_levels_of_a_burst() -> None:
    at_both = use_of_limits(means(3000, 3000, 300, 300), GP2)
    assert at(at_both) == [(0, 30, "burst", "iops"), (30, 60, "base", "iops")]
    rested = means(*[0] * 3000, 300, 300)
    assert not use_of_limits(rested, GP2).at_limit, "its credits are certainly not used up"
    unlimited = build_limits(
        Rates(300, 300), "sum", burst=Burst(Rates(3000, 3000), length="unlimited")
    )
    found = use_of_limits(means(300, 300, 3000, 3000), unlimited)
    assert at(found) == [(30, 60, "burst", "iops")]
    assert found.largest_load == 1.0


def test_credits_are_not_known_after_a_gap_and_less_with_flushes() -> None:
    def upper(means_of_disk: list[Mean]) -> float:
        return use_of_limits(means_of_disk, limits).credits[0].upper_ratio

    limits = build_limits(BASE, "sum", burst=Burst(PEAK, (BUCKETS["use"],)))
    busy = [mean(15 * n, 3000, write_share=1.0) for n in (1, 2)]
    assert upper(busy) < 1
    assert upper([*busy, mean(600, 0)]) == 1
    flushed = [mean(15 * n, 3000, write_share=1.0, flushes=22_500) for n in (1, 2)]
    assert upper(busy) < upper(flushed) == 1


def test_disks_together_have_the_intervals_of_all() -> None:
    both = total_means([means(400, 500, 500), means(600, 500)])
    assert at(use_of_limits(both, LIMITS)) == [(0, 30, "base", "iops")]
    assert [each.inflight for each in both] == [16, 16]


def drained(bucket: Bucket, used: float) -> float:
    """Return what a second of use drains, by the table of `Bucket`."""
    excess = max(0.0, used - bucket.base_per_second)
    constant = bucket.peak_per_second - bucket.base_per_second if excess else 0.0
    return {"use": used, "excess": excess, "constant": constant}[bucket.drain]


def recorded(
    chance: Random, limits: Limits, seconds: int, number: int
) -> tuple[list[Mean], list[float]]:
    """Return intervals of a disk with credits, and what was left of them after each.

    Requests come evenly, or all at once in the middle of the interval.
    """
    [bucket] = limits.buckets
    level = chance.random() * bucket.capacity
    found, truth = [], []
    for count in range(1, number + 1):
        asked = chance.choice((0, 0.3, 1, 1, 3, 12)) * bucket.base_per_second * chance.random()
        is_burst = chance.random() < 0.5
        total = 0
        for step in range(seconds):
            wanted = asked * (seconds if step == seconds // 2 else 0) if is_burst else asked
            has_credits = level >= drained(bucket, bucket.peak_per_second)
            most = bucket.peak_per_second if has_credits else bucket.base_per_second
            used = int(min(wanted, most))
            level = min(
                bucket.capacity, max(0.0, level - drained(bucket, used)) + bucket.fill_per_second
            )
            total += used
        found.append(mean(count * seconds, total / seconds, seconds=seconds, request_bytes=2**18))
        truth.append(level)
    return found, truth


@given(
    st.randoms(use_true_random=False),
    st.sampled_from((15, 60, 600)),
    st.sampled_from(sorted(BUCKETS)),
)
def test_bounds_of_credits_hold_whatever_is_within_an_interval(
    chance: Random, seconds: int, drain: str
) -> None:
    bucket = BUCKETS[drain]
    limits = build_limits(BASE, "sum", burst=Burst(PEAK, (bucket,)))
    found, truth = recorded(chance, limits, seconds, 40)
    slack = 2 * bucket.peak_per_second / bucket.capacity  # the truth has steps of a second
    for number, left in enumerate(truth, 1):
        [level] = use_of_limits(found[:number], limits).credits
        share = left / bucket.capacity
        assert level.lower_ratio - slack <= share <= level.upper_ratio + slack


def test_ten_days_of_a_gp2() -> None:
    """It is used up every night, as the estimate finds; that it rests is certain."""
    night, day = [*[3000] * 40, *[300] * 120], [60] * 1280
    found = use_of_limits(means(*(night + day) * 10, seconds=60.0, inflight=8), GP2)
    [credits_left] = found.credits
    assert found.at_limit_s == 10 * 160 * 60
    assert credits_left.maybe_empty_s == pytest.approx(10 * 120 * 60, rel=0.15)
    assert credits_left.empty_s == 0
    assert credits_left.lower_ratio > 0.99
