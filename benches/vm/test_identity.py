"""Comparison of disks with what is expected of a provider's machine. Needs no virtual machine."""

from typing import Any

import pytest

from vm.identity import HOSTS, Host, differences, virtio, volume

HOST = Host("yandex", (), (virtio("pg-data", volume("pg-data")),))


def said(**changes: Any) -> list[dict[str, Any]]:
    identity = {
        "size_bytes": 8 * 2**20,
        "provider": "yandex",
        "volume": "pg-data",
        "is_local": False,
    }
    terms = changes.pop("terms", "custom")
    return [{"identity": identity | changes, "terms": terms}]


def test_expected_disk_has_no_difference() -> None:
    assert differences(HOST, said()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"size_bytes": 1},
        {"provider": None},
        {"volume": None},
        {"is_local": True},
        {"terms": "unknown"},
    ],
)
def test_each_difference_is_found(changes: dict[str, Any]) -> None:
    [found] = differences(HOST, said(**changes))
    assert "expected ('yandex', 'pg-data', False, True)" in found


def test_disks_of_a_machine_are_distinct() -> None:
    for host in HOSTS.values():
        assert len(set(host.disks)) == len(host.disks) > 0
