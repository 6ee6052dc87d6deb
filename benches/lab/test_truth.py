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


step = st.tuples(st.floats(0.001, 0.4), st.integers(0, 1), st.integers(0, 40))


@given(st.lists(step, min_size=1, max_size=20), st.sampled_from([50.0, 100.0, 300.0]))
def test_requests_wait_for_the_disk_or_for_the_machine(
    steps: list[tuple[float, int, int]], own_iops: float
) -> None:
    machine = Limiter([Meter("iops", iops=100)], 0.0, 2)
    own = [Limiter([Meter("iops", iops=own_iops)], 0.0) for _ in range(2)]
    logged: list[list[Window]] = [[], [], []]
    logs = [TruthLog(0.0, windows.append) for windows in logged]
    numbers = itertools.count()
    arrived_s: dict[int, float] = {}
    passed_on_s: dict[int, float] = {}
    own_wait_s, machine_wait_s, now_s = 0.0, 0.0, 0.0

    def advance(until_s: float) -> None:
        for disk in range(2):
            logs[disk].advance(until_s, own[disk], 0, 0.0, machine, disk)
        logs[2].advance(until_s, machine, 0, 0.0)

    for pause_s, disk, count in steps:
        now_s += pause_s
        advance(now_s)
        for number in itertools.islice(numbers, count):
            arrived_s[number] = now_s
            own[disk].enqueue(Request(number, is_write=False, offset=0, size_bytes=512))
        for each, limiter in enumerate(own):
            for request in limiter.admit(now_s):
                own_wait_s += now_s - arrived_s.pop(request.unique)
                passed_on_s[request.unique] = now_s
                machine.enqueue(request._replace(disk=each))
        for request in machine.admit(now_s):
            machine_wait_s += now_s - passed_on_s.pop(request.unique)
            logs[request.disk].add_completed([request])
            logs[2].add_completed([request])
    end_s = logs[2].next_s
    advance(end_s)
    own_wait_s += sum(end_s - since_s for since_s in arrived_s.values())
    machine_wait_s += sum(end_s - since_s for since_s in passed_on_s.values())
    disks_wait_s = sum(window.wait_s for windows in logged[:2] for window in windows)
    assert disks_wait_s == pytest.approx(own_wait_s + machine_wait_s)
    assert sum(window.wait_s for window in logged[2]) == pytest.approx(machine_wait_s)
    for first, second, both in zip(*logged, strict=True):
        assert both.reads == first.reads + second.reads
        assert both.waiting <= first.waiting + second.waiting
        waits = (first.machine_throttled_s, second.machine_throttled_s)
        assert max(waits) <= both.throttled_s + 1e-9
        assert both.throttled_s <= sum(waits) + 1e-9
        for window in (first, second):
            longest_s = max(window.own_throttled_s, window.machine_throttled_s)
            assert longest_s <= window.throttled_s + 1e-9
            assert window.throttled_s <= (
                window.own_throttled_s + window.machine_throttled_s + 1e-9
            )
