"""Which disks a report is about."""

import pytest

from disksla.errors import DiskslaError
from disksla.prometheus.selection import DiskName, disk_name, is_selected, parse_matchers
from support.report_series import INFO

NAME = disk_name(INFO | {"__name__": "disksla_disk_info", "team": "orders"})


def test_name_has_the_labels_of_the_target() -> None:
    assert dict(NAME.labels) == {
        "job": "disksla",
        "instance": "db-1:10056",
        "device": "vdb",
        "team": "orders",
    }
    assert NAME.serial == "vol-1"
    assert NAME.title == "db-1:10056 vdb"


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


def test_all_disks_are_selected_without_a_pattern() -> None:
    assert is_selected(NAME, [], [])


def test_an_empty_serial_is_no_name() -> None:
    plain = DiskName((("device", "vdb"),), "")
    assert not is_selected(plain, [], ["?*:x", ""])
    assert plain.title == "vdb"


def test_matchers_are_in_braces() -> None:
    assert parse_matchers(' {team="orders", } ') == 'team="orders"'
    assert parse_matchers("{}") == ""
    with pytest.raises(DiskslaError, match="found --match 'team=orders'; expected matchers such"):
        parse_matchers("team=orders")
