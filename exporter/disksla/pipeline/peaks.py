"""Rates of a disk, and the highest of any window within the last minute: it shows microbursts."""

from operator import gt

import msgspec

from disksla.interval import Interval

KEPT_S = 60


class Traffic(msgspec.Struct, frozen=True):
    """Rates of one disk."""

    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


class Peak(msgspec.Struct, frozen=True, gc=False):
    """The highest rates of all windows that ended within one second."""

    second: int
    """Monotonic time, truncated to whole seconds."""
    rates_per_second: tuple[float, ...]
    """In the order of `Traffic`."""


def traffic_of(interval: Interval) -> Traffic:
    """Return the mean rates of an interval."""
    return Traffic(*_rates(interval))


def with_peak(peaks: tuple[Peak, ...], window: Interval) -> tuple[Peak, ...]:
    """Add the rates of one window to the peak of its second.

    Peaks older than a minute are dropped, and those that the last second exceeds in all rates.
    """
    second, rates = int(window.end_s), _rates(window)
    if not peaks or peaks[-1].second != second:
        oldest = second - KEPT_S
        last = peaks[-1].rates_per_second if peaks else ()
        kept = (
            peak
            for peak in peaks[:-1]
            if peak.second >= oldest and any(map(gt, peak.rates_per_second, last))
        )
        return (*kept, *peaks[-1:], Peak(second, rates))
    higher = tuple(map(max, peaks[-1].rates_per_second, rates))
    return peaks if higher == peaks[-1].rates_per_second else (*peaks[:-1], Peak(second, higher))


def highest(peaks: tuple[Peak, ...], now_s: float) -> Traffic:
    """Return the highest rates in the minute before `now_s`; zeros if there was no I/O."""
    kept = [peak.rates_per_second for peak in peaks if peak.second >= int(now_s) - KEPT_S]
    return Traffic(*map(max, zip(*kept, strict=True)))


def _rates(interval: Interval) -> tuple[float, ...]:
    seconds = interval.seconds
    return (
        interval.reads / seconds,
        interval.writes / seconds,
        interval.read_bytes / seconds,
        interval.written_bytes / seconds,
    )
