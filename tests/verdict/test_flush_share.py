"""Loads in which some of the flushes are counted as writes by the kernel, and some are not."""

import itertools
import random
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from disksla.limits.limits import Limits, Rates, build_limits
from disksla.verdict.flush_share import explained_share, without_share
from disksla.verdict.interval import Interval
from disksla.verdict.verdict import DetectorState, WindowVerdict, classify

DATA_WRITE, EMPTY_FLUSH, COMMIT = (1, 0, 1), (1, 1, 0), (1, 2, 1)
"""Writes and flushes that the kernel counts, and writes that a limiter counts."""
ROLLBACK_JOURNAL = [DATA_WRITE, EMPTY_FLUSH, DATA_WRITE, EMPTY_FLUSH, COMMIT]
"""Half of the flushes of SQLite with such a journal are empty."""
WINDOWS = 30
TRANSACTIONS = st.lists(st.sampled_from([DATA_WRITE, EMPTY_FLUSH, COMMIT]), min_size=2, max_size=9)


def limits_of(iops: float) -> Limits:
    return build_limits(Rates(iops, iops), "sum")


def windows_of(
    transaction: list[tuple[int, int, int]], per_window: Iterator[int]
) -> list[Interval]:
    """Return windows in which a program repeats a transaction, one request at a time.

    In each window so many data writes are admitted; an empty flush is not counted.
    """
    requests = itertools.cycle(transaction)
    windows = []
    for admitted in itertools.islice(per_window, WINDOWS):
        writes = flushes = data = 0
        while data < admitted:
            write, flush, counted = next(requests)
            writes, flushes, data = writes + write, flushes + flush, data + counted
        windows.append(
            Interval(1.0, 0.1, 0, writes, 0, data * 4096, 0, 95, 1, flushes, flush_ms=1)
        )
    return windows


def verdicts(windows: list[Interval], limits: Limits) -> list[WindowVerdict]:
    detector = DetectorState()
    found: list[WindowVerdict] = []
    for window in windows:
        detector, decided = classify(detector, window, limits, 0.03, 0.1)
        found += decided
    return found


@given(TRANSACTIONS, st.integers(20, 60))
def test_any_share_of_empty_flushes_is_found(
    transaction: list[tuple[int, int, int]], admitted: int
) -> None:
    assume(any(counted for _, _, counted in transaction))
    assume(any(flush for _, flush, _ in transaction))
    found = verdicts(windows_of(transaction, itertools.repeat(admitted)), limits_of(admitted * 10))
    assert {each.verdict for each in found[-5:]} == {"throttled"}
    assert {each.throttle.limit for each in found[-5:] if each.throttle is not None} == {"iops"}


def test_windows_before_the_share_is_known_were_throttled() -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    found = verdicts(windows, limits_of(300))
    assert [each.verdict for each in found].count("throttled") >= WINDOWS - 3


@pytest.mark.parametrize("seed", range(20))
def test_disk_that_serves_in_varying_time_is_not_throttled(seed: int) -> None:
    """Whatever the limit: some share of the flushes explains it, but the curve is not straight."""
    generator = random.Random(seed)
    served = (round(generator.gauss(40, 2.5)) for _ in itertools.count())
    windows = windows_of(ROLLBACK_JOURNAL, served)
    found = verdicts(windows, limits_of(generator.uniform(350, 450)))
    assert [each.verdict for each in found].count("throttled") <= 3


def merged_windows(generator: random.Random, served: Iterator[int]) -> list[Interval]:
    """Return windows of eight writers, whose concurrent flushes are merged by chance."""
    windows = []
    for data in itertools.islice(served, WINDOWS):
        empty = round(data * generator.uniform(0.2, 0.5))
        flushes = round(data * generator.uniform(0.6, 1.0))
        windows.append(
            Interval(
                *(1.0, 0.1, 0, data + empty, 0, data * 8192, 0, generator.randrange(200, 500)),
                *(generator.randrange(1, 6), flushes, 1),
            )
        )
    return windows


@pytest.mark.parametrize("seed", range(20))
def test_several_writers_whose_flushes_are_merged(seed: int) -> None:
    generator = random.Random(seed)
    windows = merged_windows(generator, itertools.repeat(25))
    found = verdicts(windows, limits_of(250))
    assert [each.verdict for each in found].count("throttled") > 0.8 * (WINDOWS - 10)
    few = verdicts(merged_windows(generator, itertools.repeat(8)), limits_of(250))
    assert "throttled" not in {each.verdict for each in few}


def test_share_stays_while_a_release_is_irregular() -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    late = windows_of(ROLLBACK_JOURNAL, itertools.cycle([30, 28, 32, 30, 30, 30]))
    found = verdicts(windows + late, limits_of(300))
    assert [each.verdict for each in found[WINDOWS:]].count("throttled") > 0.9 * WINDOWS


def test_share_ends_with_the_limit() -> None:
    """The share alone is no evidence: the curve must stay on the limit."""
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    slower = windows_of(ROLLBACK_JOURNAL, itertools.cycle([8, 10, 7, 9]))
    found = verdicts(windows + slower, limits_of(300))
    assert "throttled" not in {each.verdict for each in found[-10:]}


def test_empty_flushes_alone_are_not_throttled() -> None:
    flushes = [Interval(1.0, 0.1, 0, 1, 0, 0, 0, 90, 1, 1, flush_ms=90)] * WINDOWS
    assert "throttled" not in {each.verdict for each in verdicts(flushes, limits_of(300))}


def test_share_of_a_rollback_journal_is_half() -> None:
    windows = tuple(windows_of(ROLLBACK_JOURNAL, itertools.repeat(30)))
    share, line = explained_share(windows, limits_of(300).throttled_charges, 0.1)
    assert share == pytest.approx(0.5, abs=0.02)
    assert line.releases == WINDOWS
    assert sum(each.writes for each in without_share(windows, share)) == 30 * WINDOWS


@pytest.mark.parametrize("iops", [290, 310 * 5 / 3, 1000])
def test_limit_beyond_all_counts_of_writes_is_not_explained(iops: float) -> None:
    windows = tuple(windows_of(ROLLBACK_JOURNAL, itertools.repeat(30)))
    writes = sum(each.writes for each in windows)
    flushes = sum(each.flushes for each in windows)
    seconds = WINDOWS / 10
    _, line = explained_share(windows, limits_of(iops).throttled_charges, 0.1)
    assert (line.releases == WINDOWS) == (writes - flushes < iops * seconds < writes)


def test_limit_that_does_not_count_writes_is_not_explained() -> None:
    windows = tuple(windows_of(ROLLBACK_JOURNAL, itertools.repeat(30)))
    reads = build_limits(Rates(300.0, None), "separate").throttled_charges
    assert explained_share(windows, reads, 0.1)[1].releases == 0
