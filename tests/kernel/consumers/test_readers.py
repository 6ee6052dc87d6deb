"""Both readers of consumers: what samples say is not said again by `io.stat`."""

from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.kernel.consumers.consumption import ConsumerReading, Consumption, WatchedDisk
from disksla.kernel.consumers.io_stat import IoStatReader
from disksla.kernel.consumers.readers import ConsumerReaders
from disksla.kernel.performance_events.opened import NoHelperError, OpenedEvents
from disksla.kernel.performance_events.protocol import MOST_DISKS, EventsRequest
from support.cgroup_tree import NUMBER, CgroupTree
from support.waiting import eventually

BY_GROUP = Consumption("vdb", "postgresql.service", requests=90, bytes=8192)
SAMPLED = Consumption("vdb", "postgresql.service", "postgres", requests=88)
DISK = WatchedDisk("vdb", "254:16", True, 0, 0, None)


def no_events(_request: EventsRequest, _name: str) -> OpenedEvents:
    raise NoHelperError("no helper")


def readers(sysfs: Path, posted: list[ConsumerReading]) -> ConsumerReaders:
    return ConsumerReaders(Roots(sysfs=sysfs), no_events, posted.append, lambda: [DISK])


def test_requests_are_counted_once(tmp_path: Path) -> None:
    posted: list[ConsumerReading] = []
    both = readers(tmp_path, posted)
    both.post_by_group(ConsumerReading(consumers=(BY_GROUP,)))
    both.post_requests((SAMPLED,), 1.0)
    both.post_by_group(ConsumerReading(consumers=(BY_GROUP,)))
    alone, sampled, beside = (reading.consumers for reading in posted)
    assert (alone, sampled) == ((BY_GROUP,), (SAMPLED,))
    assert [(each.requests, each.bytes) for each in beside] == [(None, 8192)]
    begin_s, end_s = posted[1].watched_s["vdb"]
    assert end_s - begin_s == 1.0


@pytest.mark.parametrize("is_limited", [False, True])
def test_requests_of_a_disk_with_a_limited_group_are_those_of_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_limited: bool
) -> None:
    """What the kernel sends for such a group would be that of the kernel, by samples."""
    monkeypatch.setattr("disksla.kernel.consumers.readers.POST_EVERY_S", 0.01)
    monkeypatch.setattr("disksla.kernel.consumers.readers.SAMPLED_LATELY_S", 1e9)
    tree, number = CgroupTree(tmp_path), iter(range(10**6))
    tree.make("system.slice/a.service")
    if is_limited:
        tree.limit("system.slice/a.service", "wiops=50")
    posted: list[ConsumerReading] = []

    def watched() -> list[WatchedDisk]:
        count = next(number)
        tree.wrote(dict.fromkeys(("", "system.slice", "system.slice/a.service"), (count, count)))
        return [WatchedDisk("vda", NUMBER, True, 0, 0, None)]

    both = ConsumerReaders(tree.roots, no_events, posted.append, watched)
    both.post_requests((SAMPLED,), 1.0)
    both.start()
    assert eventually(lambda: any(each.consumers for each in posted[1:]), 20.0)
    both.stop()
    found = [each for reading in posted[1:] for each in reading.consumers]
    assert {each.consumer for each in found} == {"a.service"}
    assert {each.requests is None for each in found} == {not is_limited}


def test_without_io_stat_and_events_nothing_is_wrong(tmp_path: Path) -> None:
    posted: list[ConsumerReading] = []
    both = readers(tmp_path, posted)
    both.read_requests()
    assert ([*both.healths], posted, both.is_sampling) == ([], [], False)
    both.sampler.close()


def test_disks_that_are_idle_now_stay_sampled_until_they_are_removed(tmp_path: Path) -> None:
    """Other disks would have the events opened anew, by a process of the helper."""
    for number in ("254:0", "254:16"):
        (tmp_path / "dev" / "block" / number).mkdir(parents=True)
    other = DISK._replace(device="vda", number="254:0")
    both = readers(tmp_path, [])
    assert [*both.to_sample([DISK])] == ["vdb"]
    second = both.to_sample([other])
    assert second == {"vda": (254, 0), "vdb": (254, 16)}
    assert [*second.items()] == [*both.to_sample([]).items()]
    (tmp_path / "dev" / "block" / "254:16").rmdir()
    assert [*both.to_sample([])] == ["vda"]
    assert both.to_sample([other._replace(device="vdc")]) == {"vdc": (254, 0)}


