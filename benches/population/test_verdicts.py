"""A handful of the population of `make population`, as a quick regression: seed 11, 30 s each.

`python -m population` judges as many as one likes, and has the tables. Disks with constant service
times are not among those without a limiter here: at the rate of the terms, they are as steady as a
leaky bucket.
"""

from functools import cache

import pytest

from population import Draw, draw
from population.judging import judged, settings_of, terms_of

pytestmark = [pytest.mark.no_coverage, pytest.mark.in_check]

SEED = 11
SECONDS = 30.0
FROM_S = 8.0
"""A limiter is seen after some of its windows, and what is seen once is compared."""
NEAR = 0.08
DRIFTING = 0.02
LIMITED = [8, 12, 20, 22, 46, 48, 64]
"""With windows of 50 ms to 1 s; deep queues, a mix, commits, few reads, one with a burst."""
FREE = [5, 9, 11, 13, 19, 25, 29, 37, 55, 69]
"""Lognormal, gamma, HDD, drifting, flush-bound and bimodal."""


@cache
def drawn(number: int) -> Draw:
    return draw(SEED, number, SECONDS)


@pytest.mark.parametrize("terms", ["none", "right"])
@pytest.mark.parametrize("number", LIMITED)
def test_time_at_a_limiter_is_near_the_truth(number: int, terms: str) -> None:
    disk = drawn(number)
    limit = disk.spec.limit
    assert limit is not None
    assert limit.window_s is not None
    rows = judged(disk.ticks, settings_of(terms_of(disk)[terms]))
    from_s = disk.ticks[0].clocks.monotonic_s + FROM_S
    compared = [row for row in rows if row.monotonic_s > from_s and row.verdict is not None]
    by_time = dict(zip((tick.clocks.monotonic_s for tick in disk.ticks), disk.truth, strict=True))
    truth_s = sum(by_time[row.monotonic_s] for row in compared)
    whole_s = sum(row.window_s or 0.0 for row in compared)
    found_s = sum(row.throttled_s or 0.0 for row in compared)
    assert whole_s > SECONDS - FROM_S - 2.5
    assert truth_s > 0.2 * whole_s
    assert found_s == pytest.approx(truth_s, abs=NEAR * whole_s)
    named = limit.name if terms == "right" else "unknown"
    assert {row.limit for row in compared} - {None} == {named}
    windows_s = [row.limiter_window_s for row in compared if row.limiter_window_s is not None]
    assert all(each == pytest.approx(limit.window_s, rel=0.02) for each in windows_s)


@pytest.mark.parametrize("number", FREE)
def test_disk_without_a_limiter_is_not_accused(number: int) -> None:
    disk = drawn(number)
    assert disk.spec.limit is None
    assert disk.classes.medium != "constant"
    for terms in terms_of(disk).values():
        rows = judged(disk.ticks, settings_of(terms))
        # A disk that drifts over the rate of the terms may be as even as a limiter for a moment.
        assert sum(row.throttled_s or 0.0 for row in rows) < DRIFTING * SECONDS
