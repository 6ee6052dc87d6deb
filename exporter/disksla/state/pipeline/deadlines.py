"""Absolute deadlines of ticks: a late tick does not delay the ticks after it."""

import math

DEAD_AFTER_S = 5.0
"""A sampler whose next tick is overdue by more than this is considered dead."""
GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""Multiples of it are spread evenly between whole numbers, however many they are."""


def next_deadline(due_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Return the first deadline after `due_s` that is still ahead, and how many were missed.

    All deadlines are `due_s` plus a multiple of the interval. One that is due exactly now is not
    missed.
    """
    missed = max(0, int((now_s - due_s) / interval_s))
    return due_s + (missed + 1) * interval_s, missed


def is_alive(ticked_at_s: float, now_s: float, interval_s: float) -> bool:
    """Return whether a sampler with this interval, whose last tick was then, is alive."""
    return now_s - ticked_at_s < interval_s + DEAD_AFTER_S


def close_deadlines(due_s: float, interval_s: float, step_s: float) -> list[float]:
    """Return when close samples are read within the interval before a deadline.

    They are a step apart, and up to half a step earlier or later, before each deadline by another
    part of it. Otherwise each window of a limiter whose windows are as long as the interval would
    begin at the same place between two samples, and the errors of its pauses would not cancel out.
    """
    steps = round(interval_s / step_s)
    shift = due_s / interval_s * GOLDEN_RATIO % 1.0 - 0.5
    return [due_s - interval_s * (1 - (number + shift) / steps) for number in range(1, steps)]
