"""Deadlines of ticks, and when a sampler is considered dead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.pipeline.deadlines import DEAD_AFTER_S, is_alive, next_deadline

times = st.floats(0, 1e6)
intervals = st.sampled_from([0.01, 0.1, 0.25, 1.0, 10.0])


def assert_next(expected_s: float, *, missed: int, now_s: float) -> None:
    next_s, missed_now = next_deadline(10.0, now_s, interval_s=0.1)
    assert next_s == pytest.approx(expected_s)
    assert missed_now == missed


@given(times, st.floats(0, 1e4), intervals)
def test_next_deadline_is_ahead_and_on_the_grid(
    due_s: float, late_s: float, interval_s: float
) -> None:
    next_s, missed = next_deadline(due_s, due_s + late_s, interval_s)
    assert next_s > due_s + late_s - 1e-6
    assert next_s <= due_s + late_s + interval_s + 1e-6
    assert next_s == pytest.approx(due_s + (missed + 1) * interval_s)


def test_late_tick_does_not_delay_later_ones() -> None:
    assert_next(10.1, missed=0, now_s=10.003)


def test_passed_deadlines_are_missed() -> None:
    assert_next(10.4, missed=3, now_s=10.35)


def test_early_tick_misses_nothing() -> None:
    assert_next(10.1, missed=0, now_s=9.9999)


@given(times, intervals, st.floats(0, DEAD_AFTER_S - 0.001))
def test_sampler_is_alive_until_tick_is_overdue(
    ticked_at_s: float, interval_s: float, late_s: float
) -> None:
    due_s = ticked_at_s + interval_s
    assert is_alive(ticked_at_s, due_s + late_s, interval_s)
    assert not is_alive(ticked_at_s, due_s + DEAD_AFTER_S + 0.001, interval_s)
