"""Histograms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.histogram import Histogram

BOUNDS = (0.1, 1.0, 10.0)


def test_bound_belongs_to_its_bucket() -> None:
    assert Histogram.empty(BOUNDS).observe(1.0).counts == (0, 1, 0, 0)


def test_value_above_all_bounds_is_in_the_last_bucket() -> None:
    assert Histogram.empty(BOUNDS).observe(11).counts == (0, 0, 0, 1)


def test_weight_counts_observations() -> None:
    histogram = Histogram.empty(BOUNDS).observe(0.5, weight=3)
    assert (histogram.count, histogram.total) == (3, 1.5)


OBSERVATIONS = st.lists(st.tuples(st.floats(0, 100), st.integers(1, 1000)))


@given(OBSERVATIONS, st.sets(st.sampled_from(BOUNDS)))
def test_fewer_buckets_have_the_same_observations(
    observations: list[tuple[float, int]], kept: set[float]
) -> None:
    bounds = tuple(sorted(kept))
    fine, coarse = Histogram.empty(BOUNDS), Histogram.empty(bounds)
    for value, weight in observations:
        fine, coarse = fine.observe(value, weight), coarse.observe(value, weight)
    assert fine.with_bounds(bounds) == coarse


def test_other_bounds_are_an_error() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        Histogram.empty(BOUNDS).with_bounds((0.2,))


@given(OBSERVATIONS)
def test_every_observation_is_counted(observations: list[tuple[float, int]]) -> None:
    histogram = Histogram.empty(BOUNDS)
    for value, weight in observations:
        histogram = histogram.observe(value, weight)
    assert histogram.count == sum(weight for _, weight in observations)
    for bound, cumulative in zip(
        BOUNDS, (sum(histogram.counts[: n + 1]) for n in range(3)), strict=True
    ):
        assert cumulative == sum(weight for value, weight in observations if value <= bound)
