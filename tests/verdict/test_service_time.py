"""Learning of the service time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.verdict.service_time import ServiceTime
from support.examples import scaled


def learned(*windows: tuple[int, int]) -> float:
    service = ServiceTime()
    for requests, took_ms in windows:
        service = service.plus(requests, took_ms)
    return service.shortest_s


def test_few_requests_are_accumulated() -> None:
    assert learned((4, 3)) == 0.0
    assert learned((4, 3), (6, 6)) == pytest.approx(0.001)


def test_shortest_mean_is_kept() -> None:
    assert learned((50, 99), (50, 49), (50, 199)) == pytest.approx(0.001)


@scaled(50)
@given(
    service_ms=st.floats(0.05, 20),
    windows=st.lists(st.integers(1, 200), min_size=1, max_size=20),
)
def test_constant_service_time_despite_truncated_milliseconds(
    service_ms: float, windows: list[int]
) -> None:
    service, printed_ms, took_ms = ServiceTime(), 0, 0.0
    for requests in [*windows * 5, *[20] * 200]:
        took_ms += requests * service_ms
        service = service.plus(requests, int(took_ms) - printed_ms)
        printed_ms = int(took_ms)
        if service.shortest_s:
            assert service.shortest_s * 1000 > service_ms * (1 - 1e-9)
    assert service.shortest_s * 1000 == pytest.approx(service_ms, rel=0.05)
