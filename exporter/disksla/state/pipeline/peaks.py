"""Rates of a disk, and the highest of any window within the last minute: it shows microbursts."""

from collections.abc import Iterable
from itertools import groupby
from operator import gt

import msgspec

from disksla.verdict.interval import Interval

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


def with_peaks(peaks: tuple[Peak, ...], windows: Iterable[Interval]) -> tuple[Peak, ...]:
    """Add the rates of windows that follow each other to the peaks of their seconds.

    Peaks older than a minute are dropped, and those that the last second exceeds in all rates.
    """
    for second, of_second in groupby(windows, lambda window: int(window.end_s)):
        rates = [_rates(window) for window in of_second]
        if peaks and peaks[-1].second == second:
            rates.append(peaks[-1].rates_per_second)
            peaks = peaks[:-1]
        else:
            peaks = _needed(peaks, second - KEPT_S)
        peaks = (*peaks, Peak(second, tuple(map(max, zip(*rates, strict=True)))))
    return peaks


def _needed(peaks: tuple[Peak, ...], oldest: int) -> tuple[Peak, ...]:
    """Return the peaks from a second on that the last one does not exceed in all rates."""
    last = peaks[-1].rates_per_second if peaks else ()
    kept = (
        peak
        for peak in peaks[:-1]
        if peak.second >= oldest and any(map(gt, peak.rates_per_second, last))
    )
    return (*kept, *peaks[-1:])


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
