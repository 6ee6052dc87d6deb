"""Bounds of burst credits, compared with simulated buckets whose level is known."""

import math
from itertools import chain, pairwise, repeat

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.promise.catalogue.burst_rules import UnitBoost, burst_for
from disksla.promise.catalogue.limits import Bucket, DrainKind, Rates
from disksla.verdict.credits.bounds import (
    NO_USE,
    THROTTLED_WITHIN_S,
    Credits,
    Use,
    advance,
    advance_unobserved,
    estimated_drain,
    exhaustion_s,
    from_bounds,
    initial,
    lasting_per_second,
    refill_s,
)
from support.examples import scaled
from support.simulated_bucket import WINDOW_MS, BurstLimiter, Load, Sample, sampled

IOPS = Bucket("iops", 8000.0, 300.0, 300.0, 2000.0)
BYTES = Bucket("bytes", 400e6, 25e6, 25e6, 60e6)
CONSTANT = Bucket("iops", 60_000.0, 100.0, 300.0, 2000.0, drain="constant")
EXCESS = Bucket("service_seconds", 108.0, 0.125, 1.0, 4.0, 1.0, "excess", baseline_depth_s=1.0)
BUCKETS = (IOPS, BYTES, EXCESS, CONSTANT)
DRAINS: tuple[DrainKind, ...] = ("use", "excess", "constant")
ROUNDING = 1e-9


def advanced(now: Credits, bucket: Bucket, sample: Sample) -> Credits:
    return advance(
        now,
        bucket,
        sample.seconds,
        Use.exactly(sample.use),
        sample.requests,
        sample.inflight,
        sample.throttled_at,
    )


def contains(now: Credits, bucket: Bucket, level: float) -> bool:
    rounding = ROUNDING * bucket.capacity
    return now.lower_credits - rounding <= level <= now.upper_credits + rounding


def width_share(now: Credits, bucket: Bucket) -> float:
    return (now.upper_credits - now.lower_credits) / bucket.capacity


def lately(bucket: Bucket) -> float:
    """Return what a bucket gets in the time after which it is known that it was empty."""
    return THROTTLED_WITHIN_S * bucket.fill_per_second


def is_in_order(now: Credits, bucket: Bucket) -> bool:
    return 0 <= now.lower_credits <= now.estimate_credits <= now.upper_credits <= bucket.capacity


@st.composite
def buckets(draw: st.DrawFn) -> Bucket:
    drain = draw(st.sampled_from(DRAINS))
    base = draw(st.sampled_from([1.0, 300.0, 25e6]))
    fill_share = 1.0 if drain == "use" else draw(st.sampled_from([0.01, 0.125, 0.5]))
    return Bucket(
        "iops",
        capacity=base * draw(st.sampled_from([2.0, 10.0, 27.0])),
        fill_per_second=base * fill_share,
        base_per_second=base,
        peak_per_second=base * draw(st.sampled_from([1.33, 2.0, 4.0, 6.6])),
        drain=drain,
        baseline_depth_s=draw(st.sampled_from([0.1, 1.0])),
    )


@st.composite
def limiters(draw: st.DrawFn) -> BurstLimiter:
    bucket = draw(buckets())
    level = draw(st.sampled_from([0.0, 1.0]) | st.floats(0, 1)) * bucket.capacity
    phase_ms = st.integers(0, WINDOW_MS - 1)
    windows = phase_ms if bucket.drain == "constant" else st.none() | phase_ms
    return BurstLimiter(bucket, level, draw(windows))


@st.composite
def load_lists(draw: st.DrawFn) -> list[Load]:
    """Draw loads: idle, deep, one at a time, steady and in bursts, with requests of one size."""
    base_share = draw(st.sampled_from([1 / 300, 0.01, 0.03]))

    def a_queue(duration_ms: int, depth: int) -> Load:
        return Load(duration_ms, base_share, depth=depth)

    def a_batch(duration_ms: int, every_ms: int, load: float) -> Load:
        size = max(1, round(load * every_ms / 1000 / base_share))
        return Load(duration_ms, base_share, batch=size, every_ms=every_ms)

    duration_ms = st.integers(100, 3000)
    loads = st.one_of(
        duration_ms.map(Load),
        st.builds(a_queue, duration_ms, st.sampled_from([1, 4, 32])),
        st.builds(
            a_batch,
            duration_ms,
            st.sampled_from([7, 33, 100, 130, 200, 400, 1000]),
            st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 2.0]),
        ),
    )
    return draw(st.lists(loads, min_size=1, max_size=6))


