"""Counters that are wrong, stuck, or of another device than the disk, and lines that changed."""

from dataclasses import dataclass, field

import pytest

from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs.diskstats import parse_line
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.history.history import history_of
from disksla.state.pipeline.changed_lines import index_lines
from disksla.state.pipeline.snapshot import DiskSnapshot, Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.window_records import present_periods
from disksla.verdict.throttling import VERDICTS
from support.simulated_host import Machine, a_disk

WWN = "naa.6000c29f2d1e5a0b"
MIB_SECTORS = 2048


def settings(**match: str) -> Settings:
    entry = DiskEntry(match=DiskMatch(**match), terms=SumTerms(iops=300.0))
    return Settings(disks=(entry,))


def the_disk(machine: Machine) -> DiskSnapshot:
    [found] = Snapshot(machine.state).disks
    return found


def gaps(machine: Machine) -> dict[str, int]:
    return {name: count for name, count in machine.state.sampler_stats.gaps.items() if count}


def seconds(machine: Machine) -> dict[str, float]:
    return dict(zip(VERDICTS, the_disk(machine).verdict_totals.seconds, strict=True))


@pytest.mark.parametrize(
    "rises",
    [
        {"reads": 10**12},
        {"writes": 10**18, "written_sectors": 10**18},
        {"read_sectors": 10**9},
        {"read_ms": 2**34},
        {"flushes": 10**12},
        {"discarded_sectors": 2**60},
    ],
)
def test_rise_that_no_disk_can_do_is_a_gap_and_is_not_counted(rises: dict[str, int]) -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=7)
    machine.tick()
    before = dict(machine.numbers["vda"])
    machine.does("vda", **rises)
    machine.tick()
    assert gaps(machine) == {"malformed": 1}
    assert (
        "expected no more than a disk can do"
        in machine.state.sampler_stats.problems["diskstats:vda"]
    )
    machine.does("vda", reads=5)
    machine.tick()
    machine.numbers["vda"] = before
    machine.tick()  # back again
    machine.does("vda", reads=3)
    machine.tick()
    counters = the_disk(machine).counters
    assert counters is not None
    assert counters.reads == 7 + 5 + 3
    assert all(not getattr(counters, name) for name in rises if name != "reads")
    assert gaps(machine) == {"malformed": 1, "reset": 1}


def test_much_that_a_disk_can_do_is_counted() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=10**6, read_sectors=MIB_SECTORS * 5000, read_ms=2**31)
    machine.does("vda", discards=1, discarded_sectors=2**40)
    machine.tick()
    assert gaps(machine) == {}


def test_requests_in_flight_below_zero_are_none() -> None:
    """Kernels before 4.15 print -1 without its sign."""
    fields = ["1"] * 8 + [str(2**32 - 1)] + ["1"] * 8
    assert parse_line(f"8 0 sda {' '.join(fields)}").inflight == 0


@dataclass
class StuckDisk:
    """A disk of which the kernel has a request in flight that never completes."""

    machine: Machine
    states: list[State] = field(default_factory=list)

    def is_silent(self, seconds: int, inflight: int) -> None:
        for _ in range(10 * seconds):
            self.machine.does("vda", inflight=inflight, busy_ms=100)
            self.states.append(self.machine.tick())

    def writes(self, took_ms: int, inflight: int) -> None:
        self.machine.does("vda", writes=6, written_sectors=48, write_ms=took_ms, inflight=inflight)
        self.machine.does("vda", busy_ms=100)
        self.states.append(self.machine.tick())


def test_count_in_flight_that_does_not_return_to_zero_is_a_stall_once_at_most() -> None:
    disk = StuckDisk(Machine(a_disk()))
    disk.is_silent(5, inflight=1)
    once = seconds(disk.machine)["stalled"]
    assert once > 3
    for _ in range(3):
        disk.writes(6, inflight=1)
        disk.is_silent(5, inflight=1)
    assert seconds(disk.machine)["stalled"] == once
    assert the_disk(disk.machine).inflight == 0
    assert the_disk(disk.machine).verdict == "idle"
    # It is seen again that requests are in flight, beside the one that never completes.
    disk.is_silent(3, inflight=4)
    assert the_disk(disk.machine).inflight == 3
    assert seconds(disk.machine)["stalled"] > once + 1


def test_recordings_and_pages_take_a_stall_back_that_was_none() -> None:
    disk = StuckDisk(Machine(a_disk()))
    for _ in range(20):
        disk.writes(6, inflight=1)
    disk.is_silent(5, inflight=1)
    disk.writes(6, inflight=1)
    disk.states.append(disk.machine.tick(after_s=10.0))  # a gap
    disk.is_silent(5, inflight=1)
    periods = present_periods(disk.states)
    assert periods is not None
    verdicts = {each.verdict for each in periods.records["vda"]}
    assert "stalled" not in verdicts
    assert "idle" in verdicts
    slots = history_of(disk.states).disks["vda"].seconds()
    assert sum(slot.totals.stalled_s for slot in slots) == 0


def test_requests_that_waited_for_as_long_as_the_silence_end_a_stall() -> None:
    disk = StuckDisk(Machine(a_disk()))
    for _ in range(2):
        before = seconds(disk.machine)["stalled"]
        disk.is_silent(5, inflight=7)
        disk.writes(6 * 5000, inflight=1)
        assert seconds(disk.machine)["stalled"] > before + 3
        assert the_disk(disk.machine).inflight == 1


