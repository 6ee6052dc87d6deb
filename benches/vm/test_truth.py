from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.truth import WINDOW_S
from vm.limits import Change, QemuLimits
from vm.truth import Admission, Clocks, Completion, Request, Trace, Wait, truth_of, windows_of

SAME = Clocks(0.0, (), 0.0)
spans = st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 2.0))


@given(st.lists(spans, max_size=30), st.lists(st.floats(0.0, 5.0), max_size=30))
def test_windows_are_contiguous_with_all_the_waiting(
    waits: list[tuple[float, float]], completed: list[float]
) -> None:
    given_waits = [Wait(begun_s, begun_s + length_s) for begun_s, length_s in waits]
    completions = [Completion(at_s, is_write=at_s < 2, size_bytes=512) for at_s in completed]
    windows = windows_of(given_waits, completions, 1.0, 4.05)
    begun_s, ended_s = windows[0].start_s, windows[-1].end_s
    assert begun_s == 1.0
    assert ended_s == pytest.approx(4.0)
    assert all(before.end_s == after.start_s for before, after in pairwise(windows))
    within = [
        max(0.0, min(wait.ended_s, ended_s) - max(wait.begun_s, begun_s)) for wait in given_waits
    ]
    assert sum(window.wait_s for window in windows) == pytest.approx(sum(within))
    for window in windows:
        assert 0.0 <= window.throttled_s <= WINDOW_S + 1e-9
        assert window.throttled_s <= window.wait_s + 1e-9
    count = sum(begun_s <= at_s < ended_s for at_s in completed)
    assert sum(window.reads + window.writes for window in windows) == count


def test_window_has_its_requests_limit_and_credits() -> None:
    limits = QemuLimits(iops=10, iops_max=40, iops_max_length=2)
    trace = Trace(
        [0.0],
        [Request(1.01, 1.02, is_write=True, size_bytes=4096)],
        [
            Admission(1.01, 1.0101, is_write=True, size_bytes=4096),
            Admission(1.15, 1.25, is_write=False, size_bytes=4096),
            Admission(1.28, None, is_write=False, size_bytes=4096),
        ],
    )
    first, second, third = truth_of(trace, [Change(0.5, limits)], SAME, 1.0, 1.3001)
    assert (first.writes, first.written_bytes, first.reads) == (1, 4096, 0)
    assert (first.waiting, first.throttled_s, first.limit, first.rate) == (0, 0.0, None, None)
    assert first.credits == {"iops": pytest.approx(79.899)}
    assert (second.waiting, second.limit, second.rate) == (1, "iops", "burst")
    assert second.throttled_s == pytest.approx(0.05)
    assert third.throttled_s == pytest.approx(0.07)
    assert third.credits == {"iops": pytest.approx(79.5)}


def test_limiter_at_its_base_rate() -> None:
    limits = QemuLimits(iops=10, iops_max=20, iops_max_length=1)
    admitted = [Admission(1.0, 1.0, is_write=False, size_bytes=512)] * 22
    waiting = Admission(1.01, 2.0, is_write=False, size_bytes=512)
    trace = Trace([0.0], [], [*admitted, waiting])
    [window] = truth_of(trace, [Change(0.5, limits)], SAME, 1.0, 1.1001)
    assert (window.rate, window.credits) == ("base", {"iops": 0.0})
