"""Both readers of consumers: what samples say is not said again by `io.stat`."""

from pathlib import Path

from disksla.consumers.consumption import ConsumerReading, Consumption, WatchedDisk
from disksla.consumers.io_stat import IoStatReader
from disksla.consumers.readers import ConsumerReaders
from disksla.errors import DiskslaError
from disksla.events.opened import OpenedEvents
from disksla.events.protocol import EventsRequest
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