@st.composite
def first_intervals(draw: st.DrawFn) -> list[int]:
    """Draw intervals of about 100 ms, each ended up to 5 ms early or late."""
    late_ms = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=20))
    first_ms = 100 + late_ms[0]
    return [first_ms, *(100 + after_ms - before_ms for before_ms, after_ms in pairwise(late_ms))]


def at_start(limiter: BurstLimiter, *, is_known: bool) -> Credits:
    """Return the credits before the load: exact, or unknown."""
    if is_known:
        return from_bounds(limiter.bucket, limiter.level, limiter.level, limiter.level)
    return initial(limiter.bucket)


@scaled(250)
@given(limiters(), load_lists(), st.sampled_from([0, 1, 5, 20]), first_intervals(), st.booleans())
def test_bounds_contain_the_level_at_every_sample(
    limiter: BurstLimiter, loads: list[Load], service_ms: int, first_ms: list[int], is_known: bool
) -> None:
    bucket = limiter.bucket
    now = at_start(limiter, is_known=is_known)
    for sample in sampled(limiter, loads, service_ms, chain(first_ms, repeat(100))):
        now = advanced(now, bucket, sample)
        assert is_in_order(now, bucket)
        assert contains(now, bucket, sample.level), sample


@pytest.mark.parametrize("phase_ms", [None, 0, 25, 50, 75])
@pytest.mark.parametrize("drain", ["excess", "constant"])
@pytest.mark.parametrize("level_share", [0.5, 1.0])
def test_bounds_contain_the_level_for_bursts_split_by_samples(
    phase_ms: int | None, drain: DrainKind, level_share: float
) -> None:
    bucket = msgspec.structs.replace(
        EXCESS, peak_per_second=6.6, drain=drain, baseline_depth_s=0.1
    )
    burst = [Load(4, 0.01, batch=9, every_ms=2), Load(196)]
    for shift_ms in (*range(1, 96, 10), 96, 97, 98):
        limiter = BurstLimiter(bucket, level_share * bucket.capacity, phase_ms)
        now = at_start(limiter, is_known=True)
        for sample in sampled(limiter, [Load(shift_ms), *burst * 40], 0, repeat(100)):
            now = advanced(now, bucket, sample)
            assert contains(now, bucket, sample.level), sample


@scaled(100)
@given(
    limiters(), load_lists(), first_intervals(), st.integers(0, 30), st.floats(0, 3), st.booleans()
)
def test_bounds_contain_the_level_after_a_gap(
    limiter: BurstLimiter,
    loads: list[Load],
    first_ms: list[int],
    begins: int,
    uncertainty_s: float,
    is_use_known: bool,
) -> None:
    bucket = limiter.bucket
    now = at_start(limiter, is_known=is_use_known)
    samples = list(sampled(limiter, [*loads, Load(1500)], 1, chain(first_ms, repeat(100))))
    missed = samples[begins : begins + 10]
    for sample in samples[:begins]:
        now = advanced(now, bucket, sample)
    if missed:
        gap_s = sum(sample.seconds for sample in missed)
        use = Use.exactly(sum(sample.use for sample in missed)) if is_use_known else None
        shortest_s = max(0.0, gap_s - uncertainty_s)
        inflight = missed[-1].inflight
        now = advance_unobserved(now, bucket, shortest_s, gap_s + uncertainty_s, use, inflight)
        assert is_in_order(now, bucket)
        if use is not None or not inflight:
            assert contains(now, bucket, missed[-1].level)
    for sample in samples[begins + 10 :]:
        now = advanced(now, bucket, sample)
        assert contains(now, bucket, sample.level), sample


@given(
    st.sampled_from(BUCKETS),
    st.floats(0, 1),
    st.floats(0, 1),
    st.lists(st.floats(0.1, 5000), min_size=1, max_size=20),
)
def test_one_update_over_idle_time_equals_updates_of_its_parts(
    bucket: Bucket, one: float, other: float, parts_s: list[float]
) -> None:
    lower, upper = sorted((one * bucket.capacity, other * bucket.capacity))
    begun = advance(from_bounds(bucket, lower, upper, (lower + upper) / 2), bucket, 0.5, NO_USE)
    in_parts = begun
    for part_s in parts_s:
        in_parts = advance(in_parts, bucket, part_s, NO_USE)
    at_once = advance(begun, bucket, sum(parts_s), NO_USE)
    rounding = ROUNDING * bucket.capacity
    assert at_once.lower_credits == pytest.approx(in_parts.lower_credits, abs=rounding)
    assert at_once.upper_credits == pytest.approx(in_parts.upper_credits, abs=rounding)
    assert at_once.estimate_credits == pytest.approx(in_parts.estimate_credits, abs=rounding)
    assert at_once.low_credits == pytest.approx(in_parts.low_credits, abs=rounding)
    assert at_once.high_credits == pytest.approx(in_parts.high_credits, abs=rounding)


