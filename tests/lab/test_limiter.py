from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.limiter import Limiter, Request
from lab.model import Meter
from lab.quantity import Bandwidth, Duration

KIB = 1024
WINDOW_S = 0.1


def a_request(number: int = 0, size_bytes: int = 4 * KIB, *, is_write: bool = False) -> Request:
    return Request(number, is_write, 0, size_bytes)


def served_by_window(limiter: Limiter, windows: int, size_bytes: int = 4 * KIB) -> list[int]:
    """Keep 32 waiting; the world begins at 0."""
    counts = []
    for window in range(windows):
        count = 0
        for part in range(50):
            now_s = (window + part / 50) * WINDOW_S + 1e-7
            while limiter.held < 32:
                limiter.take(a_request(size_bytes=size_bytes))
            while released := limiter.release(now_s):
                count += len(released)
                for _ in released:
                    limiter.take(a_request(size_bytes=size_bytes))
        counts.append(count)
    return counts


def test_a_window_lets_through_its_share_and_no_more() -> None:
    assert served_by_window(Limiter([Meter("iops", iops=300)], 0.0), 5) == [30] * 5


def test_large_requests_overdraw_and_are_paid_back() -> None:
    limiter = Limiter([Meter("bandwidth", bandwidth=Bandwidth(25e6))], 0.0)
    counts = served_by_window(limiter, 100, 256 * KIB)
    assert set(counts) == {9, 10}
    assert abs(sum(counts) * 256 * KIB - 25e6 * 10) <= 256 * KIB


def test_a_burst_lasts_as_long_as_its_credits() -> None:
    limiter = Limiter([Meter("iops", iops=300, peak=2000, credits=850)], 0.0)
    assert served_by_window(limiter, 7) == [200, 200, 200, 200, 170, 30, 30]
    assert limiter.credits() == {"iops": pytest.approx(0.0, abs=1e-6)}


def test_a_dripping_bucket_spreads_what_it_lets_through() -> None:
    limiter = Limiter([Meter("iops", iops=1000, window=Duration(0))], 0.0)
    first, *others = served_by_window(limiter, 5)
    assert first == pytest.approx(200, abs=3), "its depth of a tenth of a second, and what drips"
    assert sum(others) == pytest.approx(400, abs=3)


def test_shared_time_is_shared() -> None:
    limiter = Limiter([Meter("iops", read_iops=1000, write_iops=500)], 0.0)
    for number in range(200):
        limiter.take(a_request(number, is_write=bool(number % 2)))
    released = limiter.release(0.0)
    spent_s = sum(0.002 if request.is_write else 0.001 for request in released)
    assert WINDOW_S <= spent_s <= WINDOW_S + 0.002


def test_directions_with_budgets_of_their_own_do_not_wait_for_each_other() -> None:
    limiter = Limiter([Meter("iops", read_iops=10), Meter("iops", write_iops=1000)], 0.0)
    for number in range(20):
        limiter.take(a_request(number, is_write=number >= 10))
    released = limiter.release(0.0)
    assert [request.is_write for request in released] == [False] + [True] * 10


def test_what_binds_is_named() -> None:
    limiter = Limiter(
        [
            Meter("iops", iops=2000, peak=4000, credits=10_000),
            Meter("bandwidth", bandwidth=Bandwidth(1e6)),
        ],
        0.0,
    )
    assert limiter.binding() is None
    for _ in range(500):
        limiter.take(a_request(size_bytes=512))
    limiter.release(0.0)
    assert limiter.binding() == ("bandwidth", "base")
    burst = Limiter([Meter("iops", iops=10, peak=100, credits=1000)], 0.0)
    for _ in range(50):
        burst.take(a_request())
    burst.release(0.0)
    assert burst.binding() == ("iops", "burst")


meters = st.builds(
    Meter,
    limit=st.just("iops"),
    iops=st.floats(1, 20_000),
    credits=st.none() | st.floats(0, 10_000),
    window=st.sampled_from([Duration(0), Duration(0.1), Duration(0.5)]),
)


@given(meters, st.lists(st.tuples(st.floats(0, 2), st.integers(0, 300)), max_size=30))
def test_no_more_is_let_through_than_was_filled_in(
    meter: Meter, arrivals: list[tuple[float, int]]
) -> None:
    limiter = Limiter([meter], 0.0)
    iops = meter.unit_per_second
    depth = max(meter.credits or 0.0, iops * (meter.window or 0.1))
    now_s, taken, let_through = 0.0, 0, []
    for pause_s, count in arrivals:
        now_s += pause_s
        for _ in range(count):
            limiter.take(a_request(taken))
            taken += 1
        let_through += [(now_s, request.unique) for request in limiter.release(now_s)]
        due_s = limiter.next_s()
        assert (due_s is None) == (limiter.held == 0)
        assert due_s is None or due_s > now_s
    assert len(let_through) <= depth + iops * now_s + 1 + 1e-6
    assert all(earlier[1] < later[1] for earlier, later in pairwise(let_through)), "in turn"
    assert len(let_through) + limiter.held == taken


@given(meters, st.integers(1, 2000))
def test_it_says_when_it_lets_the_next_one_through(meter: Meter, waiting: int) -> None:
    limiter = Limiter([meter], 0.0)
    for number in range(waiting):
        limiter.take(a_request(number))
    limiter.release(0.0)
    due_s = limiter.next_s()
    if due_s is not None:
        assert limiter.release(due_s - 1e-6 * max(1.0, due_s)) == []
        assert limiter.release(due_s + 1e-6)


def test_a_successor_takes_over_who_waits() -> None:
    old = Limiter([Meter("iops", read_iops=1), Meter("iops", write_iops=1)], 0.0)
    for number in range(8):
        old.take(a_request(number, is_write=bool(number % 2)))
    assert old.hand_over(Limiter([Meter("iops", iops=1)], 5.0)).held == old.held
