"""Deadlines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.pipeline.deadlines import DEAD_AFTER_S, is_alive, next_deadline

times = st.floats(0, 1e6)
intervals = st.sampled_from([0.01, 0.1, 0.25, 1.0, 10.0])


def assert_next(expected_s: float, *, missed: int, now_s: float) -> None:
    following_s, slept_through = next_deadline(10.0, now_s, interval_s=0.1)
    assert following_s == pytest.approx(expected_s)
    assert slept_through == missed


@given(times, st.floats(0, 1e4), intervals)
def test_the_next_deadline_is_ahead_and_on_the_grid(
    due_s: float, late_s: float, interval_s: float
) -> None:
    following_s, missed = next_deadline(due_s, due_s + late_s, interval_s)
    assert following_s > due_s + late_s - 1e-6
    assert following_s <= due_s + late_s + interval_s + 1e-6
    assert following_s == pytest.approx(due_s + (missed + 1) * interval_s)


def test_a_late_tick_does_not_shift_the_later_ones() -> None:
    assert_next(10.1, missed=0, now_s=10.003)


def test_deadlines_slept_through_are_missed() -> None:
    assert_next(10.4, missed=3, now_s=10.35)


def test_a_tick_that_comes_early_misses_nothing() -> None:
    assert_next(10.1, missed=0, now_s=9.9999)


@given(times, intervals, st.floats(0, DEAD_AFTER_S - 0.001))
def test_a_sampler_is_alive_until_its_next_tick_is_long_overdue(
    ticked_at_s: float, interval_s: float, late_s: float
) -> None:
    due_s = ticked_at_s + interval_s
    assert is_alive(ticked_at_s, due_s + late_s, interval_s)
    assert not is_alive(ticked_at_s, due_s + DEAD_AFTER_S + 0.001, interval_s)
