"""Which block devices are paths of one disk."""

import pytest

from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.multipath import with_paths
from support.simulated_host import a_disk

UNIQUE = "naa.6000c29f2d1e5a0b"


def heads(*disks: Disk) -> dict[str, str | None]:
    return {disk.name: disk.path_of for disk in with_paths(disks)}


@pytest.mark.parametrize(
    ("wwn", "is_one"),
    [
        (UNIQUE, True),
        ("0x6000c29f2d1e5a0b", True),
        ("eui.0025385100000001", True),
        ("uuid.0a1b2c3d-0000-4000-8000-000000000001", True),
        ("eui.0000000000000000", False),
        ("t10.ATA QEMU HARDDISK QM00001", False),
        ("nvme.1ae0-6e766d655f63617264-6e766d655f63617264-00000001", False),
        (None, False),
    ],
)
def test_devices_with_an_identifier_of_one_volume_are_its_paths(
    wwn: str | None, is_one: bool
) -> None:
    found = heads(*(a_disk(name, wwn=wwn, serial="s") for name in ("sdaa", "sdb", "sdc")))
    first = "sdb" if is_one else None
    assert found == {"sdaa": first, "sdb": None, "sdc": first}


def test_other_size_or_serial_is_another_disk() -> None:
    other_size = Disk("sdb", 8, 16, 2**30, serial="s", wwn=UNIQUE)
    other_serial = a_disk("sdc", serial="t", wwn=UNIQUE)
    found = heads(a_disk("sda", serial="s", wwn=UNIQUE), other_size, other_serial)
    assert set(found.values()) == {None}


def test_partitions_and_stacked_devices_are_no_paths() -> None:
    partition = a_disk("sdb1", wwn=UNIQUE, partition_of="sdb")
    stacked = a_disk("dm-0", wwn=UNIQUE, slaves=("sda",))
    assert set(heads(a_disk("sda", wwn=UNIQUE), partition, stacked).values()) == {None}


def test_hidden_paths_of_nvme_are_those_of_the_disk_of_their_name() -> None:
    def hidden(name: str) -> Disk:
        return Disk(name, 0, 0, 2**30, hidden=True)

    names = ("nvme0c0n1", "nvme0c33n1", "nvme1c0n1", "odd")
    assert heads(a_disk("nvme0n1"), *map(hidden, names)) == {
        "nvme0n1": None,
        "nvme0c0n1": "nvme0n1",
        "nvme0c33n1": "nvme0n1",
        "nvme1c0n1": None,
        "odd": None,
    }


def test_path_whose_disk_is_gone_is_none() -> None:
    first, other = with_paths([a_disk(name, wwn=UNIQUE) for name in ("sda", "sdb")])
    assert other.path_of == first.name
    assert heads(other) == {"sdb": None}
