"""Which disks a report is about."""

import pytest

from disksla.base.errors import DiskslaError
from disksla.measure.prometheus.query import Series
from disksla.measure.prometheus.selection import DiskName, find_disks, is_selected, parse_matchers
from disksla.measure.prometheus.step import CounterName
from support.example_report import ADDRESS, ALL, DAY
from support.exchanges import answered
from support.report_series import INFO, START_S, TARGET, Server

NAME = DiskName(tuple(sorted({**TARGET, "team": "orders"}.items())), "vol-1")


def test_name_has_the_labels_of_the_target() -> None:
    """Those that disks have in common, whatever labels an info has besides."""
    target = {"team": "orders", "model": "of the host"}
    infos = [{**INFO, **target, "exported_model": "QEMU"}, {**INFO, "label_of_tomorrow": "x"}]
    counter = {**TARGET, "__name__": CounterName.VERDICT_SECONDS, "verdict": "idle"}
    metrics = [
        *({"__name__": "disksla_disk_info", **info} for info in infos),
        {"__name__": "disksla_mount_info", **TARGET, "mountpoint": "/b"},
        *({"__name__": "disksla_mount_info", **TARGET, **target, "mountpoint": m} for m in "ca"),
        counter,
        {**counter, **target},
    ]
    server = Server([Series(metric, [(START_S, "1")]) for metric in metrics])
    found, _ = answered(find_disks(ADDRESS, ALL, DAY), server)
    assert [(dict(name.labels), name.serial, points) for name, points in found] == [
        (TARGET, "vol-1", ("/b",)),
        ({**TARGET, **target}, "vol-1", ("a", "c")),
    ]
    assert found[0][0].title == "db-1:10056 vdb"


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        ("db-1:10056:vdb", True),
        ("db-1:vdb", True),
        ("db-*:vd?", True),
        ("vol-1", True),
        ("/var/lib/postgresql", True),
        ("/var/lib/*", True),
        ("vdb", False),
        ("db-1:vdc", False),
        ("DB-1:vdb", False),
        ("", False),
    ],
)
def test_patterns(pattern: str, selected: bool) -> None:
    assert is_selected(NAME, ["/var/lib/postgresql"], ["nothing", pattern]) is selected


def test_an_empty_serial_is_no_name() -> None:
    plain = DiskName((("device", "vdb"),), "")
    assert is_selected(plain, [], [])
    assert not is_selected(plain, [], ["?*:x", ""])
    assert plain.title == "vdb"


def test_matchers_are_in_braces() -> None:
    assert parse_matchers(' {team="orders", } ') == 'team="orders"'
    assert parse_matchers("{}") == ""
    with pytest.raises(DiskslaError, match="found --match 'team=orders'; expected matchers such"):
        parse_matchers("team=orders")
