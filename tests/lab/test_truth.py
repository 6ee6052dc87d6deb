import itertools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.limiter import Limiter, Request
from lab.model import Meter
from lab.truth import WINDOW_S, Ledger, Window


@given(st.lists(st.tuples(st.floats(0.001, 0.4), st.integers(0, 40)), min_size=1, max_size=20))
def test_windows_tile_time_and_hold_all_the_waiting(steps: list[tuple[float, int]]) -> None:
    windows: list[Window] = []
    ledger = Ledger(0.0, windows.append)
    limiter = Limiter([Meter("iops", iops=100)], 0.0)
    numbers = itertools.count()
    came_s: dict[int, float] = {}
    waited_s, completed, now_s = 0.0, 0, 0.0
    for pause_s, count in steps:
        now_s += pause_s
        ledger.until(now_s, limiter, 0, 0.0)
        for number in itertools.islice(numbers, count):
            came_s[number] = now_s
            limiter.take(Request(number, is_write=False, offset=0, size_bytes=512))
        released = limiter.release(now_s)
        waited_s += sum(now_s - came_s.pop(request.unique) for request in released)
        completed += len(released)
        ledger.completed(released)
    end_s = ledger.next_s
    ledger.until(end_s, limiter, 0, 0.0)
    waited_s += sum(end_s - since_s for since_s in came_s.values())
    assert windows[-1].end_s == end_s
    assert all(before.end_s == after.start_s for before, after in pairwise(windows))
    assert sum(window.wait_s for window in windows) == pytest.approx(waited_s)
    assert sum(window.reads for window in windows) == completed
    assert all(0 <= window.holding_s <= WINDOW_S + 1e-9 for window in windows)


def test_a_window_tells_who_was_held_by_what() -> None:
    windows: list[Window] = []
    ledger = Ledger(10.0, windows.append)
    limiter = Limiter([Meter("iops", iops=100, credits=10, level=0)], 10.0)
    for number in range(25):
        limiter.take(Request(number, is_write=True, offset=0, size_bytes=512))
    assert limiter.release(10.05) == []
    ledger.until(10.05, limiter, 0, 0.0)
    ledger.until(10.15, limiter, 3, 0.0)
    ledger.completed(limiter.release(10.15))
    ledger.until(10.2, limiter, 0, 10.3)
    first, second = windows
    assert (first.held, first.inflight, first.rate, first.limit) == (25, 28, "base", "iops")
    assert first.wait_s == pytest.approx(2.5)
    assert first.holding_s == pytest.approx(0.1)
    assert not first.stalled
    assert (second.writes, second.written_bytes, second.held, second.stalled) == (
        10,
        5120,
        15,
        True,
    )
    assert second.credits == {"iops": pytest.approx(0.0)}
