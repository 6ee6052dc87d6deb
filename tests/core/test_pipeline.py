"""From ticks to what is known."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.core.look import look
from disksla.core.pipeline import configure
from disksla.core.settings import Discovery, Settings
from disksla.core.units import GIB
from disksla.core.view import DiskView
from machine import Machine, a_disk


def seen(machine: Machine, device: str = "vda") -> DiskView:
    (view,) = [view for view in look(machine.state).disks if view.disk.name == device]
    return view


def gaps(machine: Machine) -> dict[str, int]:
    return {reason: count for reason, count in machine.state.sampling.gaps.items() if count}


def test_a_disk_starts_from_nothing_when_first_seen() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=7)
    assert seen(machine).totals is not None
    assert set(seen(machine).totals or ()) == {0}
    machine.tick()
    assert seen(machine).totals == (7, *[0] * 15)


def test_nothing_is_said_of_a_disk_before_it_was_sampled() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert seen(machine).totals is None
    assert seen(machine).inflight is None


def test_counts_bytes_and_rates_of_a_window() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=30, read_sectors=240, writes=10, written_sectors=2560)
    machine.tick()
    peak = seen(machine).peak
    assert peak.read_iops == pytest.approx(300)
    assert peak.write_iops == pytest.approx(100)
    assert peak.read_bytes_per_second == pytest.approx(300 * 4096)
    assert peak.written_bytes_per_second == pytest.approx(100 * 131072)


def test_the_present_is_the_mean_of_the_last_second() -> None:
    machine = Machine(a_disk())
    for reads in (60, 0, 0, 60, 0, 0, 60, 0, 0, 60, 60):
        machine.does("vda", reads=reads, inflight=1)
        machine.tick()
    assert seen(machine).present.read_iops == pytest.approx(240, rel=1e-6)
    for _ in range(11):
        machine.does("vda", inflight=0)
        machine.tick()
    assert seen(machine).present.read_iops == 0


def test_a_disk_that_does_nothing_is_not_looked_at_again() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=1)
    before = machine.tick()
    assert before.awake == {"vda"}
    after = machine.tick()
    assert after.awake == frozenset()
    assert after.watched["vdb"] is before.watched["vdb"]


def test_requests_in_flight_come_from_sysfs_once_the_disk_is_awake() -> None:
    machine = Machine(a_disk())
    machine.sysfs_inflight = {"vda": (4, 8)}
    machine.does("vda", reads=1, inflight=5)
    machine.tick()
    assert seen(machine).inflight == 5
    machine.does("vda", reads=1)
    machine.tick()
    assert seen(machine).inflight == 12


def test_a_partition_in_use_keeps_its_disk_awake_though_the_whole_line_says_zero() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda1", inflight=8)
    assert machine.tick().awake == {"vda"}
    assert seen(machine).inflight == 8
    machine.sysfs_inflight = {"vda": (8, 0)}
    for _ in range(3):
        assert machine.tick().awake == {"vda"}
        assert seen(machine).inflight == 8


def test_old_kernels_count_a_partition_in_the_whole_once() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda", inflight=8)
    machine.does("vda1", inflight=8)
    machine.tick()
    assert seen(machine).inflight == 8


def test_a_stalled_disk_stays_awake() -> None:
    machine = Machine(a_disk())
    machine.does("vda", inflight=4)
    for _ in range(15):
        assert machine.tick().awake == {"vda"}
    machine.does("vda", reads=4, read_ms=6399, inflight=-4)
    machine.does("vda", inflight=0)
    machine.tick()
    assert seen(machine).read_latency_s.total == pytest.approx(6.399)


@pytest.mark.parametrize(
    ("after_s", "asleep_s", "set_by_s", "reason"),
    [(5.0, 0, 0, "late"), (0.1, 3600, 0, "suspend"), (0.1, 0, -7200, "clock_step")],
)
def test_time_that_cannot_be_judged_is_a_gap_and_loses_no_request(
    after_s: float, asleep_s: float, set_by_s: float, reason: str
) -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.asleep_s += asleep_s
    machine.set_by_s += set_by_s
    machine.does("vda", reads=1000, read_ms=2000)
    machine.tick(after_s)
    assert gaps(machine) == {reason: 1}
    assert seen(machine).totals is not None
    assert seen(machine).totals == (1000, 0, 0, 2000, *[0] * 12)
    assert seen(machine).peak.read_iops == 0
    assert seen(machine).read_latency_s.count == 1000


def test_an_unreadable_file_is_a_gap_when_it_is_over() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=3)
    for _ in range(5):
        machine.tick(text=None, troubles={"diskstats": "Input/output error"})
        assert not look(machine.state).sampler.collectors["diskstats"]
    assert gaps(machine) == {}
    machine.tick()
    assert gaps(machine) == {"unreadable": 1}
    assert look(machine.state).sampler.collectors["diskstats"]
    assert look(machine.state).sampler.errors["diskstats"] == 5
    assert seen(machine).totals == (3, *[0] * 15)


def test_a_garbled_line_is_a_gap_of_its_disk_alone() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.does("vdb", reads=5)
    machine.tick()
    good = machine.text().splitlines()
    for _ in range(3):
        machine.does("vdb", reads=1)
        machine.tick(text="\n".join([good[0][:30], machine.text().splitlines()[1]]))
        assert list(machine.state.sampling.troubles) == ["diskstats:vda"]
        assert seen(machine, "vda").inflight is None
    machine.tick()
    assert machine.state.sampling.troubles == {}
    assert gaps(machine) == {"malformed": 1}
    assert (seen(machine, "vda").totals or [None])[0] == 5
    assert (seen(machine, "vdb").totals or [None])[0] == 8


def test_a_disk_whose_line_vanishes_is_a_gap() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vdb", reads=5)
    machine.tick()
    for _ in range(3):
        machine.tick(text=machine.text().splitlines()[0])
    assert gaps(machine) == {"vanished": 1}
    assert seen(machine, "vdb").inflight is None
    machine.tick(disks=(machine.disks[0],))
    assert [view.disk.name for view in look(machine.state).disks] == ["vda"]


def test_a_disk_that_comes_is_watched_and_the_others_go_on() -> None:
    machine = Machine(a_disk("vda"))
    machine.does("vda", reads=5)
    machine.tick()
    both = (*machine.disks, a_disk("vdb", minor=16))
    machine.disks = both
    machine.numbers["vdb"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=2)
    machine.tick(disks=both)
    machine.does("vdb", reads=1)
    machine.tick()
    assert (seen(machine, "vda").totals or [None])[0] == 7
    assert (seen(machine, "vdb").totals or [None])[0] == 1
    assert gaps(machine) == {}


def test_another_disk_under_the_same_name_starts_anew() -> None:
    machine = Machine(a_disk(diskseq=3, serial="one"))
    machine.does("vda", reads=500)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=900)  # more than the disk before it: only its identity tells
    machine.tick(disks=(a_disk(diskseq=9, serial="two"),))
    assert gaps(machine) == {"replaced": 1}
    assert (seen(machine).totals or [None])[0] == 0


def test_a_serial_that_udev_adds_later_does_not_make_another_disk() -> None:
    machine = Machine(a_disk(diskseq=3))
    machine.does("vda", reads=500)
    machine.tick(disks=(a_disk(diskseq=3, serial="one"),))
    assert gaps(machine) == {}
    assert (seen(machine).totals or [None])[0] == 500


def test_counters_that_start_over_are_a_gap_and_lose_nothing_counted() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=500, read_sectors=4000)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    assert gaps(machine) == {"reset": 1}
    assert (seen(machine).totals or [None])[0] == 501


def test_other_settings_choose_other_disks_and_keep_what_was_counted() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.tick()
    only = Settings(discovery=Discovery(include=(re.compile("^vda$"),)))
    machine.state = configure(machine.state, only)
    machine.tick()
    assert [view.disk.name for view in look(machine.state).disks] == ["vda"]
    assert (seen(machine).totals or [None])[0] == 5


actions = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.1, 0.1, 0.1, 0.103, 0.5]),
        st.integers(0, 50),
        st.integers(0, 50),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(actions)
def test_every_window_and_every_request_is_counted_once(
    doings: list[tuple[float, int, int, int]],
) -> None:
    machine = Machine(a_disk())
    for after_s, reads, writes, inflight in doings:
        machine.does(
            "vda",
            reads=reads,
            read_sectors=8 * reads,
            read_ms=3 * reads,
            writes=writes,
            inflight=inflight,
        )
        machine.tick(after_s)
    machine.does("vda", inflight=0)
    for _ in range(12):
        machine.tick()
    view = seen(machine)
    windows = 12 + sum(1 for after_s, *_ in doings if after_s < 0.3)
    assert machine.state.assessed.windows == windows
    assert (
        machine.state.watched["vda"]
        .tally.settled(machine.state.assessed, machine.now_s)
        .load.count
        <= windows
    )
    assert view.totals is not None
    assert view.totals[0] == sum(reads for _, reads, _, _ in doings)
    assert view.read_latency_s.count == view.totals[0]
    assert view.read_latency_s.total == pytest.approx(view.totals[0] * 0.003)
    assert view.totals[4] == sum(writes for _, _, writes, _ in doings)


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.tick(text=text)
    machine.tick(text=text + machine.text())
    machine.tick()
    assert [view.disk.name for view in look(machine.state).disks] == ["vda"]
    assert seen(machine).disk.size_bytes == 100 * GIB
