"""The verdict on each window of a disk: interval, load, throttling."""

from disksla.verdict.interval import (
    GAP_REASONS,
    Clocks,
    GapReason,
    Interval,
    elapsed_or_gap,
    interval_of,
    load_of,
)
from disksla.verdict.throttling import LIMIT_KINDS, LimitKind, Throttle, ThrottleLevel
from disksla.verdict.verdict import (
    VERDICTS,
    Ceiling,
    DetectorState,
    Verdict,
    WindowVerdict,
    after_gap,
    classify,
)

__all__ = [
    "GAP_REASONS",
    "LIMIT_KINDS",
    "VERDICTS",
    "Ceiling",
    "Clocks",
    "DetectorState",
    "GapReason",
    "Interval",
    "LimitKind",
    "Throttle",
    "ThrottleLevel",
    "Verdict",
    "WindowVerdict",
    "after_gap",
    "classify",
    "elapsed_or_gap",
    "interval_of",
    "load_of",
]
