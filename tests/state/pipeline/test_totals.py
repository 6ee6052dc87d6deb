"""Totals of verdicts, peak rates within the last minute, and latencies."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.totals import (
    KEPT_S,
    LONGEST_WAIT_S,
    LatencyMeter,
    Peak,
    Traffic,
    VerdictTotals,
    highest,
    with_peaks,
)
from disksla.verdict.interval.interval import Interval, idle
from disksla.verdict.throttling.throttle import LIMIT_KINDS, Throttle
from disksla.verdict.throttling.verdict import VERDICTS, WindowVerdict
from support.examples import scaled
from support.simulated_host import Machine, a_disk

verdicts = st.one_of(
    st.sampled_from([WindowVerdict(verdict) for verdict in VERDICTS if verdict != "throttled"]),
    st.builds(
        WindowVerdict,
        verdict=st.just("throttled"),
        throttle=st.builds(Throttle, level=st.just("base"), limit=st.sampled_from(LIMIT_KINDS)),
        wait_s=st.floats(0, 10),
    ),
)


@given(st.lists(st.tuples(verdicts, st.floats(0.01, 0.3))))
def test_each_window_has_one_verdict(windows: list[tuple[WindowVerdict, float]]) -> None:
    of_each = [idle(0.0, seconds) for _, seconds in windows]
    totals = VerdictTotals().plus(of_each, [window_verdict for window_verdict, _ in windows])
    assert sum(totals.seconds) == pytest.approx(sum(seconds for _, seconds in windows))
    throttled_s = totals.seconds[VERDICTS.index("throttled")]
    assert sum(totals.throttled_s) == pytest.approx(throttled_s)
    assert totals.wait_s == pytest.approx(
        sum(window_verdict.wait_s for window_verdict, _ in windows)
    )


def test_idle_time_and_host_wait_are_added() -> None:
    totals = VerdictTotals().plus_idle(3.0).plus_host(HostWait(0.1, 0.2, 0.3))
    totals = totals.plus_host(HostWait(0.1, 0.2, 0.3))
    assert dict(zip(VERDICTS, totals.seconds, strict=True))["idle"] == 3.0
    assert totals.host == HostWait(0.2, 0.4, 0.6)


ticks = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 29, 30, 31, 60, 500]),
        st.integers(0, 4000),
        st.sampled_from([0, 0, 1, 2, 32]),
        st.sampled_from([0.1, 0.1, 0.1, 0.1001, 0.118, 0.25, 5.0]),
        st.sampled_from(["as it is"] * 9 + [None]),
    ),
    max_size=60,
)


@scaled(60)
@given(ticks=ticks, has_terms=st.booleans())
def test_verdicts_sum_to_assessed_time(
    ticks: list[tuple[int, int, int, float, str | None]], has_terms: bool
) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=300.0))
    machine = Machine(a_disk(), settings=Settings(disks=(entry,) if has_terms else ()))
    for reads, read_ms, inflight, after_s, text in ticks:
        machine.does(
            "vda", reads=reads, read_sectors=8 * reads, read_ms=read_ms, inflight=inflight
        )
        machine.tick(after_s, text=text)
    state = machine.state
    disk_totals = state.monitored["vda"].totals.with_idle_until(state.assessed, machine.now_s)
    totals = disk_totals.verdict_totals
    undecided_s = sum(window.seconds for window in disk_totals.undecided.windows)
    assert sum(totals.seconds) + undecided_s == pytest.approx(state.assessed.seconds)
    assert undecided_s < 2.5
    assert sum(totals.throttled_s) == pytest.approx(totals.seconds[VERDICTS.index("throttled")])


def window(end_s: float, reads: int = 0, writes: int = 0) -> Interval:
    return Interval(reads, writes, reads * 4096, 0, end_s, 0.1, 0, 0, inflight=0)


def test_peak_is_kept_for_a_minute() -> None:
    peaks = with_peaks((), [window(100.1, reads=500)])
    peaks = with_peaks(peaks, [window(100.2, reads=1, writes=7)])
    assert highest(peaks, now_s=159.9) == Traffic(5000, 70, 5000 * 4096, 0)
    assert highest(peaks, now_s=161.0) == Traffic()


requests = st.integers(0, 10) | st.integers(0, 10**6)


@given(st.lists(st.tuples(st.integers(0, 30), requests, requests), max_size=80))
def test_highest_covers_all_windows_of_the_minute(steps: list[tuple[int, int, int]]) -> None:
    peaks: tuple[Peak, ...] = ()
    windows: list[Interval] = []
    second = 0
    for step_s, reads, writes in steps:
        second += step_s
        windows.append(window(second, reads, writes))
        peaks = with_peaks(peaks, windows[-1:])
    minute = [each for each in windows if each.end_s >= second - KEPT_S]
    found = highest(peaks, float(second))
    assert found.read_iops == max((each.reads for each in minute), default=0) / 0.1
    assert found.write_iops == max((each.writes for each in minute), default=0) / 0.1
    assert len(peaks) <= KEPT_S + 1
    assert highest(with_peaks((), windows), float(second)) == found


windows = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 5000), st.floats(0.05, 0.3)), max_size=50
)


def test_enough_milliseconds_are_observed_at_once() -> None:
    meter = LatencyMeter().plus([(30, 3120, 1.0)])
    assert meter.pending_requests == 0
    assert meter.histogram.total == pytest.approx(3.120)
    assert meter.histogram.count == 30


def test_fast_requests_wait_for_enough_milliseconds() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0), (10, 3, 1.1)])
    assert meter.histogram.count == 0
    meter = meter.plus([(60, 15, 1.2)])
    assert meter.histogram.count == 80
    assert meter.histogram.total == pytest.approx(0.020)


def test_pending_requests_are_observed_after_a_second() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0), (1, 0, 1.0 + LONGEST_WAIT_S)])
    assert (meter.histogram.count, meter.pending_requests) == (11, 0)


def test_overdue_requests_of_idle_disk_are_observed() -> None:
    meter = LatencyMeter().plus([(10, 2, 1.0)])
    assert meter.with_overdue(now_s=1.5).histogram.count == 0
    assert meter.with_overdue(now_s=2.5).histogram.count == 10


@given(windows)
def test_requests_and_time_are_preserved(added: list[tuple[int, int, float]]) -> None:
    meter, now_s = LatencyMeter(), 0.0
    for requests, milliseconds, step_s in added:
        now_s += step_s
        meter = meter.plus([(requests, milliseconds, now_s)])
    meter = meter.with_overdue(now_s + 10)
    assert meter.histogram.count == sum(requests for requests, _, _ in added)
    assert meter.histogram.total == pytest.approx(
        sum(milliseconds for requests, milliseconds, _ in added if requests) / 1000
    )


def test_requests_whose_time_is_not_known_are_left_out() -> None:
    assert LatencyMeter().plus([(10, None, 1.0)]) == LatencyMeter()


@given(windows)
def test_windows_at_once_count_as_one_after_another(added: list[tuple[int, int, float]]) -> None:
    ends_s = list(accumulate(step_s for _, _, step_s in added))
    completed = [
        (requests, took_ms, end_s)
        for (requests, took_ms, _), end_s in zip(added, ends_s, strict=True)
    ]
    meter = LatencyMeter()
    for each in completed:
        meter = meter.plus([each])
    assert meter == LatencyMeter().plus(completed)
