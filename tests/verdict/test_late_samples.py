import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.verdict.interval import Interval
from disksla.verdict.late_samples import is_constant_but_late
from support.releases import release

TICK_S = 0.1
DEPTH = 16


def sampled(totals: list[int], depth: int = DEPTH, latency_ms: float = 20.0) -> bool:
    """Return whether totals at samples are those of a limiter."""
    releases = [
        release(later - earlier, round((later - earlier) * latency_ms), inflight=depth)
        for earlier, later in pairwise(totals)
    ]
    return is_constant_but_late(tuple(releases), TICK_S)


def admitted(iops: float, late_s: list[float], phase: float = 0.0) -> list[int]:
    """Return what samples count of a leaky bucket if completions are seen late."""
    return [int(phase + iops * (TICK_S * at - late)) for at, late in enumerate(late_s, 10)]


@given(
    iops=st.floats(140.0, 5000.0),
    late_s=st.lists(st.floats(0.0, 0.05), min_size=8, max_size=8),
    phase=st.floats(0.0, 1.0),
    rng=st.randoms(use_true_random=False),
)
def test_quarter_of_the_samples_may_be_late(
    iops: float, late_s: list[float], phase: float, rng: random.Random
) -> None:
    late_s = [*late_s, *[0.0] * 25]
    rng.shuffle(late_s)
    assert sampled(admitted(iops, late_s, phase))


def test_sample_that_counts_a_part_of_the_next_window_may_be_late() -> None:
    """Of `no-terms-deep` in the lab: a sample was taken 6 ms late, when the next window began."""
    windows = [19, 19, 18] * 11
    totals = [0, *accumulate(windows)]
    late = [*totals[:17], totals[17] + 9, totals[18] + 9, *totals[19:]]
    assert sampled(late)


def test_limiter_is_found_although_its_curve_has_another_slope_at_both_ends() -> None:
    late_s = [0.02, *[0.0] * 31, 0.02]
    assert sampled(admitted(200, late_s))


@pytest.mark.parametrize(
    ("totals", "depth", "latency_ms"),
    [
        ([100 * at for at in range(33)], 1, 20.0),  # one at a time
        ([12 * at for at in range(33)], DEPTH, 20.0),  # few a second
        ([100 * at for at in range(33)], DEPTH, 0.5),  # they do not wait
        (admitted(300, [0.02, 0.0] * 16), DEPTH, 20.0),  # half of the samples are late
        (admitted(300, [-0.02, 0.0, 0.0, 0.02] * 8), DEPTH, 20.0),  # on both sides
        ([round(0.3 * (100 + at) ** 2) for at in range(33)], DEPTH, 20.0),  # the rate rises
    ],
)
def test_other_curves_are_not_those_of_a_limiter(
    totals: list[int], depth: int, latency_ms: float
) -> None:
    assert not sampled(totals, depth, latency_ms)


def test_disk_whose_service_times_vary_is_not_a_limiter() -> None:
    """By a fifth (standard deviation), with 150 to 1,000 requests a second."""
    rng = random.Random(7)
    found = 0
    for _ in range(60):
        rate, at_s, ends = rng.uniform(150, 1000), 0.0, [0.0]
        while at_s < 33 * TICK_S:
            at_s += rng.gammavariate(25, 1 / 25 / rate)
            ends.append(at_s)
        totals = [sum(end <= TICK_S * sample for end in ends) for sample in range(33)]
        found += sampled(totals)
    assert found <= 1


def test_bytes_may_be_what_is_constant() -> None:
    sizes = [(30, 4096), (15, 8192)] * 16
    releases = [
        Interval(0.0, TICK_S, reads, 0, reads * size, 0, 30 * reads, 0, DEPTH)
        for reads, size in sizes
    ]
    assert is_constant_but_late(tuple(releases), TICK_S)
