"""Loads in which some of the flushes are counted as writes by the kernel, and some are not."""

import itertools
import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from disksla.limits.limits import Limits, Rates, build_limits
from disksla.verdict.flush_share import Shares, explained_shares, without_share
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


@pytest.mark.parametrize(("took_ms", "share"), [(95, 0.94), (140, 1.0)])
def test_number_in_flight_at_a_sample_does_not_change_the_throttled_time(
    took_ms: int, share: float
) -> None:
    """Samples fall into the same place of each limiter window: two in flight, one on average."""
    windows = [
        msgspec.structs.replace(each, inflight=2, write_ms=took_ms)
        for each in windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    ]
    found = verdicts(windows, limits_of(300))
    assert {round(each.throttled_share, 2) for each in found[2:]} == {share}


def test_share_is_found_where_every_second_window_is_silent() -> None:
    windows = [
        msgspec.structs.replace(each, write_ms=190 if each.writes else 0)
        for each in windows_of(ROLLBACK_JOURNAL, itertools.cycle([0, 60]))
    ]
    found = verdicts(windows, limits_of(300))
    assert [each.verdict for each in found].count("throttled") >= WINDOWS - 5


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


def shares_of(windows: list[Interval], iops: float = 300) -> Shares:
    return explained_shares(tuple(windows), limits_of(iops).throttled_charges, 0.1)


def test_share_of_a_rollback_journal_is_half() -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    shares = shares_of(windows)
    assert shares.share == pytest.approx(0.5, abs=0.01)
    assert shares.is_limiter(0.1)
    assert not shares.is_open(0.1)
    assert sum(each.writes for each in without_share(tuple(windows), 0.5)) == 30 * WINDOWS


@pytest.mark.parametrize("iops", [90, 510, 1000])
def test_limit_beyond_all_counts_of_writes_is_not_explained(iops: float) -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    assert shares_of(windows, iops).releases == 0


def test_limit_that_does_not_count_writes_is_not_explained() -> None:
    windows = tuple(windows_of(ROLLBACK_JOURNAL, itertools.repeat(30)))
    reads = build_limits(Rates(300.0, None), "separate").throttled_charges
    assert explained_shares(windows, reads, 0.1).releases == 0


@given(st.integers(20, 60), st.randoms(use_true_random=False))
def test_share_is_found_wherever_samples_fall(admitted: int, generator: random.Random) -> None:
    """A sample may be taken before a request completes that was admitted, or after it."""
    late = (generator.random() < 0.5 for _ in itertools.count())
    per_window = (admitted + before - after for before, after in itertools.pairwise(late))
    shares = shares_of(windows_of(ROLLBACK_JOURNAL, per_window), admitted * 10)
    assert shares.releases == WINDOWS
    assert shares.share == pytest.approx(0.5, abs=2 / shares.last.flushes)


def test_late_samples_do_not_change_what_a_limiter_with_windows_admits() -> None:
    windows = [
        msgspec.structs.replace(each, seconds=seconds)
        for each, seconds in zip(
            windows_of(ROLLBACK_JOURNAL, itertools.repeat(30)),
            itertools.cycle([0.1, 0.115, 0.085]),
            strict=False,
        )
    ]
    shares = shares_of(windows)
    assert shares.is_limiter(0.1)
    assert shares.share == pytest.approx(0.5, abs=0.01)


def test_disk_that_drifts_from_the_limit_by_few_requests_is_not_on_it() -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.cycle([31, 31, 31, 31, 29, 29, 29, 29]))
    assert not shares_of(windows).is_limiter(0.1)


def late_windows(idle_s: float) -> list[Interval]:
    """Return windows of a leaky bucket, of which every tenth ends six requests below the limit.

    Nothing was in flight for a time then, and these requests are admitted in the next.
    """
    windows = windows_of(ROLLBACK_JOURNAL, itertools.cycle([30] * 8 + [24, 36]))
    took_ms = round((0.095 - idle_s) * 1000)
    return [
        msgspec.structs.replace(each, write_ms=took_ms) if number % 10 == 8 else each
        for number, each in enumerate(windows)
    ]


def test_limiter_saves_requests_while_nothing_is_in_flight() -> None:
    shares = shares_of(late_windows(0.02))
    assert shares.is_limiter(0.1)
    assert shares.share == pytest.approx(0.5, abs=0.01)
    assert not shares_of(late_windows(0.0)).is_limiter(0.1)


def test_share_is_found_where_the_disk_has_nothing_to_do_now_and_then() -> None:
    found = verdicts(late_windows(0.02), limits_of(300))
    assert [each.verdict for each in found].count("throttled") >= WINDOWS - 4


def test_time_in_which_the_disk_usually_has_nothing_to_do_explains_nothing() -> None:
    """A program that thinks between its requests has such a time in each release."""
    windows = [msgspec.structs.replace(each, write_ms=78) for each in late_windows(0.02)]
    assert not shares_of(windows).is_limiter(0.1)


def test_share_outlasts_a_release_that_another_count_explains() -> None:
    """The machine was late: 24 requests instead of 30, for which the kernel counts 31 writes."""
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    late = msgspec.structs.replace(windows[0], writes=31, flushes=14)
    found = verdicts([*windows, late, *windows], limits_of(300))
    assert [each.verdict for each in found].count("throttled") >= 2 * WINDOWS - 2


def test_share_outlasts_a_pause() -> None:
    windows = windows_of(ROLLBACK_JOURNAL, itertools.repeat(30))
    light = [msgspec.structs.replace(each, write_ms=5, inflight=0) for each in windows[:5]]
    found = verdicts([*windows, *light, *windows[:10]], limits_of(300))
    assert {each.verdict for each in found[-8:]} == {"throttled"}
