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


@pytest.mark.parametrize(
    ("limit", "reads", "peak", "least", "most"),
    [
        (500, 6000, 400, 0, 0),  # a peak below the limit is never throttled
        (300, 6000, 1000, 0, 20 / 60),  # 6000 reads, 1000 a second at most: 6 s of the limit's 20
        # Twice the limit: at the least, a nineteenth of the time has 20 times it, the rest 1.
        (50, 6000, 1000, (2 - 1) / 20.2, 1.0),
        (300, 3000, None, 0, 10 / 60),  # without peaks, all may have arrived at once
    ],
)
def test_a_load_between_two_scrapes(
    limit: float, reads: float, peak: float | None, least: float, most: float
) -> None:
    found = share(iops(limit), [scrape(0, 0), scrape(60, reads, peak)])
    assert found == pytest.approx((least, most), abs=0.001)


@pytest.mark.parametrize("seconds", [PEAK_S, PEAK_S + 1])
def test_peaks_are_those_of_a_minute(seconds: float) -> None:
    _, most = share(iops(500), [scrape(0, 0), scrape(seconds, 6000, 400)])
    assert (most > 0) is (seconds > PEAK_S)


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


def test_time_of_a_reset_and_before_the_first_counters_is_left_out() -> None:
    """A daemon that has just started knows verdicts, but no requests."""
    started = Scrape(0, {(CounterName.VERDICT_SECONDS, "idle"): 0.0}, {}, {})
    for scrapes in (
        [scrape(0, 100), scrape(60, 10), scrape(120, 20)],
        [started, scrape(60, 10**9), scrape(120, 10**9)],
    ):
        assert demand_of(scrapes).seconds == pytest.approx(60)


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


@given(
    st.integers(1, 2).flatmap(
        lambda disks: st.lists(
            st.tuples(*[st.integers(0, 60)] * disks), min_size=WINDOWS, max_size=WINDOWS
        )
    ),
    st.integers(50, 1400),
)
def test_bounds_contain_those_of_the_windows(reads: list[tuple[int, ...]], rate: int) -> None:
    """The same load of one or two disks, seen in windows of 100 ms and between two scrapes."""
    windows = []
    for each in map(sum, reads):
        work = Work(each, 0, each * 4096, 0)
        windows.append(DemandWindow(WINDOW_S, work, work, 0.0, False, each, each))
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
