"""Peak rates within the last minute."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline.totals import KEPT_S, Peak, Traffic, highest, with_peaks
from disksla.verdict.interval.interval import Interval


def window(end_s: float, reads: int = 0, writes: int = 0) -> Interval:
    return Interval(reads, writes, reads * 4096, 0, end_s, 0.1, 0, 0, inflight=0)


def test_peak_is_kept_for_a_minute() -> None:
    peaks = with_peaks((), [window(100.1, reads=500)])
    peaks = with_peaks(peaks, [window(100.2, reads=1, writes=7)])
    assert highest(peaks, now_s=159.9) == Traffic(5000, 70, 5000 * 4096, 0)
    assert highest(peaks, now_s=161.0) == Traffic()


requests = st.integers(0, 10) | st.integers(0, 10**6)


@given(st.lists(st.tuples(st.integers(0, 30), requests, requests), max_size=80))
def test_highest_covers_all_windows_of_the_minute(steps: list[tuple[int, int, int]]) -> None:
    peaks: tuple[Peak, ...] = ()
    windows: list[Interval] = []
    second = 0
    for step_s, reads, writes in steps:
        second += step_s
        windows.append(window(second, reads, writes))
        peaks = with_peaks(peaks, windows[-1:])
    minute = [each for each in windows if each.end_s >= second - KEPT_S]
    found = highest(peaks, float(second))
    assert found.read_iops == max((each.reads for each in minute), default=0) / 0.1
    assert found.write_iops == max((each.writes for each in minute), default=0) / 0.1
    assert len(peaks) <= KEPT_S + 1
    assert highest(with_peaks((), windows), float(second)) == found
