"""Both readers of consumers: what samples say is not said again by `io.stat`."""

from pathlib import Path

from disksla.consumers.consumption import ConsumerReading, Consumption, WatchedDisk
from disksla.consumers.io_stat import IoStatReader
from disksla.consumers.readers import ConsumerReaders
from disksla.errors import DiskslaError
from disksla.events.opened import OpenedEvents
from disksla.events.protocol import MOST_DISKS, EventsRequest
from disksla.system.roots import Roots

BY_GROUP = Consumption("vdb", "postgresql.service", requests=90, bytes=8192)
SAMPLED = Consumption("vdb", "postgresql.service", "postgres", requests=88)
DISK = WatchedDisk("vdb", "254:16", True, 0, 0, None)


def no_events(_request: EventsRequest, _name: str) -> OpenedEvents:
    raise DiskslaError("no helper")


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


def test_bytes_are_sampled_where_there_is_no_io_stat(tmp_path: Path) -> None:
    both = readers(tmp_path, [])
    assert both.wanted() == ({"vdb": (254, 16)}, True, True)
    assert [*both.healths] == []


def test_disks_that_are_idle_now_stay_sampled_until_they_are_removed(tmp_path: Path) -> None:
    """Other disks would have the events opened anew, by a process of the helper."""
    for number in ("254:0", "254:16"):
        (tmp_path / "dev" / "block" / number).mkdir(parents=True)
    other = DISK._replace(device="vda", number="254:0")
    active = [DISK]
    both = ConsumerReaders(Roots(sysfs=tmp_path), no_events, lambda _: None, lambda: active)
    first = both.wanted().disks
    active[:] = [other]
    second = both.wanted().disks
    active[:] = []
    assert [*first] == ["vdb"]
    assert [*second.items()] == [*both.wanted().disks.items()]
    assert second == {"vda": (254, 0), "vdb": (254, 16)}
    (tmp_path / "dev" / "block" / "254:16").rmdir()
    assert [*both.wanted().disks] == ["vda"]
    active[:] = [other._replace(device="vdc")]
    assert both.wanted().disks == {"vdc": (254, 0)}


def test_of_more_disks_than_a_filter_takes_those_are_sampled_that_have_io(tmp_path: Path) -> None:
    every = [DISK._replace(device=f"vd{n}", number=f"254:{n}") for n in range(MOST_DISKS)]
    for disk in every:
        (tmp_path / "dev" / "block" / disk.number).mkdir(parents=True)
    active = every[:]
    both = ConsumerReaders(Roots(sysfs=tmp_path), no_events, lambda _: None, lambda: active)
    assert len(both.wanted().disks) == MOST_DISKS
    active[:] = [DISK._replace(number="259:0")]
    assert both.wanted().disks == {"vdb": (259, 0)}


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
    assert reader.groups.name_of(group.stat().st_ino) is None
    reader.are_names_wanted = True
    reader.scan_soon()
    reader.read()
    assert reader.groups.name_of(group.stat().st_ino) == "postgresql.service"
    assert not reader.is_reading
