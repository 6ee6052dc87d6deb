"""Intervals of disks from the series of node_exporter."""

import msgspec
import pytest

from disksla.measure.means.mean import Mean
from disksla.measure.means.node_exporter import find_node_disks, read_means
from disksla.measure.prometheus import Period, Selection
from support.example_report import ADDRESS
from support.exchanges import answered
from support.node_series import NodeDisk
from support.report_series import START_S, Server

HOUR = Period(START_S, START_S + 3600)


def read(disk: NodeDisk, period: Period = HOUR) -> list[Mean]:
    server = Server(disk.series)
    [(name, _)] = answered(find_node_disks(ADDRESS, Selection(), period), server)[0]
    return answered(read_means(ADDRESS, name, period), server)[0]


def names(*patterns: str) -> list[str]:
    disks = [
        NodeDisk("vdb", serial="vol-1", model="m", wwn="w"),
        NodeDisk("vdb", instance="db-2:9100"),
        NodeDisk("dm-0"),
    ]
    server = Server([series for disk in disks for series in disk.series])
    found = answered(find_node_disks(ADDRESS, Selection(patterns=patterns), HOUR), server)[0]
    described = [(disk.serial, disk.model, disk.wwn) for _, disk in found]
    assert {*described} <= {("vol-1", "m", "w"), (None, None, None)}
    return [name.title for name, _ in found]


def test_an_interval_has_what_the_counters_increased_by() -> None:
    disk = NodeDisk("vdb").does(reads=100, writes=50, flushes=5, inflight=3)
    [mean] = read(disk)
    interval = msgspec.structs.asdict(mean.interval)
    expected = {
        "reads": 1500,
        "writes": 750,
        "read_bytes": 1500 * 4096,
        "written_bytes": 750 * 4096,
        "flushes": 75,
        "end_s": START_S + 15,
        "seconds": 15,
        "read_ms": 30_000,
        "write_ms": 15_000,
        "inflight": 0,
    }
    assert {name: interval[name] for name in expected} == expected
    assert (mean.inflight, mean.is_told_apart) == (3, True)


def test_a_reset_and_a_long_time_without_scrapes_are_left_out() -> None:
    disk = NodeDisk("vdb").does(2, reads=100)
    disk.restarts()
    disk.does(2, reads=200)
    disk.now_s += 900
    disk.does(2, reads=100)
    found = [(mean.start_s - START_S, mean.interval.reads) for mean in read(disk)]
    assert [reads for _, reads in found] == [1500, 1500, 3000, 1500]
    assert found[-1][0] - found[-2][0] > 900


@pytest.mark.parametrize("every_s", [15.0, 300.0])
def test_days_are_read_in_parts_without_a_seam(every_s: float) -> None:
    number = int(3 * 86_400 / every_s)
    disk = NodeDisk("vdb", every_s).does(number, reads=100)
    found = read(disk, Period(START_S, START_S + 3 * 86_400))
    assert sum(mean.interval.reads for mean in found) == 100 * 3 * 86_400
    assert len(found) == number


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), ["db-1:9100 vdb", "db-2:9100 vdb"]),
        (("db-2:*",), ["db-2:9100 vdb"]),
        (("vol-1",), ["db-1:9100 vdb"]),
        (("db-1:dm-0",), ["db-1:9100 dm-0"]),
        (("vdz",), []),
    ],
)
def test_disks_are_selected(patterns: tuple[str, ...], expected: list[str]) -> None:
    assert names(*patterns) == expected
