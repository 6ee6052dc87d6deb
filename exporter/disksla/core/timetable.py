"""Absolute deadlines, so that late ticks never make later ones late."""


def next_deadline(due_s: float, now_s: float, interval_s: float) -> tuple[float, int]:
    """Give the deadline after `due_s` that is still to come, and how many were missed.

    Deadlines stay on one grid for ever. One that is just now due is not missed.
    """
    missed = max(0, int((now_s - due_s) / interval_s))
    return due_s + (missed + 1) * interval_s, missed
