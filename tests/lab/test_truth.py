import itertools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.limiter import Limiter, Request
from lab.model import Meter
from lab.truth import WINDOW_S, TruthLog, Window


@given(st.lists(st.tuples(st.floats(0.001, 0.4), st.integers(0, 40)), min_size=1, max_size=20))
def test_windows_are_contiguous_with_all_the_waiting(steps: list[tuple[float, int]]) -> None:
    windows: list[Window] = []
    log = TruthLog(0.0, windows.append)
    limiter = Limiter([Meter("iops", iops=100)], 0.0)
    numbers = itertools.count()
    arrived_s: dict[int, float] = {}
    waited_s, completed, now_s = 0.0, 0, 0.0
    for pause_s, count in steps:
        now_s += pause_s
        log.advance(now_s, limiter, 0, 0.0)
        for number in itertools.islice(numbers, count):
            arrived_s[number] = now_s
            limiter.enqueue(Request(number, is_write=False, offset=0, size_bytes=512))
        admitted = limiter.admit(now_s)
        waited_s += sum(now_s - arrived_s.pop(request.unique) for request in admitted)
        completed += len(admitted)
        log.add_completed(admitted)
    end_s = log.next_s
    log.advance(end_s, limiter, 0, 0.0)
    waited_s += sum(end_s - since_s for since_s in arrived_s.values())
    assert windows[-1].end_s == end_s
    assert all(before.end_s == after.start_s for before, after in pairwise(windows))
    assert sum(window.wait_s for window in windows) == pytest.approx(waited_s)
    assert sum(window.reads for window in windows) == completed
    assert all(0 <= window.throttled_s <= WINDOW_S + 1e-9 for window in windows)


def test_window_has_waiting_requests_and_their_limit() -> None:
    windows: list[Window] = []
    log = TruthLog(10.0, windows.append)
    limiter = Limiter([Meter("iops", iops=100, credits=10, level=0)], 10.0)
    for number in range(25):
        limiter.enqueue(Request(number, is_write=True, offset=0, size_bytes=512))
    assert limiter.admit(10.05) == []
    log.advance(10.05, limiter, 0, 0.0)
    log.advance(10.15, limiter, 3, 0.0)
    log.add_completed(limiter.admit(10.15))
    log.advance(10.2, limiter, 0, 10.3)
    first, second = windows
    assert (first.waiting, first.inflight, first.rate, first.limit) == (25, 28, "base", "iops")
    assert first.wait_s == pytest.approx(2.5)
    assert first.throttled_s == pytest.approx(0.1)
    assert not first.stalled
    assert (second.writes, second.written_bytes, second.waiting, second.stalled) == (
        10,
        5120,
        15,
        True,
    )
    assert second.credits == {"iops": pytest.approx(0.0)}
