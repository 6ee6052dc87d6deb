"""The reader of `io.stat`: what it posts of a tree of groups, and what bad input gets."""

import errno
import logging
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.kernel.consumers.consumption import (
    ConsumerReading,
    Consumption,
    OwnLimit,
    WatchedDisk,
)
from disksla.kernel.consumers.io_stat import IoStatReader
from disksla.kernel.procfs.diskstats import parse_line, to_counters
from support.cgroup_tree import NUMBER, CgroupTree

A, B = "system.slice/a.service", "system.slice/b.service"
BUSY = WatchedDisk("vda", NUMBER, is_busy=True, requests=0, merges=0, largest_request_bytes=None)


class Machine:
    """Control groups, a busy disk, and a reader whose clock the test sets."""

    def __init__(self, directory: Path) -> None:
        self.tree = CgroupTree(directory)
        self.tree.make(A, B)
        self.now_s = 1000.0
        self.disks = [BUSY]
        self.posted: list[ConsumerReading] = []
        self.reader = IoStatReader(
            self.tree.roots, self.posted.append, lambda: self.disks, lambda: self.now_s
        )

    def second(self, **amounts: tuple[int, int]) -> list[Consumption]:
        """Let a second pass in which groups reach these bytes and requests, and read."""
        paths = {"root": "", "top": "system.slice", "a": A, "b": B}
        self.tree.wrote({paths[name]: amount for name, amount in amounts.items()})
        self.now_s += 1.0
        before = len(self.posted)
        self.reader.read()
        return [each for reading in self.posted[before:] for each in reading.consumers]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_each_group_wrote_between_two_readings(machine: Machine) -> None:
    assert machine.second(root=(1000, 10), top=(900, 9), a=(600, 6), b=(300, 3)) == []
    assert machine.second(root=(3000, 30), top=(2800, 28), a=(2100, 21), b=(700, 7)) == [
        Consumption("vda", "a.service", requests=15, bytes=1500),
        Consumption("vda", "b.service", requests=4, bytes=400),
        Consumption("vda", "kernel", requests=1, bytes=100),
    ]
    assert machine.posted[-1].watched_s == {"vda": (1001.0, 1002.0)}


def test_requests_are_not_known_where_many_are_merged(machine: Machine) -> None:
    machine.second(root=(0, 0), top=(0, 0), a=(0, 0))
    machine.disks = [BUSY._replace(requests=17, merges=4079)]
    [found] = machine.second(root=(2**24, 17), top=(2**24, 4096), a=(2**24, 4096))
    assert found == Consumption("vda", "a.service", bytes=2**24)


def test_an_idle_disk_is_not_watched_and_a_busy_one_for_a_minute_after(machine: Machine) -> None:
    machine.second(a=(0, 0))
    machine.disks = [BUSY._replace(is_busy=False)]
    assert machine.second(top=(100, 1), a=(100, 1)) != []
    machine.now_s += 60.0
    assert machine.second(top=(200, 2), a=(200, 2)) == []
    machine.disks = []
    assert machine.second(top=(300, 3), a=(300, 3)) == []


def test_nothing_is_missed_of_a_disk_that_pauses(machine: Machine) -> None:
    machine.second(top=(0, 0), a=(0, 0))
    machine.disks = []
    assert machine.second() == []
    machine.disks = [BUSY]
    [found] = machine.second(top=(700, 7), a=(700, 7))
    assert (found.consumer, found.bytes) == ("a.service", 700)
    assert machine.posted[-1].watched_s == {"vda": (1002.0, 1003.0)}


def test_a_group_that_ended_is_unattributed_and_a_new_one_is_found(machine: Machine) -> None:
    machine.second(root=(0, 0), top=(0, 0), a=(0, 0), b=(0, 0))
    machine.tree.remove(B)
    machine.second(root=(900, 9), top=(900, 9), a=(500, 5))
    machine.tree.make("system.slice/c.service")
    machine.tree.wrote({"system.slice/c.service": (700, 7)})
    found = machine.second(root=(1600, 16), top=(1600, 16), a=(500, 5))
    assert Consumption("vda", "c.service", requests=7, bytes=700) in found
    amounts = [each.bytes or 0 for reading in machine.posted for each in reading.consumers]
    assert sum(amounts) == 1600


def test_another_group_at_the_same_path_is_another_group(machine: Machine) -> None:
    machine.second(root=(1000, 10), top=(1000, 10), a=(1000, 10))
    machine.tree.remove(A)
    machine.tree.make(A)
    found = machine.second(root=(1300, 13), top=(1300, 13), a=(300, 3))
    assert sum(each.bytes or 0 for each in found) == 300