def drain_per_second(bucket: Bucket) -> float:
    """Return the credits per second that a burst at the peak drains."""
    return estimated_drain(bucket, 1.0, bucket.peak_per_second) - bucket.fill_per_second


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: f"{bucket.resource}-{bucket.drain}")
@pytest.mark.parametrize("phase_ms", [0, 37, 99])
def test_exhaustion_closes_the_bounds(bucket: Bucket, phase_ms: int) -> None:
    limiter = BurstLimiter(bucket, bucket.capacity * 0.3, phase_ms)
    burst_ms = int(bucket.capacity * 0.3 / drain_per_second(bucket) * 1000) + 1000
    idle_ms = int(bucket.capacity * 0.5 / bucket.fill_per_second * 1000)
    loads = [Load(burst_ms, 0.01, depth=8), Load(min(idle_ms, 200_000)), Load(3000, 0.01, depth=8)]
    now, elapsed_ms, checked = initial(bucket), 0.0, 0
    for sample in sampled(limiter, loads, 1, chain([63], repeat(100))):
        now = advanced(now, bucket, sample)
        elapsed_ms += sample.seconds * 1000
        if elapsed_ms < burst_ms - 100:
            continue
        checked += 1
        assert contains(now, bucket, sample.level)
        assert width_share(now, bucket) < 0.05 + lately(bucket) / bucket.capacity
        off = abs(now.estimate_credits - sample.level)
        assert off < 0.02 * bucket.capacity + lately(bucket)
    assert checked > 30


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: f"{bucket.resource}-{bucket.drain}")
@pytest.mark.parametrize("phase_ms", [0, 37, 99])
def test_idle_time_closes_the_bounds_and_exhaustion_is_right(
    bucket: Bucket, phase_ms: int
) -> None:
    idle_s = bucket.capacity / bucket.fill_per_second * 1.01 + 1
    now = advance(initial(bucket), bucket, idle_s, NO_USE)
    assert width_share(now, bucket) < 0.02
    assert now.estimate_credits == bucket.capacity
    burst_ms = int(bucket.capacity * 0.7 / drain_per_second(bucket) * 1000)
    limiter = BurstLimiter(bucket, bucket.capacity, phase_ms)
    left_s, level, sample = math.inf, bucket.capacity, None
    for sample in sampled(limiter, [Load(burst_ms, 0.01, depth=8)], 1, chain([63], repeat(100))):
        now = advanced(now, bucket, sample)
        level = sample.level
        assert contains(now, bucket, level)
        assert width_share(now, bucket) < 0.05
        assert abs(now.estimate_credits - level) < 0.02 * bucket.capacity
    left_s = exhaustion_s(now, bucket, bucket.peak_per_second)
    assert left_s == pytest.approx(level / drain_per_second(bucket), rel=0.1)


def test_initial_is_between_zero_and_capacity() -> None:
    now = initial(EXCESS)
    assert (now.lower_credits, now.upper_credits) == (0.0, EXCESS.capacity)
    assert now.estimate_credits == EXCESS.capacity / 2
    assert initial(EXCESS, is_new=True).estimate_credits == EXCESS.capacity
    assert initial(IOPS, is_new=True).estimate_credits == IOPS.capacity / 2


def test_throttling_at_base_is_empty_and_at_peak_unknown() -> None:
    now = advance(initial(IOPS), IOPS, 0.1, Use.exactly(30.0), 30, 8, "base")
    assert now.upper_credits < 0.05 * IOPS.capacity + lately(IOPS)
    now = advance(initial(IOPS), IOPS, 0.1, Use.exactly(200.0), 200, 8, "burst")
    assert now.upper_credits == IOPS.capacity
    assert now.lower_credits == 0


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: f"{bucket.resource}-{bucket.drain}")
def test_contradictory_observations_reset_the_bounds(bucket: Bucket) -> None:
    full = from_bounds(bucket, bucket.capacity, bucket.capacity, bucket.capacity)
    request = bucket.base_per_second / 300
    base_use = bucket.base_per_second / 10
    used = advance(full, bucket, 0.1, Use.exactly(base_use), 30, 8)
    now = advance(used, bucket, 0.1, Use.exactly(base_use), 30, 8, "base")
    assert (now.lower_credits, now.upper_credits) == (0.0, bucket.capacity)
    assert now.request_credits == pytest.approx(request)
    now = advance(now, bucket, 0.1, Use.exactly(base_use), 30, 8, "base")
    assert now.upper_credits < 0.05 * bucket.capacity + lately(bucket)


