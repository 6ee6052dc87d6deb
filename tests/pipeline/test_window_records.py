"""The account of each tick."""

import pytest

from disksla.pipeline.window_records import WindowRecord, window_records
from support.simulated_host import Machine, a_disk


def rows(
    machine: Machine, after_s: float = 0.1, text: str | None = "as it is"
) -> list[WindowRecord]:
    before = machine.state
    return window_records(before, machine.tick(after_s, text=text))


def test_a_window_an_idle_one_and_a_gap() -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.does("vda", reads=3, read_sectors=24)
    (busy,) = rows(machine)
    assert (busy.reads, busy.read_bytes, busy.gap) == (3, 12288, None)
    assert busy.window_s == pytest.approx(0.1)
    rows(machine)
    (idle,) = rows(machine)
    assert (idle.reads, idle.inflight, idle.gap) == (0, 0, None)
    machine.does("vda", reads=30)
    (late,) = rows(machine, after_s=5.0)
    assert (late.reads, late.gap) == (None, "late")


def test_the_first_sample_is_a_start() -> None:
    machine = Machine()
    disk = a_disk()
    machine.disks = (disk,)
    machine.numbers["vda"] = dict.fromkeys(Machine(disk).numbers["vda"], 0)
    before = machine.state
    (row,) = window_records(before, machine.tick(disks=(disk,)))
    assert row.gap == "start"


def test_before_anything_was_sampled_there_is_nothing_to_tell() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert rows(machine, text=None) == []
