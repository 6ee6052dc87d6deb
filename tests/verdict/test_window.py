"""Sums of windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.cost_model import Charge
from disksla.verdict.interval import Interval
from disksla.verdict.window import ENOUGH_REQUESTS, sum_recent_windows, sum_windows

intervals = st.builds(
    Interval,
    end_s=st.just(1.0),
    seconds=st.floats(0.01, 0.3),
    reads=st.integers(0, 100),
    writes=st.integers(0, 100),
    read_bytes=st.integers(0, 10**8),
    written_bytes=st.integers(0, 10**8),
    read_ms=st.just(0),
    write_ms=st.just(0),
    inflight=st.integers(0, 64),
)
window_lists = st.lists(intervals, min_size=1, max_size=20).map(tuple)


@given(window_lists, st.integers(0, 20))
def test_sum_windows_is_additive(windows: tuple[Interval, ...], cut: int) -> None:
    whole, first, rest = (
        sum_windows(windows),
        sum_windows(windows[:cut]),
        sum_windows(windows[cut:]),
    )
    assert whole.windows == first.windows + rest.windows == len(windows)
    assert whole.seconds == pytest.approx(first.seconds + rest.seconds)
    assert whole.requests == first.requests + rest.requests
    assert whole.bytes == first.bytes + rest.bytes


@given(window_lists)
def test_sum_recent_windows_is_the_shortest_sufficient(
    windows: tuple[Interval, ...],
) -> None:
    span = sum_recent_windows(windows)
    assert span == sum_windows(windows[-span.windows :])
    assert span.requests >= ENOUGH_REQUESTS or span.windows == len(windows)
    shorter = sum_windows(windows[len(windows) - span.windows + 1 :])
    assert shorter.requests < ENOUGH_REQUESTS


def test_uncertainty_is_one_request_plus_lateness() -> None:
    windows = tuple(Interval(1.0, 0.101, 30, 20, 0, 0, 0, 0, 1) for _ in range(2))
    assert sum_windows(windows).uncertainty(0.1) == pytest.approx(1 / 100 + 0.01)
    empty = sum_windows((Interval(1.0, 0.1, 0, 0, 0, 0, 0, 0, 1),))
    assert empty.uncertainty(0.1) == 1.0


def test_load_of_a_sum() -> None:
    windows = (Interval(1.0, 0.1, 60, 0, 0, 0, 0, 0, 1), Interval(1.1, 0.1, 0, 0, 0, 0, 0, 0, 1))
    assert sum_windows(windows).load((Charge("iops", read_s=1 / 300),)) == pytest.approx(1.0)
    assert sum_windows(windows).load(()) is None
