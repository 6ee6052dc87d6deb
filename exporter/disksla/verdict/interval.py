"""What happened between two samples: an interval that can be judged, or a gap with its reason."""

from typing import Literal, get_args

import msgspec

from disksla.limits import Charge, load_ratio
from disksla.procfs import SECTOR_BYTES, Reading

GapReason = Literal[
    "late", "suspend", "clock_step", "unreadable", "malformed", "reset", "replaced", "vanished"
]
GAP_REASONS: tuple[GapReason, ...] = get_args(GapReason)

LONGEST_INTERVAL_TICKS = 3
"""An interval longer than this many ticks hides the windows that it spans: it is a gap."""


class Clocks(msgspec.Struct, frozen=True):
    """The machine's clocks at one moment (clock_gettime(2))."""

    monotonic_s: float
    """Stands still while the machine is suspended; nothing sets it."""
    boottime_s: float
    """As monotonic, but counts suspended time."""
    realtime_s: float
    """Wall time, which may be set."""


class Interval(msgspec.Struct, frozen=True, gc=False):
    """What one disk did between two samples, in requests and bytes."""

    end_s: float
    """Monotonic time of its end."""
    seconds: float
    """0 for a gap: then it cannot be said how long this took."""
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    read_ms: int | None
    """How long the reads took together, in the kernel's whole milliseconds, so that sums of
    them stay exact; None where the kernel does not say."""
    write_ms: int | None
    inflight: int
    """Requests in flight at its end."""


def elapsed_or_gap(before: Clocks, after: Clocks, tick_s: float) -> float | GapReason:
    """Give the seconds between two samples, or why the time between them cannot be judged."""
    monotonic_s = after.monotonic_s - before.monotonic_s
    boottime_s = after.boottime_s - before.boottime_s
    realtime_s = after.realtime_s - before.realtime_s
    if boottime_s - monotonic_s > tick_s:
        return "suspend"
    if monotonic_s <= 0 or abs(realtime_s - boottime_s) > tick_s:
        return "clock_step"
    if monotonic_s > LONGEST_INTERVAL_TICKS * tick_s:
        return "late"
    return monotonic_s


def interval_of(
    end_s: float, seconds: float, before: Reading, after: Reading, inflight: int
) -> Interval:
    """Give what counters rose by; sectors become bytes here and nowhere later."""
    reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms, *_ = before
    now_reads, _, now_read_sectors, now_read_ms, *later = after
    now_writes, _, now_written_sectors, now_write_ms, *_ = later
    return Interval(
        end_s,
        seconds,
        (now_reads or 0) - (reads or 0),
        (now_writes or 0) - (writes or 0),
        ((now_read_sectors or 0) - (read_sectors or 0)) * SECTOR_BYTES,
        ((now_written_sectors or 0) - (written_sectors or 0)) * SECTOR_BYTES,
        None if now_read_ms is None or read_ms is None else now_read_ms - read_ms,
        None if now_write_ms is None or write_ms is None else now_write_ms - write_ms,
        inflight,
    )


def load_of(interval: Interval, promise: tuple[Charge, ...]) -> float | None:
    """Give the load of one window; None where nothing is promised."""
    return load_ratio(
        promise,
        interval.seconds,
        interval.reads,
        interval.writes,
        interval.read_bytes,
        interval.written_bytes,
    )
