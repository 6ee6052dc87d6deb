"""Cost of a sweep."""

import pytest

from disksla.benchmark.sweep_text import cost_warnings
from disksla.limits.derive import derive_limits
from disksla.limits.limits import NO_LIMITS
from disksla.units import GIB
from support.simulated_host import CATALOG


def warnings(terms: str, size_bytes: int, seconds: float) -> list[str]:
    return list(cost_warnings(derive_limits(CATALOG[terms], size_bytes), seconds))


def test_disk_without_limits_has_no_warning() -> None:
    assert list(cost_warnings(NO_LIMITS, 60)) == []


def test_warning_names_the_limit_and_the_duration() -> None:
    [sentence] = warnings("vk.ceph-ssd", 500 * GIB, 880)
    assert sentence == (
        "The sweep uses the whole limit of the disk (15000 IOPS, 400 MiB/s) for 14.7 min; other"
        " programs that use the disk will slow down."
    )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (880, "The sweep uses up to 47% of the burst credits; a full refill takes 12 h."),
        (
            3600,
            (
                "The burst credits are used up after 31.3 min at most: cells before that show the"
                " burst rate, cells after it the baseline. A full refill takes 12 h."
            ),
        ),
    ],
)
def test_warning_names_the_burst_credits(seconds: float, expected: str) -> None:
    assert warnings("yandex.network-hdd", 600 * GIB, seconds)[-1] == expected
