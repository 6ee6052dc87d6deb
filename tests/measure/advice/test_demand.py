"""What a load asked for: arrivals, data writes, and what is not known of limited windows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.advice.demand import NOTHING, Demand, demand_of, served_of, total_served
from disksla.promise.catalogue.cost_model import Charge, Work
from disksla.state.pipeline import WindowRecord
from disksla.verdict.throttling import Verdict

WINDOW_S = 0.1


def record(
    number: int,
    reads: int = 0,
    writes: int = 0,
    inflight: int = 0,
    verdict: Verdict = "unproven",
    throttled_s: float | None = None,
    flushes: int = 0,
) -> WindowRecord:
    """Return the record of a window with reads of 4 KiB and writes of 8 KiB."""
    return WindowRecord(
        (number + 1) * WINDOW_S,
        "vdb",
        None,
        WINDOW_S,
        reads,
        writes,
        reads * 4096,
        (writes - flushes) * 8192,
        flushes,
        False,
        inflight,
        verdict=verdict,
        throttled_s=throttled_s,
    )


VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(["unproven", "met", "throttled", "below"])
RECORDS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 32), VERDICTS),
    min_size=1,
    max_size=30,
).map(lambda rows: [record(number, *row) for number, row in enumerate(rows)])


def arrivals(demand: Demand) -> list[float]:
    return [window.most.reads + window.most.writes for window in demand.windows]


def test_requests_arrive_when_they_are_in_flight() -> None:
    rows = [
        record(0, reads=10, inflight=20),
        record(1, reads=10, inflight=10),
        record(2, reads=10),
    ]
    assert arrivals(demand_of(served_of(rows))) == [30, 0]


def test_requests_that_arrive_have_the_size_of_those_that_complete_next() -> None:
    rows = [record(0, reads=10, inflight=4), record(1, writes=8)]
    [first, second] = demand_of(served_of(rows)).windows
    assert first.most == Work(10, 4, 10 * 4096, 4 * 8192)
    assert second.most == Work(0, 4, 0, 4 * 8192)


@given(RECORDS)
def test_all_that_completes_has_arrived_before(rows: list[WindowRecord]) -> None:
    served = served_of(rows)
    demand = demand_of(served)
    assert sum(arrivals(demand)) == pytest.approx(sum(each.requests for each in served))
    assert demand.seconds == pytest.approx(len(rows) * WINDOW_S)
    assert demand.work.read_bytes == pytest.approx(sum(row.read_bytes or 0 for row in rows))
    end_s = arrived = 0.0
    for window in demand.windows:
        end_s += window.seconds
        arrived += window.most.reads + window.most.writes
        completed = sum(each.requests for each in served if each.end_s <= end_s + 1e-9)
        assert arrived >= completed - 1e-6


@pytest.mark.parametrize(
    ("writes", "flushes", "inflight", "fewest"),
    [
        (10, 5, 1, 5),
        (11, 2, 3, 6),  # merged flushes leave half of the writes certain
    ],
)
def test_empty_flushes_are_not_certain_data_writes(
    writes: int, flushes: int, inflight: int, fewest: int
) -> None:
    [window] = served_of([record(0, writes=writes, flushes=flushes, inflight=inflight)])
    assert (window.least.writes, window.most.writes) == (fewest, writes)


def test_what_a_throttled_load_asked_for_is_bounded_by_the_rest_of_the_time() -> None:
    """30 requests completed in a fifth of each window."""
    rows = [
        record(number, reads=30, inflight=4, verdict="throttled", throttled_s=0.08)
        for number in range(3)
    ]
    [window] = demand_of(served_of(rows)).windows
    assert window.most_requests == pytest.approx(3 * 1.25 * 30 * 5)
    assert window.most_times == pytest.approx(1.25 * 5)


@pytest.mark.parametrize(
    ("verdict", "throttled_s"), [("throttled", WINDOW_S), ("below", None), ("stalled", None)]
)
@pytest.mark.parametrize("reads", [0, 30])
def test_of_a_window_without_other_time_there_is_no_bound(
    reads: int, verdict: Verdict, throttled_s: float | None
) -> None:
    rows = [record(0, reads=reads, verdict=verdict, throttled_s=throttled_s)]
    [window] = demand_of(served_of(rows)).windows
    assert window.most_requests == math.inf
    assert window.most_times > 10**6


def test_windows_of_a_kind_become_one() -> None:
    rows = [
        record(0),
        record(1),
        record(2, reads=5),
        record(3, reads=5),
        record(4, reads=5, verdict="throttled", throttled_s=0.05),
        record(5, reads=5, verdict="throttled", throttled_s=0.1),
    ]
    demand = demand_of(served_of(rows))
    assert [round(window.seconds, 3) for window in demand.windows] == [0.2, 0.1, 0.1, 0.2]
    assert demand.limited_share == pytest.approx(2 / 6)
    assert demand.throttled_share == pytest.approx(0.15 / 0.6)


def test_a_recording_without_windows_asks_for_nothing() -> None:
    demand = demand_of(served_of([WindowRecord(0.1, "vdb", gap="late")]))
    assert (demand.limited_share, demand.throttled_share, demand.work) == (0.0, 0.0, NOTHING)


def test_disks_of_a_group_are_added_up() -> None:
    one = served_of([record(0, reads=10, inflight=2), record(1, reads=10)])
    other = served_of([record(1, writes=5, inflight=1, verdict="throttled", throttled_s=0.1)])
    first, second = total_served([one, other])
    assert (first.requests, first.inflight, first.is_limited) == (10, 2, False)
    assert (second.requests, second.inflight, second.is_limited) == (15, 1, True)
    assert second.most == Work(10, 5, 40960, 40960)
    assert (second.throttled_s, second.most_requests) == (0.1, math.inf)


@given(RECORDS, RECORDS)
def test_a_group_asks_for_as_much_as_its_disks(
    one: list[WindowRecord], other: list[WindowRecord]
) -> None:
    charge = Charge("iops", 0.01, 0.02, 1e-6, 2e-6)
    served = [served_of(rows) for rows in (one, other)]
    group = demand_of(total_served(served)).work.cost_s(charge)
    apart = sum(demand_of(each).work.cost_s(charge) for each in served)
    assert group == pytest.approx(apart)
