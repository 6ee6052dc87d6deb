"""Burst credits of a disk: lower bound, upper bound and estimate."""

from disksla.credits.account import CreditAccount, CreditLevel, open_account
from disksla.credits.bounds import (
    WINDOW_S,
    Credits,
    advance_unobserved,
    estimated_drain,
    exhaustion_s,
    from_bounds,
    initial,
)

__all__ = [
    "WINDOW_S",
    "CreditAccount",
    "CreditLevel",
    "Credits",
    "advance_unobserved",
    "estimated_drain",
    "exhaustion_s",
    "from_bounds",
    "initial",
    "open_account",
]
