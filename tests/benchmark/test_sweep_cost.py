"""What a test at full speed costs."""

import pytest

from disksla.benchmark.sweep_cost import cost_warnings
from disksla.limits.derive import derive_limits
from disksla.limits.limits import NO_LIMITS
from disksla.units import GIB
from support.simulated_host import CATALOG


def said(terms: str, size_bytes: int, seconds: float) -> list[str]:
    return list(cost_warnings(derive_limits(CATALOG[terms], size_bytes), seconds))


def test_nothing_promised_costs_nothing() -> None:
    assert list(cost_warnings(NO_LIMITS, 60)) == []


def test_a_promise_is_taken_whole() -> None:
    [sentence] = said("vk.ceph-ssd", 500 * GIB, 880)
    assert sentence == (
        "It takes all that the disk is sold with (15000 IOPS, 400 MiB/s) for 14.7 min:"
        " whatever else uses the disk will wait."
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (880, "It takes up to 47% of the burst credits; a full refill takes 12 h."),
        (
            3600,
            (
                "Its burst credits are gone after 31.3 min at most: cells before show the burst,"
                " cells after the base; a refill takes 12 h."
            ),
        ),
    ],
)
def test_credits_are_spent(seconds: float, expected: str) -> None:
    assert said("yandex.network-hdd", 600 * GIB, seconds)[-1] == expected
