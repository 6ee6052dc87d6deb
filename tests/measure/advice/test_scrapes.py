"""What a load asked for between scrapes: bounds on what windows of 100 ms would have shown."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.advice.demand import Demand, DemandWindow
from disksla.measure.advice.scrapes import PEAK_S, PEAKS, demand_of_scrapes
from disksla.measure.advice.simulation import throttled_share
from disksla.measure.prometheus.step import (
    DATA_WRITES,
    FLUSHES,
    CounterName,
    Key,
    Scrape,
    steps_between,
)
from disksla.promise.catalogue import Limits, Rates, build_limits
from disksla.promise.catalogue.cost_model import Work

WINDOW_S = 0.1
TOLERANCE = 0.05
WINDOWS = 20


def iops(rate: float) -> Limits:
    return build_limits(Rates(rate, rate, rate * 8192, rate * 8192), "sum")


_COUNTERS: dict[str, Key] = {
    "writes": (CounterName.WRITES, ""),
    "flushes": (FLUSHES, ""),
    "data_writes": (DATA_WRITES, ""),
    "throttled_s": (CounterName.VERDICT_SECONDS, "throttled"),
    "below_s": (CounterName.VERDICT_SECONDS, "below"),
}


def scrape(seconds: float, reads: float, peak: float | None = None, **fields: float) -> Scrape:
    rates = () if peak is None else (peak, 0.0, peak * 4096, 0.0)
    counters = {key: 0.0 for name, key in _COUNTERS.items() if name != "data_writes"}
    counters |= {_COUNTERS[name]: value for name, value in fields.items()}
    counters |= {(CounterName.READS, ""): reads, (CounterName.READ_BYTES, ""): reads * 4096}
    return Scrape(seconds, counters, dict(zip(PEAKS, rates, strict=False)), {})


def demand_of(*disks: Sequence[Scrape]) -> Demand:
    return demand_of_scrapes(*map(steps_between, disks))


def share(limits: Limits, *disks: Sequence[Scrape]) -> tuple[float, float]:
    return throttled_share(demand_of(*disks), limits, TOLERANCE)


def test_a_peak_below_the_limit_is_never_throttled() -> None:
    assert share(iops(500), [scrape(0, 0), scrape(60, 6000, 400)]) == (0, 0)


def test_a_peak_above_the_limit_may_have_been_throttled() -> None:
    """6000 reads, 1000 of them per second at most: 6 s of the limit's 20 s."""
    least, most = share(iops(300), [scrape(0, 0), scrape(60, 6000, 1000)])
    assert least == 0
    assert most == pytest.approx(20 / 60)


def test_a_mean_above_the_limit_was_throttled() -> None:
    """Twice the limit: at the least, a nineteenth of the time has 20 times it, the rest 1."""
    least, most = share(iops(50), [scrape(0, 0), scrape(60, 6000, 1000)])
    assert least == pytest.approx((2 - 1) / 20.2, abs=0.001)
    assert most == pytest.approx(1.0)


@pytest.mark.parametrize("seconds", [PEAK_S, PEAK_S + 1])
def test_peaks_are_those_of_a_minute(seconds: float) -> None:
    _, most = share(iops(500), [scrape(0, 0), scrape(seconds, 6000, 400)])
    assert (most > 0) is (seconds > PEAK_S)


def test_without_peaks_all_may_have_arrived_at_once() -> None:
    least, most = share(iops(300), [scrape(0, 0), scrape(60, 3000)])
    assert least == 0
    assert most == pytest.approx(10 / 60)


def test_throttled_time_may_need_any_limit() -> None:
    before, after = scrape(0, 0, 900), scrape(60, 6000, 900, throttled_s=6, below_s=6)
    demand = demand_of([before, after])
    assert demand.limited_share == pytest.approx(0.2)
    assert demand.throttled_share == pytest.approx(0.1)
    least, most = share(iops(5000), [before, after])
    assert least == 0
    assert most == pytest.approx(0.2)


def test_all_of_the_time_may_have_been_limited() -> None:
    [window] = demand_of([scrape(0, 0), scrape(60, 6000, below_s=60)]).windows
    assert (window.seconds, window.is_limited) == (60, True)


