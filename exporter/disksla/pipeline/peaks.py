"""The highest rates of any window within the last minute, as microbursts are seen by."""

import msgspec

from disksla.verdict import Interval

KEPT_S = 60


class Peak(msgspec.Struct, frozen=True, gc=False):
    """The highest rate of any window that ended within one second."""

    second: int
    """Monotonic time, cut to whole seconds."""
    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


def with_peak(peaks: tuple[Peak, ...], window: Interval) -> tuple[Peak, ...]:
    """Add the rates of one window to the peaks of its second; forget what is a minute old."""
    seconds = window.seconds
    rates = Peak(
        int(window.end_s),
        window.reads / seconds,
        window.writes / seconds,
        window.read_bytes / seconds,
        window.written_bytes / seconds,
    )
    if not peaks or peaks[-1].second != rates.second:
        oldest = rates.second - KEPT_S
        return (*(peak for peak in peaks if peak.second >= oldest), rates)
    higher = _higher(peaks[-1], rates)
    return peaks if higher is peaks[-1] else (*peaks[:-1], higher)


def highest(peaks: tuple[Peak, ...], now_s: float) -> Peak:
    """Give the highest rates of the minute before `now_s`; zeros where nothing was done."""
    now = Peak(int(now_s))
    for peak in peaks:
        if peak.second >= now.second - KEPT_S:
            now = _higher(now, peak)
    return now


def _higher(kept: Peak, other: Peak) -> Peak:
    if (
        other.read_iops <= kept.read_iops
        and other.write_iops <= kept.write_iops
        and other.read_bytes_per_second <= kept.read_bytes_per_second
        and other.written_bytes_per_second <= kept.written_bytes_per_second
    ):
        return kept
    return Peak(
        kept.second,
        max(kept.read_iops, other.read_iops),
        max(kept.write_iops, other.write_iops),
        max(kept.read_bytes_per_second, other.read_bytes_per_second),
        max(kept.written_bytes_per_second, other.written_bytes_per_second),
    )
