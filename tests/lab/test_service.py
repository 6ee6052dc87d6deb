from hypothesis import given
from hypothesis import strategies as st

from lab.limiter import Request
from lab.model import Service
from lab.quantity import Duration
from lab.service import Server


def a_request(number: int) -> Request:
    return Request(number, is_write=False, offset=0, size_bytes=4096)


def test_as_many_are_served_at_once_as_there_are_slots() -> None:
    server = Server(Service(latency=Duration(0.01), slots=2))
    for number in range(5):
        server.take(a_request(number), 0.0)
    assert [len(server.finish(now_s)) for now_s in (0.0, 0.01, 0.02, 0.03)] == [0, 2, 2, 1]
    assert server.inside == 0
    assert server.next_s() is None


def test_nothing_completes_in_a_stall_and_all_at_once_after_it() -> None:
    server = Server(Service(latency=Duration(0.01)))
    server.stalled_until_s = 1.5
    for number in range(4):
        server.take(a_request(number), 0.1)
    assert server.finish(1.4) == []
    assert server.next_s() == 1.5
    assert len(server.finish(1.5)) == 4


@given(st.floats(0.0001, 0.1), st.floats(0.01, 1.0), st.integers(50, 200))
def test_chance_leaves_every_latency_above_nothing(
    latency_s: float, spread: float, count: int
) -> None:
    server = Server(Service(latency=Duration(latency_s), spread=spread))
    for number in range(count):
        server.take(a_request(number), 0.0)
    assert server.finish(0.0) == []
    assert len(server.finish(1e6)) == count
