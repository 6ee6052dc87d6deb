"""LatencyMeter: when pending requests enter the histogram."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline.totals import LONGEST_WAIT_S, LatencyMeter

windows = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 5000), st.floats(0.05, 0.3)), max_size=50
)


def test_enough_milliseconds_are_observed_at_once() -> None:
    meter = LatencyMeter().plus([(30, 3120, 1.0)])
    assert meter.pending_requests == 0
    assert meter.histogram.total == pytest.approx(3.120)
    assert meter.histogram.count == 30


def test_fast_requests_wait_for_enough_milliseconds() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0), (10, 3, 1.1)])
    assert meter.histogram.count == 0
    meter = meter.plus([(60, 15, 1.2)])
    assert meter.histogram.count == 80
    assert meter.histogram.total == pytest.approx(0.020)


def test_pending_requests_are_observed_after_a_second() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0), (1, 0, 1.0 + LONGEST_WAIT_S)])
    assert (meter.histogram.count, meter.pending_requests) == (11, 0)


def test_overdue_requests_of_idle_disk_are_observed() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0)])
    assert meter.with_overdue(now_s=1.5).histogram.count == 0
    assert meter.with_overdue(now_s=2.5).histogram.count == 10


@given(windows)
def test_requests_and_time_are_preserved(added: list[tuple[int, int, float]]) -> None:
    meter, now_s = LatencyMeter(), 0.0
    for requests, milliseconds, step_s in added:
        now_s += step_s
        meter = meter.plus([(requests, milliseconds, now_s)])
    meter = meter.with_overdue(now_s + 10)
    assert meter.histogram.count == sum(requests for requests, _, _ in added)
    assert meter.histogram.total == pytest.approx(
        sum(milliseconds for requests, milliseconds, _ in added if requests) / 1000
    )


def test_requests_whose_time_is_not_known_are_left_out() -> None:
    assert LatencyMeter().plus([(10, None, 1.0)]) == LatencyMeter()


@given(windows)
def test_windows_at_once_count_as_one_after_another(added: list[tuple[int, int, float]]) -> None:
    ends_s = list(accumulate(step_s for _, _, step_s in added))
    completed = [
        (requests, took_ms, end_s)
        for (requests, took_ms, _), end_s in zip(added, ends_s, strict=True)
    ]
    meter = LatencyMeter()
    for each in completed:
        meter = meter.plus([each])
    assert meter == LatencyMeter().plus(completed)
