"""Rates of a disk, and the highest of any window within the last minute: it shows microbursts."""

from functools import reduce

import msgspec
from msgspec.structs import astuple

from disksla.interval import Interval

KEPT_S = 60


class Traffic(msgspec.Struct, frozen=True, gc=False):
    """Rates of one disk."""

    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


class Peak(msgspec.Struct, frozen=True, gc=False):
    """The highest rates of all windows that ended within one second."""

    second: int
    """Monotonic time, truncated to whole seconds."""
    rates: Traffic


def traffic_of(interval: Interval) -> Traffic:
    """Return the mean rates of an interval."""
    amounts = (interval.reads, interval.writes, interval.read_bytes, interval.written_bytes)
    return Traffic(*(amount / interval.seconds for amount in amounts))


def with_peak(peaks: tuple[Peak, ...], window: Interval) -> tuple[Peak, ...]:
    """Add the rates of one window to the peak of its second; drop peaks older than a minute."""
    second, rates = int(window.end_s), traffic_of(window)
    if not peaks or peaks[-1].second != second:
        return (*(peak for peak in peaks if peak.second >= second - KEPT_S), Peak(second, rates))
    return (*peaks[:-1], Peak(second, _higher(peaks[-1].rates, rates)))


def highest(peaks: tuple[Peak, ...], now_s: float) -> Traffic:
    """Return the highest rates in the minute before `now_s`; zeros if there was no I/O."""
    kept = (peak.rates for peak in peaks if peak.second >= int(now_s) - KEPT_S)
    return reduce(_higher, kept, Traffic())


def _higher(one: Traffic, other: Traffic) -> Traffic:
    return Traffic(*map(max, astuple(one), astuple(other)))