def test_a_group_that_dies_while_it_is_read_is_left_out(machine: Machine) -> None:
    """Its file can no longer be read, as that of a process that has ended."""
    process = subprocess.Popen(["sleep", "60"])
    file = machine.tree.root / B / "io.stat"
    file.unlink()
    file.symlink_to(f"/proc/{process.pid}/environ")
    machine.second(root=(0, 0), top=(0, 0), a=(0, 0))
    process.kill()
    process.wait()
    found = machine.second(root=(900, 9), top=(900, 9), a=(500, 5))
    assert [(each.consumer, each.bytes) for each in found] == [
        ("a.service", 500),
        ("unattributed", 400),
    ]


def test_a_group_that_dies_while_it_is_opened_is_left_out(machine: Machine) -> None:
    """The kernel says that the device does not exist, as it does of one without a driver."""
    file = machine.tree.root / B / "io.stat"
    file.unlink()
    code: int | None = 0
    try:
        os.mknod(file, stat.S_IFCHR, os.makedev(10, 254))
        os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        code = error.errno
    if code != errno.ENODEV:
        pytest.skip("NOT TESTED: needs root, and a device without a driver")
    machine.second(root=(0, 0), top=(0, 0), a=(0, 0))
    found = machine.second(root=(900, 9), top=(900, 9), a=(500, 5))
    assert [(each.consumer, each.bytes) for each in found] == [
        ("a.service", 500),
        ("unattributed", 400),
    ]
    health = machine.reader.health
    assert health is not None
    assert health.errors == 0


