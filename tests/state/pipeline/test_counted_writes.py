"""Exact counts of data writes: differences, gaps, and what uses them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.odd_counters import DataWrites
from disksla.state.pipeline.snapshot import DiskSnapshot, Snapshot
from disksla.state.pipeline.state import State, is_idle
from disksla.state.pipeline.window_records import window_records
from disksla.verdict.interval.interval import Interval
from support.simulated_host import CATALOG, Machine, a_disk

TERMS = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0))
SETTINGS = Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=TERMS),))


class CountedMachine(Machine):
    """A machine with one disk, whose data writes are counted exactly from the second tick on."""

    def __init__(self, *, is_counted: bool = True) -> None:
        disk = a_disk(write_back=True, largest_request_bytes=2**20)
        super().__init__(disk, settings=SETTINGS)
        self.is_counted = is_counted
        self.opening = 1
        self.count = 0
        self.window()

    def window(self, data: int = 0, empty: int = 0, merged: int = 0) -> None:
        """Sample after data writes and empty flushes, some of which were merged."""
        flushes = max(min(1, empty), empty - merged)
        self.does("vda", writes=data + empty, written_sectors=16 * data, flushes=flushes)
        self.count += data
        self.data_writes = {"vda": (self.opening, self.count)} if self.is_counted else {}
        self.tick()

    @property
    def disk(self) -> DiskState:
        return self.state.monitored["vda"]

    @property
    def last(self) -> Interval:
        return self.disk.totals.recent[-1]

    @property
    def snapshot(self) -> DiskSnapshot:
        return Snapshot(self.state).disks[0]


def bounds(machine: CountedMachine) -> tuple[float, float]:
    (level,) = machine.snapshot.credits
    return level.lower_credits, level.upper_credits


def test_difference_of_counts_is_exact() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=20, merged=15)
    assert (machine.last.writes, machine.last.is_exact) == (30, True)
    machine.window(data=5, empty=5)
    assert machine.last.writes == 5
    assert machine.snapshot.data_writes == 35
    assert machine.snapshot.counters is not None
    assert machine.snapshot.counters.writes == 60


@pytest.mark.parametrize("is_counted", [True, False])
def test_load_peak_rates_and_latency_are_of_data_writes(is_counted: bool) -> None:
    machine = CountedMachine()
    machine.is_counted = is_counted
    machine.does("vda", write_ms=150, flush_ms=60)
    machine.window(data=30, empty=30)
    assert machine.snapshot.peak.write_iops == pytest.approx(300)
    assert machine.snapshot.present.write_iops == pytest.approx(30)
    assert machine.snapshot.present_load == pytest.approx(0.1)
    latency_s = machine.snapshot.totals.write_latency.histogram
    assert latency_s.count == 30
    assert latency_s.total == pytest.approx(0.09)


@pytest.mark.parametrize("is_counted", [True, False])
@given(windows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6))
def test_sums_of_data_writes_are_bounds_or_exact(
    windows: list[tuple[int, int]], is_counted: bool
) -> None:
    machine = CountedMachine(is_counted=is_counted)
    machine.window(data=1)
    before = machine.disk.totals
    for data, empty in windows:
        machine.window(data, empty)
    least = machine.disk.totals.least_writes - before.least_writes
    most = machine.disk.totals.most_writes - before.most_writes
    data, empty = (sum(each) for each in zip((0, 0), *windows, strict=True))
    assert (least, most) == (data, data) if is_counted else least <= data <= most == data + empty


def test_counters_opened_again_have_no_difference() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=30)
    machine.opening, machine.count = 2, 1000
    machine.window(data=10, empty=5)
    assert (machine.last.writes, machine.last.flushes, machine.last.is_exact) == (15, 5, False)
    machine.window(data=10, empty=5)
    assert (machine.last.writes, machine.last.is_exact) == (10, True)
    assert machine.snapshot.data_writes == 40


def test_sample_without_a_count_is_followed_by_one_without_a_difference() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=30)
    machine.is_counted = False
    machine.window(data=10, empty=5)
    assert (machine.last.is_exact, machine.snapshot.data_writes) == (False, None)
    machine.is_counted = True
    machine.window(data=10, empty=5)
    assert not machine.last.is_exact
    machine.window(data=10, empty=5)
    assert (machine.last.is_exact, machine.snapshot.data_writes) == (True, 40)


def test_disk_whose_requests_are_not_counted_keeps_its_range() -> None:
    machine = CountedMachine()
    for _ in range(3):
        machine.does("vda", writes=60, written_sectors=16 * 30, flushes=30)
        machine.data_writes = {"vda": (1, 0)}
        machine.tick()
        assert (machine.last.writes, machine.last.is_exact) == (60, False)
    assert machine.snapshot.data_writes is None


def test_no_data_write_with_written_sectors_is_not_believed() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=30)
    machine.does("vda", writes=60, written_sectors=16 * 30, flushes=30)
    machine.tick()
    assert (machine.last.writes, machine.last.is_exact) == (60, False)


def test_count_stays_valid_while_the_disk_is_idle() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=30)
    machine.data_writes = {}
    machine.tick()
    machine.window(data=4, empty=2)
    machine.window(data=4, empty=2)
    assert (machine.last.writes, machine.last.is_exact) == (4, True)


def test_gap_and_reset_of_the_counters() -> None:
    machine = CountedMachine()
    machine.window(data=30, empty=30)
    machine.now_s += 5
    machine.window(data=2000, empty=1000)
    assert machine.disk.data_writes.total == 2030
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.window(data=1, empty=1)
    machine.window(data=7, empty=3)
    assert (machine.last.writes, machine.last.is_exact) == (7, True)


def test_records_show_what_is_exact() -> None:
    for is_counted, writes in ((True, 10), (False, 15)):
        machine = CountedMachine(is_counted=is_counted)
        machine.window(data=30, empty=30)
        machine.window(data=10, empty=5)
        records = []
        for _ in range(12):
            before = machine.state
            machine.window()
            records += window_records(before, machine.state)
        found = [record for record in records if record.flushes == 5]
        assert [(each.writes, each.is_exact) for each in found] == [(writes, is_counted)]


def test_machine_is_idle_while_its_disks_do_nothing() -> None:
    machine = Machine(a_disk("vda"), settings=Settings())
    assert not is_idle(State(Configuration(Settings(), CATALOG)), machine.text())
    machine.tick()
    machine.does("vda", reads=10, read_sectors=80)
    machine.tick()
    assert not is_idle(machine.state, machine.text())
    for _ in range(10):  # until its windows are decided, at the end of the second
        machine.tick()
    assert is_idle(machine.state, machine.text())
    assert not is_idle(machine.state, None)
    machine.does("vda", reads=10, read_sectors=80)
    assert not is_idle(machine.state, machine.text())


def test_only_disks_with_a_write_cache_are_counted() -> None:
    back, through = a_disk("vda", 0, write_back=True), a_disk("vdb", 16, write_back=False)
    machine = Machine(back, through, a_disk("vdc", 32))
    assert machine.state.with_write_cache == {"vda": (254, 0)}
    machine.tick()
    assert machine.state.with_write_cache == {"vda": (254, 0)}
    machine.tick(disks=(msgspec.structs.replace(back, write_back=False), through))
    assert machine.state.with_write_cache == {}


windows = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=30
)


@given(windows)
def test_bounds_of_credits_with_exact_counts_are_within_those_of_the_range(
    mix: list[tuple[int, int, int]],
) -> None:
    """A machine whose disk had no flush at all has the same bounds as one with exact counts."""
    counted, in_range, without = (
        CountedMachine(),
        CountedMachine(is_counted=False),
        CountedMachine(is_counted=False),
    )
    for data, empty, merged in mix:
        counted.window(data, empty, merged)
        in_range.window(data, empty, merged)
        without.window(data)
        exact, wide = bounds(counted), bounds(in_range)
        assert wide[0] <= exact[0] + 1e-6
        assert exact[1] <= wide[1] + 1e-6
        if data:
            assert counted.last.is_exact
    assert bounds(counted) == pytest.approx(bounds(without), abs=1e-6)


readings = st.none() | st.tuples(st.integers(1, 2), st.integers(0, 5))


@given(st.lists(readings))
def test_total_is_the_sum_of_what_is_known(samples: list[tuple[int, int] | None]) -> None:
    state, known = DataWrites(), 0
    for reading in samples:
        state, rise = state.plus(reading)
        assert rise is None or rise >= 0
        known += rise or 0
        assert state.total == known
        assert state.exact_total in {None, known}
    assert DataWrites().plus(None) == (DataWrites(), None)