def test_count_that_returns_to_zero_is_believed_again() -> None:
    disk = StuckDisk(Machine(a_disk()))
    disk.is_silent(5, inflight=2)
    disk.writes(6, inflight=2)
    assert the_disk(disk.machine).inflight == 0
    disk.writes(6, inflight=0)
    disk.is_silent(3, inflight=1)
    assert the_disk(disk.machine).inflight == 1


def test_discards_are_no_stall() -> None:
    """fstrim discards for minutes, and nothing is read or written."""
    machine = Machine(a_disk())
    for _ in range(50):
        machine.does("vda", discards=2, discarded_sectors=4096, discard_ms=90, inflight=1)
        machine.tick()
    assert not seconds(machine)["stalled"]


def nvme_paths(count: int) -> Machine:
    """Return an NVMe disk with hidden paths."""
    hidden = [
        Disk(f"nvme0c{index}n1", 0, 0, size_bytes=2**30, hidden=True) for index in range(count)
    ]
    return Machine(a_disk("nvme0n1"), *hidden, settings=settings(device="nvme0n1"))


def loads(machine: Machine, *devices: str, each: int) -> None:
    for _ in range(80):
        for device in devices:
            machine.does(device, reads=each, read_sectors=8 * each, read_ms=100 * each)
            machine.does(device, inflight=16)
        machine.tick()


@pytest.mark.parametrize("count", [1, 2])
def test_nvme_disk_that_counts_at_its_hidden_paths_only(count: int) -> None:
    """Before about Linux 6.2; the disk itself stays at 0."""
    machine = nvme_paths(count)
    loads(machine, *(f"nvme0c{index}n1" for index in range(count)), each=30 // count)
    found = the_disk(machine)
    assert found.disk.name == "nvme0n1"
    assert found.counters is not None
    assert found.counters.reads == 80 * 30
    assert found.inflight == 16 * count
    assert seconds(machine)["throttled"] > 1
    assert not seconds(machine)["idle"]


def test_nvme_disk_that_counts_itself_is_not_counted_twice() -> None:
    machine = nvme_paths(2)
    loads(machine, "nvme0n1", "nvme0c1n1", each=30)
    found = the_disk(machine)
    assert found.counters is not None
    assert (found.counters.reads, found.inflight) == (80 * 30, 16)


def scsi_paths(*more: Disk) -> Machine:
    paths = [
        a_disk(name, 16 * index, wwn=WWN, serial="lun1")
        for index, name in enumerate(("sda", "sdb"))
    ]
    return Machine(*paths, *more, settings=settings(serial="lun1"))


@pytest.mark.parametrize(
    "more", [(), (a_disk("dm-0", 99, slaves=("sda", "sdb")),)], ids=["alone", "dm-multipath"]
)
def test_paths_of_a_volume_are_one_disk(more: tuple[Disk, ...]) -> None:
    machine = scsi_paths(*more)
    loads(machine, "sda", "sdb", each=15)
    found = the_disk(machine)
    assert found.disk.name == "sda"
    assert found.counters is not None
    assert (found.counters.reads, found.inflight) == (80 * 30, 32)
    assert found.throttle is not None
    assert (found.throttle.level, found.throttle.limit) == ("base", "iops")


def test_path_that_is_removed_is_a_gap() -> None:
    machine = scsi_paths()
    loads(machine, "sda", "sdb", each=15)
    machine.disks = machine.disks[:1]
    machine.tick(disks=machine.disks)
    machine.does("sda", reads=4)
    machine.tick()
    counters = the_disk(machine).counters
    assert counters is not None
    assert counters.reads == 80 * 30 + 4
    assert gaps(machine) == {"reset": 1}


DISKS = (a_disk("vda"), a_disk("vdb", 16))
PARTITIONS = {"vda1": "vda"}


def line(name: str, minor: int, reads: int = 0) -> str:
    return f" 254 {minor:7} {name} {reads} 0 0 0 0 0 0 0 0 0 0\n"


VDA, VDA1, VDB = line("vda", 0), line("vda1", 1), line("vdb", 16)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (VDA + VDA1 + VDB, set()),
        (VDA + VDA1 + line("vdb", 16, 9), {"vdb"}),
        (VDA + line("vda1", 1, 9) + VDB, {"vda"}),
        (line("vda", 0, 9) + VDA1 + line("vdb", 16, 9), {"vda", "vdb"}),
    ],
)
def test_changed_lines_are_those_of_the_disks(text: str, changed: set[str]) -> None:
    compared = index_lines(VDA + VDA1 + VDB, DISKS, PARTITIONS).compare(text)
    assert compared is not None
    after, found = compared
    assert found == changed
    assert after.text == text
    assert after.lines_of("vda") == text.splitlines()[:2]


@pytest.mark.parametrize(
    "text",
    [VDA + VDA1, VDA + VDB + VDA1, VDA + VDA1 + line("vdc", 16), VDA + VDA1 + line("vdb", 32)],
    ids=["fewer", "another order", "another name", "another number"],
)
def test_lines_of_other_devices_cannot_be_compared(text: str) -> None:
    assert index_lines(VDA + VDA1 + VDB, DISKS, PARTITIONS).compare(text) is None
