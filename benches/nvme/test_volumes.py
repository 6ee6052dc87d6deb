"""Throttled volumes, at times that are given. Needs no virtual machine."""

import pytest

from lab.limiter import Request
from lab.model import Bandwidth, Duration, Meter, Service
from nvme.page import LIMITS, Limit
from nvme.volumes import Volumes

CONTINUOUSLY = Duration(0)
IOPS_100 = Meter("iops", iops=100, window=CONTINUOUSLY)
BANDWIDTH_1M = Meter("bandwidth", bandwidth=Bandwidth(1e6), window=CONTINUOUSLY)
REQUESTS = 60
JUST_AFTER_S = 1e-6
"""A timer is never early."""


def exceeded_after(volumes: Volumes, numbers: list[int], size_bytes: int) -> float:
    """Submit requests at 1 s, complete them all, and return when the last has completed."""
    now_s = 1.0
    for unique in range(REQUESTS):
        request = Request(unique, False, 0, size_bytes, numbers[unique % len(numbers)])
        volumes.submit(request, now_s)
    completed = 0
    while completed < REQUESTS:
        due_s = volumes.next_s()
        assert due_s is not None
        now_s = max(now_s, due_s) + JUST_AFTER_S
        completed += len(volumes.complete(now_s))
    return now_s


@pytest.mark.parametrize(
    ("meter", "is_shared", "limit"),
    [
        (IOPS_100, False, "iops"),
        (BANDWIDTH_1M, False, "bandwidth"),
        (IOPS_100, True, "machine_iops"),
        (BANDWIDTH_1M, True, "machine_bandwidth"),
    ],
)
def test_waiting_counts_for_the_limit_that_is_waited_for(
    meter: Meter, is_shared: bool, limit: Limit
) -> None:
    volumes = Volumes(2, Service())
    if is_shared:
        volumes.limit_machine([meter], 0.0)
    else:
        volumes.limit(0, [meter], 0.0)
    ended_s = exceeded_after(volumes, [0], size_bytes=10_000)
    # The bucket is full at first, for a tenth of a second and one request.
    assert ended_s - 1.0 == pytest.approx((REQUESTS - 11) / 100, abs=0.012)
    exceeded_s = volumes.usage(0, ended_s + 10.0).exceeded_s
    assert exceeded_s == pytest.approx(
        dict.fromkeys(LIMITS, 0.0) | {limit: ended_s - 1.0}, abs=1e-4
    )
    assert volumes.usage(0, ended_s).operations == [REQUESTS, 0]
    assert set(volumes.usage(1, ended_s).exceeded_s.values()) == {0.0}


def test_two_volumes_wait_for_the_machine_together() -> None:
    volumes = Volumes(2, Service())
    volumes.limit_machine([IOPS_100], 0.0)
    ended_s = exceeded_after(volumes, [0, 1], size_bytes=4096)
    for number in range(2):
        usage = volumes.usage(number, ended_s)
        assert usage.operations == [REQUESTS // 2, 0]
        assert usage.exceeded_s["machine_iops"] == pytest.approx(ended_s - 1.0, abs=0.03)
