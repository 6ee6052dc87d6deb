"""How fast clients are served: the share of a worker, and the token bucket of the rate limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.serve.http_server.config import RateLimit
from disksla.serve.http_server.pace import UNLIMITED, TimeShare, TokenBucket


def test_a_worker_that_rested_may_use_ten_seconds_of_its_share_at_once() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=2.5)
    assert share.rest_s(102.5) == 0.0
    share = share.after(begun_s=102.5, used_s=0.9)
    assert share.rest_s(103.4) == pytest.approx(0.2)
    assert share.rest_s(103.6) == 0.0


def test_a_worker_never_rests_for_long() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=60.0)
    assert share.rest_s(160.0) == 1.0
    assert share.rest_s(160.5) == pytest.approx(0.5)


def test_a_worker_without_a_limit_never_rests() -> None:
    assert UNLIMITED.after(100.0, 1e9).rest_s(100.0) == 0.0


@given(st.floats(0.25, 1.0), st.lists(st.floats(0.0, 0.3), min_size=1, max_size=100))
def test_the_mean_is_at_most_the_share(part: float, work_s: list[float]) -> None:
    """Of work that is so short that no rest would be longer than a second."""
    share, now_s = TimeShare(part), 0.0
    for used_s in work_s:
        now_s += share.rest_s(now_s)
        share = share.after(now_s, used_s)
        now_s += used_s
    assert sum(work_s) <= part * (now_s + share.rest_s(now_s) + 10.0) + 1e-6


intervals = st.floats(0.001, 1000)
bursts = st.integers(1, 50)
times = st.lists(st.floats(0, 5000), max_size=60).map(sorted)


def full(interval_s: float, burst: int) -> TokenBucket:
    return TokenBucket(RateLimit(interval_s=interval_s, burst=burst), burst, 0.0)


def granted_at(bucket: TokenBucket, times_s: list[float]) -> list[float]:
    """Return the times at which there was a token."""
    granted = []
    for now_s in times_s:
        left = bucket.take(now_s)
        if left is not None:
            granted.append(now_s)
            bucket = left
    return granted


def test_burst_and_then_one_per_interval() -> None:
    bucket = full(2.0, 3)
    assert granted_at(bucket, [0, 0, 0, 0, 1.9, 2.0, 3.0, 4.5]) == [0, 0, 0, 2.0, 4.5]


def test_bucket_keeps_no_more_than_a_burst() -> None:
    bucket = full(1.0, 2)
    assert granted_at(bucket, [1000.0] * 5) == [1000.0] * 2


@given(intervals, bursts, times)
def test_rate_limit_holds_for_any_time_span(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    granted = granted_at(full(interval_s, burst), times_s)
    for first, begin_s in enumerate(granted):
        for last, end_s in enumerate(granted[first:], first):
            assert last - first + 1 <= burst + (end_s - begin_s) / interval_s + 1e-6


@given(intervals, bursts, times)
def test_requests_at_the_interval_are_all_granted(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    paced = [index * interval_s * 1.001 for index in range(len(times_s))]
    assert granted_at(full(interval_s, burst), paced) == paced