def test_time_in_which_a_counter_was_reset_is_left_out() -> None:
    demand = demand_of([scrape(0, 100), scrape(60, 10), scrape(120, 20)])
    assert demand.seconds == pytest.approx(60)


def test_time_before_the_first_counters_is_left_out() -> None:
    """A daemon that has just started knows verdicts, but no requests."""
    started = Scrape(0, {(CounterName.VERDICT_SECONDS, "idle"): 0.0}, {}, {})
    assert demand_of([started, scrape(60, 10**9), scrape(120, 10**9)]).seconds == 60


@pytest.mark.parametrize(
    ("fields", "fewest", "most"),
    [
        ({"writes": 100.0}, 100, 100),
        ({"writes": 100.0, "flushes": 20.0}, 50, 100),
        ({"writes": 100.0, "flushes": 60.0}, 40, 100),
        ({"writes": 100.0, "flushes": 60.0, "data_writes": 70.0}, 70, 70),
    ],
)
def test_data_writes(fields: dict[str, float], fewest: float, most: float) -> None:
    demand = demand_of([scrape(0, 0, data_writes=0.0), scrape(60, 0, **fields)])
    assert sum(window.least.writes for window in demand.windows) == pytest.approx(fewest)
    assert demand.work.writes == pytest.approx(most)


@given(st.lists(st.integers(0, 60), min_size=WINDOWS, max_size=WINDOWS), st.integers(50, 700))
def test_bounds_contain_those_of_the_windows(reads: list[int], rate: int) -> None:
    """The same load, seen in windows of 100 ms and between two scrapes."""
    windows = []
    for each in reads:
        work = Work(each, 0, each * 4096, 0)
        windows.append(DemandWindow(WINDOW_S, work, work, 0.0, False, each, each))
    peak = max(reads) / WINDOW_S
    seen = throttled_share(Demand(tuple(windows)), iops(rate), TOLERANCE)
    least, most = share(iops(rate), [scrape(0, 0), scrape(WINDOWS * WINDOW_S, sum(reads), peak)])
    assert least <= seen.least + 1e-9
    assert seen.most <= most + 1e-9


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=WINDOWS, max_size=WINDOWS
    ),
    st.integers(50, 1400),
)
def test_bounds_of_two_disks_contain_those_of_the_windows(
    reads: list[tuple[int, int]], rate: int
) -> None:
    """The load of two disks that share a limit."""
    windows = []
    for both in reads:
        work = Work(sum(both), 0, sum(both) * 4096, 0)
        windows.append(DemandWindow(WINDOW_S, work, work, 0.0, False, sum(both), sum(both)))
    seen = throttled_share(Demand(tuple(windows)), iops(rate), TOLERANCE)
    scrapes = [
        (scrape(0, 0), scrape(WINDOWS * WINDOW_S, sum(disk), max(disk) / WINDOW_S))
        for disk in zip(*reads, strict=True)
    ]
    least, most = share(iops(rate), *scrapes)
    assert least <= seen.least + 1e-9
    assert seen.most <= most + 1e-9


def test_two_disks_that_were_throttled_at_once_or_in_turn() -> None:
    one = scrape(0, 0), scrape(60, 600, throttled_s=20, below_s=5)
    other = scrape(0, 0), scrape(60, 600, throttled_s=10, below_s=30)
    demand = demand_of(one, other)
    assert demand.seconds == pytest.approx(60)
    assert demand.throttled_share == pytest.approx(20 / 60)
    assert demand.limited_share == pytest.approx(1.0)
    assert demand.work.reads == pytest.approx(1200)


def test_a_disk_without_peaks_leaves_those_of_both_unknown() -> None:
    scrapes = (scrape(0, 0), scrape(60, 3000, 50)), (scrape(0, 0), scrape(60, 0))
    _, most = share(iops(300), *scrapes)
    assert most == pytest.approx(10 / 60)


def test_a_disk_that_was_attached_later_counts_from_then_on() -> None:
    first = [scrape(60.0 * minute, 100 * minute, 100) for minute in range(4)]
    demand = demand_of(first, first[2:])
    assert demand.seconds == pytest.approx(180)
    assert demand.work.reads == pytest.approx(400)
