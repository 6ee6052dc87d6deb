from lab.limiter import Request
from lab.medium import Medium
from lab.model import Duration, Service


def a_request(number: int) -> Request:
    return Request(number, is_write=False, offset=0, size_bytes=4096)


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
