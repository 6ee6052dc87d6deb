import itertools
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.limiter import Limiter, Request
from lab.medium import Medium
from lab.model import Bandwidth, Duration, Meter, Service

KIB = 1024
WINDOW_S = 0.1


def a_request(number: int = 0, size_bytes: int = 4 * KIB, *, is_write: bool = False) -> Request:
    return Request(number, is_write, 0, size_bytes)


def test_medium_serves_as_many_requests_as_slots() -> None:
    medium = Medium(Service(latency=Duration(0.01), slots=2))
    for number in range(5):
        medium.submit(a_request(number), 0.0)
    assert [len(medium.complete(now_s)) for now_s in (0.0, 0.01, 0.02, 0.03)] == [0, 2, 2, 1]
    assert medium.inflight == 0
    assert medium.next_s() is None


def test_stall_delays_all_completions_to_its_end() -> None:
    medium = Medium(Service(latency=Duration(0.01)))
    medium.stalled_until_s = 1.5
    for number in range(4):
        medium.submit(a_request(number), 0.1)
    assert medium.complete(1.4) == []
    assert medium.next_s() == 1.5
    assert len(medium.complete(1.5)) == 4


def admitted_per_window(limiter: Limiter, windows: int, size_bytes: int = 4 * KIB) -> list[int]:
    """Return the requests admitted per window from time 0, with 32 waiting at all times."""
    counts = []
    for window in range(windows):
        count = 0
        for part in range(50):
            now_s = (window + part / 50) * WINDOW_S + 1e-7
            while limiter.waiting < 32:
                limiter.enqueue(a_request(size_bytes=size_bytes))
            while admitted := limiter.admit(now_s):
                count += len(admitted)
                for _ in admitted:
                    limiter.enqueue(a_request(size_bytes=size_bytes))
        counts.append(count)
    return counts


def test_window_admits_a_tenth_of_the_limit() -> None:
    assert admitted_per_window(Limiter([Meter("iops", iops=300)], 0.0), 5) == [30] * 5


def test_burst_lasts_as_long_as_its_credits() -> None:
    limiter = Limiter([Meter("iops", iops=300, peak=2000, credits=850)], 0.0)
    assert admitted_per_window(limiter, 7) == [200, 200, 200, 200, 170, 30, 30]
    assert limiter.credits() == {"iops": pytest.approx(0.0, abs=1e-6)}


def test_binding_is_the_limit_that_requests_wait_for() -> None:
    limiter = Limiter(
        [
            Meter("iops", iops=2000, peak=4000, credits=10_000),
            Meter("bandwidth", bandwidth=Bandwidth(1e6)),
        ],
        0.0,
    )
    assert limiter.binding() is None
    for _ in range(500):
        limiter.enqueue(a_request(size_bytes=512))
    limiter.admit(0.0)
    assert limiter.binding() == ("bandwidth", "base")
    burst = Limiter([Meter("iops", iops=10, peak=100, credits=1000)], 0.0)
    for _ in range(50):
        burst.enqueue(a_request())
    burst.admit(0.0)
    assert burst.binding() == ("iops", "burst")


meters = st.builds(
    Meter,
    limit=st.just("iops"),
    iops=st.floats(1, 20_000),
    credits=st.none() | st.floats(0, 10_000),
    window=st.sampled_from([Duration(0), Duration(0.1), Duration(0.5)]),
)


@given(meters, st.lists(st.tuples(st.floats(0, 2), st.integers(0, 300)), max_size=30))
def test_admitted_requests_never_exceed_the_bucket(
    meter: Meter, arrivals: list[tuple[float, int]]
) -> None:
    limiter = Limiter([meter], 0.0)
    iops = meter.unit_per_second
    depth = max(meter.credits or 0.0, iops * (meter.window or 0.1))
    now_s, queued, admitted = 0.0, 0, []
    for pause_s, count in arrivals:
        now_s += pause_s
        for _ in range(count):
            limiter.enqueue(a_request(queued))
            queued += 1
        admitted += [(now_s, request.unique) for request in limiter.admit(now_s)]
        due_s = limiter.next_s()
        assert (due_s is None) == (limiter.waiting == 0)
        assert due_s is None or due_s > now_s
    assert len(admitted) <= depth + iops * now_s + 1 + 1e-6
    assert all(earlier[1] < later[1] for earlier, later in pairwise(admitted)), (
        "first in, first out"
    )
    assert len(admitted) + limiter.waiting == queued


@given(meters, st.integers(1, 2000))
def test_next_s_is_when_the_next_request_is_admitted(meter: Meter, waiting: int) -> None:
    limiter = Limiter([meter], 0.0)
    for number in range(waiting):
        limiter.enqueue(a_request(number))
    limiter.admit(0.0)
    due_s = limiter.next_s()
    if due_s is not None:
        assert limiter.admit(due_s - 1e-6 * max(1.0, due_s)) == []
        assert limiter.admit(due_s + 1e-6)


@given(
    meters,
    st.integers(2, 4),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.integers(1, 100)), max_size=40),
)
def test_disks_that_share_a_limiter_never_exceed_it_and_take_turns(
    meter: Meter, disks: int, arrivals: list[tuple[float, int, int]]
) -> None:
    limiter = Limiter([meter], 0.0, disks)
    depth = max(meter.credits or 0.0, meter.unit_per_second * (meter.window or 0.1))
    now_s, numbers, admitted = 0.0, itertools.count(), []
    for pause_s, disk, count in arrivals:
        now_s += pause_s
        for number in itertools.islice(numbers, count):
            limiter.enqueue(a_request(number)._replace(disk=disk % disks))
        waiting = [limiter.waiting_of(each) for each in range(disks)]
        now = limiter.admit(now_s)
        admitted += now
        counts = [sum(request.disk == each for request in now) for each in range(disks)]
        left = [each for each in range(disks) if counts[each] < waiting[each]]
        most = max(counts)
        assert all(counts[each] >= most - 1 for each in left), "a disk that waits has its turns"
        assert limiter.waiting == sum(waiting) - len(now)
    assert len(admitted) <= depth + meter.unit_per_second * now_s + 1 + 1e-6
    for disk in range(disks):
        own = [request.unique for request in admitted if request.disk == disk]
        assert own == sorted(own), "first in, first out"


def test_turns_of_reads_and_of_writes_are_separate() -> None:
    meters = [Meter("iops", read_iops=10, window=Duration(1)), Meter("iops", write_iops=1)]
    limiter = Limiter(meters, 0.0, 2)
    for number in range(20):
        for disk, is_write in ((0, False), (1, False), (1, True)):
            limiter.enqueue(a_request(number, is_write=is_write)._replace(disk=disk))
    admitted = [(request.disk, request.is_write) for request in limiter.admit(0.0)]
    assert admitted == [(0, False), (1, False)] * 5 + [(1, True)]