def test_a_text_that_is_another_is_counted_and_said_once(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.second(root=(0, 0), top=(0, 0), a=(0, 0))
    (machine.tree.root / B / "io.stat").write_text("garbage\n")
    with caplog.at_level(logging.INFO, "disksla.consumers"):
        found = machine.second(root=(900, 9), top=(900, 9), a=(900, 9))
        machine.second(root=(900, 9), top=(900, 9), a=(900, 9))
        machine.second(b=(0, 0))
    assert [each.consumer for each in found] == ["a.service"]
    messages = [record.message for record in caplog.records]
    assert messages == ["cannot read control groups", "control groups readable again"]
    health = machine.reader.health
    assert health is not None
    assert (health.source, health.errors, health.works) == ("consumers", 2, True)


def test_a_tree_that_cannot_be_read_is_counted_and_said_once(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.second(a=(0, 0))
    directory = machine.tree.root / A
    (directory / "io.stat").unlink()
    (directory / "io.stat").symlink_to(directory / "io.stat")
    machine.now_s += 10.0
    machine.reader.read()
    machine.disks = []
    machine.now_s += 60.0
    machine.reader.read()
    machine.disks = [BUSY]
    with caplog.at_level(logging.INFO, "disksla.consumers"):
        machine.second(b=(1, 1))
        machine.second(b=(2, 1))
    assert [record.message for record in caplog.records] == ["cannot read control groups"]
    health = machine.reader.health
    assert health is not None
    assert not health.works
    assert "symbolic links" in (health.problem or "")


def test_why_consumers_are_not_known_is_posted_when_it_changes(machine: Machine) -> None:
    control = machine.tree.root / "cgroup.subtree_control"
    control.write_text("memory\n")
    for _ in range(3):
        machine.second(a=(0, 0))
    [reading] = machine.posted
    assert reading.why_not is not None
    assert "controller io" in reading.why_not
    assert machine.reader.health is None
    control.write_text("io memory\n")
    machine.now_s += 10.0
    machine.second(a=(0, 0))
    assert machine.posted[1:] == [ConsumerReading(why_not="")]
    assert machine.second(top=(100, 1), a=(100, 1)) != []


def test_a_group_at_its_own_limit_is_posted_though_the_disk_has_io_now_and_then(
    machine: Machine,
) -> None:
    machine.tree.limit(A, "rbps=max wbps=max riops=max wiops=2")
    for second in range(12):
        machine.disks = [] if second % 2 else [BUSY._replace(is_busy=False)]
        machine.second(a=(0, 2 * second))
    assert machine.posted[-1].own_limits == (OwnLimit("vda", "a.service", "writes", 2.0),)


def test_a_group_at_its_own_limit_is_posted_though_the_disk_is_not_busy(machine: Machine) -> None:
    """In a process that is held, requests wait above the disk."""
    machine.tree.limit(A, "rbps=max wbps=max riops=max wiops=50")
    machine.disks = [BUSY._replace(is_busy=False)]
    for second in range(12):
        found = machine.second(a=(50 * 4096 * second, 50 * second))
        assert found == []
    assert machine.posted[-1] == ConsumerReading(
        own_limits=(OwnLimit("vda", "a.service", "writes", 50.0),)
    )


def test_more_groups_below_the_root_than_can_be_opened_are_said(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without all of them, what they do would be that of the kernel."""
    monkeypatch.setattr("disksla.kernel.consumers.io_stat._DESCRIPTOR_SHARE", 0.0)
    for second in range(3):
        assert machine.second(root=(900 * second, 9), top=(900 * second, 9)) == []
    why_not = "found 1 control groups below the root; expected at most 0; raise LimitNOFILE"
    assert machine.posted == [ConsumerReading(why_not=why_not)]
    assert machine.reader.health is None


def test_too_many_groups_are_named_by_that_above_and_it_is_said_once(
    machine: Machine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.consumers.io_stat.MOST_READ", 20)
    for number in range(100):
        directory = machine.tree.root / "system.slice" / f"{number}.service"
        directory.mkdir()
        (directory / "io.stat").touch()
    machine.tree.make("user.slice/session-1.scope")
    with caplog.at_level(logging.INFO, "disksla.consumers"):
        machine.second(root=(0, 0), top=(0, 0), a=(0, 0))
        machine.now_s += 20.0
        found = machine.second(root=(900, 9), top=(800, 8), a=(500, 5))
    assert [(each.consumer, each.bytes) for each in found] == [
        ("system.slice", 800),
        ("kernel", 100),
    ]
    assert [record.message for record in caplog.records] == ["too many control groups"]


ENDED = {"linux-6.1": "kernel", "linux-6.12": "unattributed"}
"""Of a group that ended before it was read, the parent has nothing on Linux 6.1."""
RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.txt"))


def snapshots(text: str) -> Iterator[tuple[str, float, list[str], dict[str, str]]]:
    """Yield name, time, lines of /proc/diskstats and `io.stat` by group of each reading."""
    for name, at_s, body in re.findall(r"SNAP (\S+) (\S+)[^\n]*\n(.*?)ENDSNAP", text, re.DOTALL):
        disks, *groups = body.split("GROUP ")
        heads = [each.partition("\n") for each in groups]
        stats = {head.partition("/")[2]: text for head, _, text in heads}
        yield name, float(at_s), disks.splitlines(), stats


def watched(line: str) -> WatchedDisk:
    major, minor, name, *_ = line.split()
    found = to_counters(parse_line(line).reading)
    requests = (found.reads or 0) + (found.writes or 0)
    merges = (found.reads_merged or 0) + (found.writes_merged or 0)
    return WatchedDisk(name, f"{major}:{minor}", True, requests, merges, 512 * 1024)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_dd_did_is_that_of_its_group(path: Path, tmp_path: Path) -> None:
    tree, posted = CgroupTree(tmp_path), list[ConsumerReading]()
    disks: list[WatchedDisk] = []
    now_s = 0.0
    reader = IoStatReader(tree.roots, posted.append, lambda: disks, lambda: now_s)
    used: dict[str, dict[tuple[str, str], tuple[float | None, float | None]]] = {}
    for name, now_s, lines, stats in snapshots(path.read_text(encoding="ascii")):  # noqa: B007
        disks[:] = map(watched, lines)
        for group, text in stats.items():
            tree.make(group)
            (tree.root / group / "io.stat").write_text(text)
        before = len(posted)
        reader.read()
        used[name] = {
            (each.device, each.consumer): (each.requests, each.bytes)
            for reading in posted[before:]
            for each in reading.consumers
        }
    of_vda = {each: used["direct500"][each] for each in used["direct500"] if each[0] == "vda"}
    assert of_vda == {("vda", "direct.service"): (500, 500 * 4096)}
    assert used["read8M"] == {("vda", "direct.service"): (None, 8 * 2**20)}
    requests, transferred = used["buffered8M"]["vdb", "buffered.service"]
    assert requests is None
    assert 8 * 2**20 <= (transferred or 0) < 8.1 * 2**20
    assert used["buffered8M"]["vdb", "kernel"][1] == pytest.approx(19456, rel=0.5)
    assert used["ended100"] == {("vda", ENDED[path.stem]): (100, 100 * 4096)}
    assert {consumer for _, consumer in used["rootfsync20"]} == {"kernel"}
