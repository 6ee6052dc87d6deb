"""Absolute deadlines of ticks: a late tick does not delay the ticks after it."""

DEAD_AFTER_S = 5.0
"""A sampler whose next tick is overdue by more than this is considered dead."""


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
