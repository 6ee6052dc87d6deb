from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.limits import Admitted, Change, QemuLimits, bucket_size, levels_at

LIMIT = QemuLimits(iops=100)
BURST = QemuLimits(iops=100, iops_max=400, iops_max_length=6)


@given(st.lists(st.floats(0.0, 2.0), max_size=60), st.sampled_from([LIMIT, BURST]))
def test_level_rises_by_requests_and_falls_at_the_limit(
    pauses: list[float], limits: QemuLimits
) -> None:
    times = [sum(pauses[:count]) for count in range(1, len(pauses) + 1)]
    admitted = [Admitted(at_s, 4096) for at_s in times]
    ends = [0.1 * number for number in range(1, 40)]
    levels = levels_at(ends, [Change(-1.0, limits)], admitted)
    assert len(levels) == len(ends)
    for (before_s, before), (end_s, level) in pairwise(zip(ends, levels, strict=True)):
        added = sum(before_s < at_s <= end_s for at_s in times)
        assert max(0.0, before - 10.0) - 1e-6 <= level <= before + added + 1e-6
        if not added:
            assert level == pytest.approx(max(0.0, before - 10.0))


def test_new_limits_empty_the_bucket() -> None:
    admitted = [Admitted(0.0, 4096)] * 30
    levels = levels_at([0.1, 0.2, 0.3], [Change(-1.0, BURST), Change(0.15, LIMIT)], admitted)
    assert levels == [pytest.approx(20.0), 0.0, 0.0]


def test_bucket_has_a_tenth_of_a_second_or_the_burst() -> None:
    assert bucket_size(LIMIT) == 10
    assert bucket_size(BURST) == 2400
    assert bucket_size(QemuLimits(bps=8_000_000)) == 800_000


@pytest.mark.parametrize(
    ("limits", "cost"),
    [
        (QemuLimits(iops=100), 1.0),
        (QemuLimits(iops=100, iops_size=16384), 4.0),
        (QemuLimits(iops=100, iops_size=131072), 1.0),
        (QemuLimits(bps=1000), 65536.0),
    ],
)
def test_large_request_counts_as_several_or_by_its_bytes(limits: QemuLimits, cost: float) -> None:
    assert limits.cost(65536) == cost