def test_of_more_disks_than_a_filter_takes_those_are_sampled_that_have_io(tmp_path: Path) -> None:
    every = [DISK._replace(device=f"vd{n}", number=f"254:{n}") for n in range(MOST_DISKS)]
    for disk in every:
        (tmp_path / "dev" / "block" / disk.number).mkdir(parents=True)
    both = readers(tmp_path, [])
    assert len(both.to_sample(every)) == MOST_DISKS
    assert both.to_sample([DISK._replace(number="259:0")]) == {"vdb": (259, 0)}


def test_program_stands_for_a_group_that_is_not_known(tmp_path: Path) -> None:
    both = readers(tmp_path, [])
    assert both.names(1, "postgres") == ("program postgres", "postgres")
    assert both.names(1, "123") == ("unattributed", "")


def test_groups_of_samples_have_names_without_the_controller_io(tmp_path: Path) -> None:
    top = tmp_path / "fs" / "cgroup"
    group = top / "system.slice" / "postgresql.service"
    group.mkdir(parents=True)
    (top / "cgroup.controllers").write_text("cpu io memory\n")
    (top / "cgroup.subtree_control").write_text("cpu memory\n")
    reader = IoStatReader(Roots(sysfs=tmp_path), lambda _: None, lambda: [DISK])
    reader.read()
    assert reader.name_of(group.stat().st_ino) is None
    reader.are_names_wanted = True
    reader.scan_soon()
    reader.read()
    assert reader.name_of(group.stat().st_ino) == "postgresql.service"
    assert not reader.is_reading


@pytest.mark.parametrize("has_io", [False, True], ids=["v1", "hybrid"])
def test_samples_name_groups_of_perf_event_where_that_is_of_cgroup_v1(
    tmp_path: Path, has_io: bool
) -> None:
    """Docker and kubelet make groups there, and systemd none: its units are in the root."""
    top = tmp_path / "fs" / "cgroup"
    container = top / "perf_event" / "docker" / f"0123456789ab{'cd' * 26}"
    container.mkdir(parents=True)
    (top / "perf_event" / "release_agent").touch()
    unit = top / "unified" / "system.slice" / "postgresql.service"
    unit.mkdir(parents=True)
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (top / "unified" / name).write_text("io\n" if has_io else "")
    reader = IoStatReader(Roots(sysfs=tmp_path), lambda _: None, lambda: [DISK])
    reader.are_names_wanted = True
    reader.read()
    assert reader.name_of(container.stat().st_ino) == "docker 0123456789ab"
    assert reader.name_of((top / "perf_event").stat().st_ino) == ""
    assert [reader.name_of(each.stat().st_ino) for each in (top / "unified", unit)] == [None] * 2


def test_the_thread_reads_until_it_is_stopped_whatever_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.consumers.readers.POST_EVERY_S", 0.01)
    tree = CgroupTree(tmp_path)
    tree.make("system.slice/a.service")
    posted: list[ConsumerReading] = []
    bugs = [ZeroDivisionError("a bug")] * 4  # both readers ask for the disks

    def watched() -> list[WatchedDisk]:
        if bugs:
            raise bugs.pop()
        return [WatchedDisk("vda", NUMBER, True, 0, 0, None)]

    both = ConsumerReaders(tree.roots, no_events, posted.append, watched)
    both.start()
    assert eventually(lambda: bool(posted), 20.0)
    both.stop()
    assert "vda" in posted[0].watched_s
    assert [(each.source, each.errors) for each in both.healths] == [
        ("consumers", 2),
        ("requests", 2),
    ]
    messages = [record.message for record in caplog.records if record.exc_info]
    assert messages == ["requests not sampled", "cannot read control groups"]
