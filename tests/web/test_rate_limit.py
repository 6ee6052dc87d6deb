"""A limit on how often something may be done."""

from hypothesis import given
from hypothesis import strategies as st

from disksla.web.rate_limit import TokenBucket

intervals = st.floats(0.001, 1000)
bursts = st.integers(1, 50)
moments = st.lists(st.floats(0, 5000), max_size=60).map(sorted)


def taken_at(bucket: TokenBucket, moments: list[float]) -> list[float]:
    """Give the moments at which there was a token."""
    granted = []
    for now_s in moments:
        left = bucket.taken(now_s)
        if left is not None:
            granted.append(now_s)
            bucket = left
    return granted


def test_a_burst_and_then_one_an_interval() -> None:
    bucket = TokenBucket.full(2.0, 3, 0.0)
    assert taken_at(bucket, [0, 0, 0, 0, 1.9, 2.0, 3.0, 4.5]) == [0, 0, 0, 2.0, 4.5]


def test_no_more_than_a_burst_is_kept() -> None:
    bucket = TokenBucket.full(1.0, 2, 0.0)
    assert taken_at(bucket, [1000.0] * 5) == [1000.0] * 2


@given(intervals, bursts, moments)
def test_no_span_of_time_has_more_than_a_burst_and_what_came_meanwhile(
    interval_s: float, burst: int, moments: list[float]
) -> None:
    granted = taken_at(TokenBucket.full(interval_s, burst, 0.0), moments)
    for first, begin_s in enumerate(granted):
        for last, end_s in enumerate(granted[first:], first):
            assert last - first + 1 <= burst + (end_s - begin_s) / interval_s + 1e-6


@given(intervals, bursts, moments)
def test_whoever_keeps_to_the_interval_is_never_turned_away(
    interval_s: float, burst: int, moments: list[float]
) -> None:
    kept = [index * interval_s * 1.001 for index in range(len(moments))]
    assert taken_at(TokenBucket.full(interval_s, burst, 0.0), kept) == kept
