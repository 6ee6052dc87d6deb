"""Intervals and gaps between two samples."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.counts import total
from disksla.kernel.procfs import CounterValues
from disksla.verdict.interval.interval import (
    GAP_REASONS,
    Clocks,
    Interval,
    elapsed_or_gap,
    interval_of,
)

AT_NOON = Clocks(monotonic_s=100.0, boottime_s=150.0, realtime_s=1.7e9)


def later(monotonic_s: float, *, suspended_s: float = 0.0, clock_change_s: float = 0.0) -> Clocks:
    return Clocks(
        AT_NOON.monotonic_s + monotonic_s,
        AT_NOON.boottime_s + monotonic_s + suspended_s,
        AT_NOON.realtime_s + monotonic_s + suspended_s + clock_change_s,
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (later(0.1), pytest.approx(0.1)),
        (later(0.118), pytest.approx(0.118)),
        (later(0.29), pytest.approx(0.29)),
        (later(0.31), "late"),
        (later(60), "late"),
        (later(0.1, suspended_s=3600), "suspend"),
        (later(30, suspended_s=3600), "suspend"),
        (later(0.1, clock_change_s=3600), "clock_step"),
        (later(0.1, clock_change_s=-3600), "clock_step"),
        (later(0.1, clock_change_s=0.01), pytest.approx(0.1)),
        (later(0.0), "clock_step"),
        (later(-5.0), "clock_step"),
    ],
)
def test_elapsed_or_gap(after: Clocks, expected: object) -> None:
    assert elapsed_or_gap(AT_NOON, after, tick_s=0.1) == expected


any_time = st.floats(allow_nan=False, allow_infinity=False)
clocks = st.builds(Clocks, any_time, any_time, any_time)


@given(clocks, clocks)
def test_elapsed_or_gap_of_any_clocks(before: Clocks, after: Clocks) -> None:
    measured = elapsed_or_gap(before, after, 0.1)
    assert measured in GAP_REASONS or (isinstance(measured, float) and 0 < measured <= 0.3)


@given(st.lists(st.floats(0.09, 0.11), min_size=1, max_size=20))
def test_elapsed_times_add_up(steps_s: list[float]) -> None:
    times_s = [sum(steps_s[:n]) for n in range(len(steps_s) + 1)]
    measured = [
        elapsed_or_gap(later(start_s), later(end_s), 0.1) for start_s, end_s in pairwise(times_s)
    ]
    assert all(isinstance(seconds, float) for seconds in measured)
    assert sum(float(seconds) for seconds in measured) == pytest.approx(sum(steps_s))


def test_interval_of_converts_sectors_to_bytes() -> None:
    before = (10, 0, 800, 100, 5, 0, 40, 50, 7, 7)
    after = (13, 0, 824, 109, 6, 0, 48, 50, 8, 8)
    interval = interval_of(7.0, 0.1, before, after, inflight=2)
    assert (interval.read_bytes, interval.written_bytes) == (12288, 4096)
    assert (interval.reads, interval.writes, interval.inflight) == (3, 1, 2)
    assert (interval.read_ms, interval.write_ms) == (9, 0)


def test_time_with_requests_in_flight_is_that_of_one_disk() -> None:
    before = (10, 0, 800, 100, 5, 0, 40, 50, 7, 7)
    after = (13, 0, 824, 109, 6, 0, 48, 50, 47, 8)
    interval = interval_of(7.0, 0.1, before, after, inflight=0)
    assert interval.busy_ms == 40
    assert (interval + interval).busy_ms == 80
    assert interval_of(7.0, 0.1, before[:8], after[:8], inflight=0).busy_ms == 0


def test_interval_of_uncounted_time_is_none() -> None:
    before = (10, None, 800, None, 5, None, 40, None)
    interval = interval_of(7.0, 0.1, before, before, inflight=0)
    assert (interval.reads, interval.read_ms, interval.write_ms) == (0, None, None)


DATA_WRITE, EMPTY_FLUSH, COMMIT, COMMIT_BY_FUA = (1, 0, 8), (1, 1, 0), (1, 2, 8), (1, 1, 8)
"""Writes, flushes and sectors that the kernel counts, as measured on Linux 6.18; the commit of a
journal flushes before it and, without FUA, after it."""


def reading(requests: list[tuple[int, int, int]]) -> CounterValues:
    writes, flushes, sectors = (sum(request[n] for request in requests) for n in range(3))
    return (0, 0, 0, 0, writes, 0, sectors, 0, 0, 0, 0, 0, 0, 0, flushes, 0)


@given(
    st.lists(st.sampled_from([DATA_WRITE, EMPTY_FLUSH, COMMIT, COMMIT_BY_FUA])),
    st.integers(0, 2**40),
)
def test_data_writes_are_between_both_counts(
    requests: list[tuple[int, int, int]], before: int
) -> None:
    earlier = (before,) * 16
    after = tuple(before + (count or 0) for count in reading(requests))
    interval = interval_of(1.0, 0.1, earlier, after, 0)
    data_writes = len(requests) - requests.count(EMPTY_FLUSH)
    assert interval.without_flushes().writes <= data_writes <= interval.writes


MIXES = st.lists(st.sampled_from([DATA_WRITE, EMPTY_FLUSH, COMMIT, COMMIT_BY_FUA]))


def window_of(requests: list[tuple[int, int, int]], merged: int = 0) -> Interval:
    """Return a window with these requests, in which the kernel merged some of the flushes."""
    window = interval_of(1.0, 0.1, (0,) * 16, reading(requests), 0)
    return msgspec.structs.replace(window, flushes=max(0, window.flushes - merged))


def data_writes_of(requests: list[tuple[int, int, int]]) -> int:
    return len(requests) - requests.count(EMPTY_FLUSH)


@given(MIXES, st.integers(0, 20))
def test_exact_count_closes_the_range(requests: list[tuple[int, int, int]], merged: int) -> None:
    counted = window_of(requests, merged)
    exact = counted.with_data_writes(data_writes_of(requests))
    assert exact.writes == exact.without_flushes().writes == data_writes_of(requests)
    assert exact.without_flushes() == exact
    assert exact.written_bytes == counted.written_bytes
    assert exact.has_flushes == counted.has_flushes
    assert exact.is_exact


@given(st.lists(st.tuples(MIXES, st.booleans()), min_size=1, max_size=5))
def test_range_of_a_sum_is_that_of_its_windows_without_exact_counts(
    windows: list[tuple[list[tuple[int, int, int]], bool]],
) -> None:
    each = [
        window_of(requests).with_data_writes(data_writes_of(requests))
        if is_exact
        else window_of(requests)
        for requests, is_exact in windows
    ]
    whole = total(each)
    data_writes = sum(data_writes_of(requests) for requests, _ in windows)
    assert whole.without_flushes().writes <= data_writes <= whole.writes
    assert whole.is_exact == all(is_exact for _, is_exact in windows)
    assert not whole.is_exact or whole.writes == data_writes
    assert whole.has_flushes == any(window_of(requests).flushes for requests, _ in windows)


def test_time_of_flushes_is_not_that_of_data_writes() -> None:
    counted = Interval(0, 8, 0, 4 * 8192, 1.0, 0.1, 0, 60, 1, flushes=4, flush_ms=20)
    assert counted.with_data_writes(4).write_ms == 40
    assert msgspec.structs.replace(counted, flush_ms=90).with_data_writes(4).write_ms == 0
    assert msgspec.structs.replace(counted, write_ms=None).with_data_writes(4).write_ms is None


@given(st.integers(0, 1000))
def test_data_writes_of_one_writer_with_fdatasync_are_exact(writes: int) -> None:
    after = reading([DATA_WRITE, EMPTY_FLUSH] * writes)
    assert interval_of(1.0, 0.1, (0,) * 16, after, 0).without_flushes().writes == writes


def test_flushes_that_the_kernel_does_not_count_are_none() -> None:
    after = reading([DATA_WRITE, EMPTY_FLUSH])[:11]
    interval = interval_of(1.0, 0.1, (0,) * 11, after, 0)
    assert (interval.writes, interval.flushes) == (2, 0)


@given(
    st.lists(st.integers(1, 64), max_size=50),
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from([None, 64 * 512, 2**20]),
)
def test_fewest_writes_are_at_most_the_data_writes(
    sectors: list[int], empty: int, flushes: int, largest_request_bytes: int | None
) -> None:
    """However many empty flushes are among the writes, and however many were merged."""
    written = Interval(0, len(sectors) + empty, 0, sum(sectors) * 512, 1.0, 0.1, 0, 0, 0, flushes)
    fewest = written.with_fewest_writes(largest_request_bytes)
    assert (1 if sectors else 0) <= fewest.writes <= len(sectors)
