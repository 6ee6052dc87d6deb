"""Snapshots, and records of each tick, as printed by `disksla replay --json`."""

import pytest

from disksla.base.operating_system import SourceHealth
from disksla.state.pipeline import Snapshot
from disksla.state.pipeline.window_records import WindowRecord, window_records
from support.simulated_host import Machine, a_disk


def records(
    machine: Machine, after_s: float = 0.1, text: str | None = "as it is"
) -> list[WindowRecord]:
    before = machine.state
    return window_records(before, machine.tick(after_s, text=text))


def test_window_idle_window_and_gap() -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.does("vda", reads=3, read_sectors=24)
    found = [row for _ in range(10) for row in records(machine)]
    (busy,) = [row for row in found if row.reads]
    assert (busy.reads, busy.read_bytes, busy.gap) == (3, 12288, None)
    assert busy.window_s == pytest.approx(0.1)
    assert [row.monotonic_s for row in found] == sorted({row.monotonic_s for row in found})
    (idle,) = records(machine)
    assert (idle.reads, idle.inflight, idle.gap) == (0, 0, None)
    machine.does("vda", reads=30)
    *_, late = records(machine, after_s=5.0)
    assert (late.reads, late.gap) == (None, "late")


def test_first_sample_has_gap_start() -> None:
    machine = Machine()
    disk = a_disk()
    machine.disks = (disk,)
    machine.numbers["vda"] = dict.fromkeys(Machine(disk).numbers["vda"], 0)
    before = machine.state
    (record,) = window_records(before, machine.tick(disks=(disk,)))
    assert record.gap == "start"


def test_no_records_before_first_sample() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert records(machine, text=None) == []


def test_each_window_has_one_record_if_a_disk_vanishes_while_verdicts_wait() -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.does("vda", inflight=8)
    windows: list[WindowRecord] = []
    for tick in range(25):
        if tick % 10 == 9:
            machine.does("vda", reads=100, read_ms=8000)
        windows += records(machine)
    assert 0 < len(windows) < 25
    windows += records(machine, text="")
    recorded_s = [window.monotonic_s for window in windows if window.gap is None]
    assert len(recorded_s) == len(set(recorded_s)) == 25


def test_health_of_parts_of_the_daemon_is_added() -> None:
    state = Machine().state
    before = Snapshot(state).sampler
    health = (
        SourceHealth("state", 3, works=False, problem="No space left on device"),
        SourceHealth("systemd", 2, works=None),
        SourceHealth("web", 0, works=True),
    )
    after = Snapshot(state, health, {("file", "invalid"): 2})
    assert after.terms.failures == {("file", "invalid"): 2}
    assert after.sampler.errors == {**before.errors, "state": 3, "systemd": 2, "web": 0}
    assert after.sampler.collectors == {**before.collectors, "state": False, "web": True}
    assert after.sampler.problems == {"state": "No space left on device"}
    assert Snapshot(state).sampler == before
