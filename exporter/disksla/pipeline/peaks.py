"""Peak rates: the highest rate of any window within the last minute, which shows microbursts."""

import msgspec

from disksla.interval import Interval

KEPT_S = 60


class Peak(msgspec.Struct, frozen=True, gc=False):
    """The highest rates of all windows that ended within one second."""

    second: int
    """Monotonic time, truncated to whole seconds."""
    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


def with_peak(peaks: tuple[Peak, ...], window: Interval) -> tuple[Peak, ...]:
    """Add the rates of one window to the peak of its second; drop peaks older than a minute."""
    seconds, second = window.seconds, int(window.end_s)
    rates = Peak(
        second,
        window.reads / seconds,
        window.writes / seconds,
        window.read_bytes / seconds,
        window.written_bytes / seconds,
    )
    if not peaks or peaks[-1].second != second:
        oldest = second - KEPT_S
        begin = next((at for at, peak in enumerate(peaks) if peak.second >= oldest), len(peaks))
        return (*peaks[begin:], rates)
    higher = _higher(peaks[-1], rates)
    return peaks if higher is peaks[-1] else (*peaks[:-1], higher)


def highest(peaks: tuple[Peak, ...], now_s: float) -> Peak:
    """Return the highest rates in the minute before `now_s`; zeros if there was no I/O."""
    result = Peak(int(now_s))
    for peak in peaks:
        if peak.second >= result.second - KEPT_S:
            result = _higher(result, peak)
    return result


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
