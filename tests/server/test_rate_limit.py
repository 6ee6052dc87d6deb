"""The token bucket of the rate limit."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.server.rate_limit import TokenBucket

intervals = st.floats(0.001, 1000)
bursts = st.integers(1, 50)
times = st.lists(st.floats(0, 5000), max_size=60).map(sorted)


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
    bucket = TokenBucket.full(2.0, 3, 0.0)
    assert granted_at(bucket, [0, 0, 0, 0, 1.9, 2.0, 3.0, 4.5]) == [0, 0, 0, 2.0, 4.5]


def test_bucket_keeps_no_more_than_a_burst() -> None:
    bucket = TokenBucket.full(1.0, 2, 0.0)
    assert granted_at(bucket, [1000.0] * 5) == [1000.0] * 2


@given(intervals, bursts, times)
def test_rate_limit_holds_for_any_time_span(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    granted = granted_at(TokenBucket.full(interval_s, burst, 0.0), times_s)
    for first, begin_s in enumerate(granted):
        for last, end_s in enumerate(granted[first:], first):
            assert last - first + 1 <= burst + (end_s - begin_s) / interval_s + 1e-6


@given(intervals, bursts, times)
def test_requests_at_the_interval_are_all_granted(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    paced = [index * interval_s * 1.001 for index in range(len(times_s))]
    assert granted_at(TokenBucket.full(interval_s, burst, 0.0), paced) == paced
