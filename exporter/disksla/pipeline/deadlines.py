"""Absolute deadlines, so that late ticks never make later ones late."""

DEAD_AFTER_S = 5.0
"""A sampler that is late by so much is held to be dead."""


def next_deadline(due_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Give the deadline after `due_s` that is still to come, and how many were missed.

    Deadlines stay on one grid for ever. One that is just now due is not missed.
    """
    missed = max(0, int((now_s - due_s) / interval_s))
    return due_s + (missed + 1) * interval_s, missed


def is_alive(ticked_at_s: float, now_s: float, interval_s: float) -> bool:
    """Tell whether a sampler that ticked then, and is to do so at this interval, still does."""
    return now_s - ticked_at_s < interval_s + DEAD_AFTER_S