def test_exhaustion_is_infinite_if_credits_do_not_decrease() -> None:
    assert exhaustion_s(initial(IOPS), IOPS, 300.0) == math.inf
    assert exhaustion_s(initial(CONSTANT), CONSTANT, 300.0) == math.inf
    assert exhaustion_s(initial(EXCESS), EXCESS, 1.1) == math.inf
    assert exhaustion_s(initial(EXCESS), EXCESS, 2.125) == pytest.approx(54.0)


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: f"{bucket.resource}-{bucket.drain}")
def test_credits_last_at_a_lower_load_and_are_full_after_a_rest(bucket: Bucket) -> None:
    now = initial(bucket)
    lasting = lasting_per_second(bucket)
    assert exhaustion_s(now, bucket, lasting) == math.inf
    assert exhaustion_s(now, bucket, 1.05 * lasting) < math.inf
    rest_s = refill_s(now, bucket)
    assert rest_s == pytest.approx(bucket.capacity / 2 / bucket.fill_per_second)
    full = from_bounds(bucket, bucket.capacity, bucket.capacity, bucket.capacity)
    assert refill_s(full, bucket) == 0.0
    assert refill_s(now, msgspec.structs.replace(bucket, fill_per_second=0.0)) == math.inf


def test_gap_of_unknown_use_may_drain_at_the_peak() -> None:
    full = from_bounds(IOPS, IOPS.capacity, IOPS.capacity, IOPS.capacity)
    now = advance_unobserved(full, IOPS, 2.0, 2.0, None)
    assert now.lower_credits == pytest.approx(8000 - 30 - 2 * 2000, abs=601)
    assert now.upper_credits == IOPS.capacity
    empty = from_bounds(IOPS, 0.0, 0.0, 0.0)
    now = advance_unobserved(empty, IOPS, 1.0, 2.0, None)
    assert now.lower_credits == 0
    assert now.upper_credits == pytest.approx(2 * 300 + 30)


BOOST = UnitBoost(
    unit_bytes=256 * GIB, level_units=4, boost_s=1800, refill_s=43200, baseline_depth_s=1.0
)


@pytest.mark.parametrize("size_gib", [256, 512, 768])
def test_small_hdd_bursts_for_half_an_hour_of_twelve_hours(size_gib: int) -> None:
    units = size_gib // 256
    burst = burst_for(BOOST, size_gib * GIB, Rates(300.0 * units, 300.0 * units))
    assert burst is not None
    (bucket,) = burst.buckets
    now = initial(bucket, is_new=True)
    assert exhaustion_s(now, bucket, bucket.peak_per_second) == pytest.approx(1878.3, abs=0.05)
    passed_s = 0.0
    while now.upper_credits > 0.001 * bucket.capacity:
        now = advance(now, bucket, 0.1, Use.exactly(bucket.peak_per_second * 0.1), 120, 1)
        passed_s += 0.1
    assert passed_s == pytest.approx(1878.3, rel=0.01)
    now = advance(now, bucket, 0.1, Use.exactly(0.1), 30, 4, "base")
    now = advance(now, bucket, 12 * 3600, NO_USE)
    assert now.lower_credits > 0.995 * bucket.capacity
    assert now.upper_credits == bucket.capacity


def test_baseline_above_the_fill_needs_no_credits_of_an_empty_bucket() -> None:
    """EFS below 20 GiB: its baseline is 1 MiB/s, and less is filled. An empty bucket stays so."""
    bucket = Bucket("bytes", 100e6, 0.1e6, 1e6, 60e6)
    now = from_bounds(bucket, 0.0, 0.0, 0.0, 4096.0)
    for _ in range(1000):
        now = advance(now, bucket, 0.1, Use.exactly(0.1e6), requests=25)
    assert now.lower_credits == 0
    assert now.upper_credits <= bucket.fill_per_second * 0.1 + 1
