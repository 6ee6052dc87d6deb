"""Deadlines of ticks, and when a sampler is considered dead."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline.tick import DEAD_AFTER_S, close_deadlines, is_alive, next_deadline

times = st.floats(0, 1e6)
intervals = st.sampled_from([0.01, 0.1, 0.25, 1.0, 10.0])


@given(times, st.floats(0, 1e4), intervals)
def test_next_deadline_is_ahead_and_on_the_grid(
    due_s: float, late_s: float, interval_s: float
) -> None:
    next_s, missed = next_deadline(due_s, due_s + late_s, interval_s)
    assert next_s > due_s + late_s - 1e-6
    assert next_s <= due_s + late_s + interval_s + 1e-6
    assert next_s == pytest.approx(due_s + (missed + 1) * interval_s)


def test_early_tick_misses_nothing() -> None:
    next_s, missed = next_deadline(10.0, 9.9999, interval_s=0.1)
    assert next_s == pytest.approx(10.1)
    assert missed == 0


@given(times, intervals, st.floats(0, DEAD_AFTER_S - 0.001))
def test_sampler_is_alive_until_tick_is_overdue(
    ticked_at_s: float, interval_s: float, late_s: float
) -> None:
    due_s = ticked_at_s + interval_s
    assert is_alive(ticked_at_s, due_s + late_s, interval_s)
    assert not is_alive(ticked_at_s, due_s + DEAD_AFTER_S + 0.001, interval_s)


@given(times, st.sampled_from([0.1, 0.25, 1.0]))
def test_close_samples_are_within_the_interval_and_a_step_apart(
    due_s: float, interval_s: float
) -> None:
    times_s = close_deadlines(due_s, interval_s, 0.01)
    assert due_s - interval_s < times_s[0] <= times_s[-1] < due_s
    assert len(times_s) == round(interval_s / 0.01) - 1
    for before_s, after_s in pairwise(times_s):
        assert after_s - before_s == pytest.approx(0.01, rel=1e-3)


@given(times, st.floats(0.15, 0.85))
def test_windows_as_long_as_the_interval_begin_anywhere_between_samples(
    begun_s: float, phase: float
) -> None:
    """The error of a pause is half a step at most, and that of many is none."""
    errors = []
    for number in range(100):
        due_s = begun_s + 0.1 * number
        begins_s = due_s - 0.1 * phase
        times_s = [due_s - 0.1, *close_deadlines(due_s, 0.1, 0.01), due_s]
        before_s = max(at_s for at_s in times_s if at_s <= begins_s)
        after_s = min(at_s for at_s in times_s if at_s > begins_s)
        errors.append((before_s + after_s) / 2 - begins_s)
    assert max(map(abs, errors)) < 0.008
    assert abs(sum(errors)) / 100 < 0.0003
