"""The difference between two samples of a disk: an interval, or a gap with its reason."""

from disksla.verdict.interval.interval import (
    GAP_REASONS,
    Clocks,
    GapReason,
    Interval,
    elapsed_or_gap,
    idle,
    interval_of,
    load_of,
)
