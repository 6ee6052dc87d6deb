"""Which block devices are paths of one disk."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.multipath import multipath_wwn, with_paths, with_serial_of_paths
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


@pytest.mark.parametrize(
    ("uuid", "wwn"),
    [
        ("mpath-36000c29f2d1e5a0b", "naa.6000c29f2d1e5a0b"),
        ("mpath-20025385100000001", "eui.0025385100000001"),
        ("mpath-eui.0025385100000001", "eui.0025385100000001"),
        ("mpath-uuid.0a1b2c3d-0000-4000", "uuid.0a1b2c3d-0000-4000"),
        ("mpath-0QEMU_QEMU_HARDDISK_lun1", "0QEMU_QEMU_HARDDISK_lun1"),
        ("mpath-3PARdata", "3PARdata"),
    ],
)
def test_wwn_of_a_multipath_device_is_that_of_its_paths(uuid: str, wwn: str) -> None:
    assert multipath_wwn(uuid) == wwn


@given(st.text())
@pytest.mark.parametrize("kind", ["", "LVM-", "CRYPT-LUKS2-", "part1-mpath-", "mpath"])
def test_other_devices_of_the_device_mapper_have_no_wwn(kind: str, rest: str) -> None:
    if not (kind + rest).startswith("mpath-"):
        assert multipath_wwn(kind + rest) is None


@given(st.lists(st.sampled_from(["s", "t", None]), max_size=3), st.none() | st.just(UNIQUE))
def test_serial_of_a_multipath_device_is_what_its_paths_have_in_common(
    serials: list[str | None], wwn: str | None
) -> None:
    paths = {f"sd{n}": a_disk(f"sd{n}", serial=serial) for n, serial in enumerate(serials)}
    device = a_disk("dm-0", slaves=(*paths, "gone"), wwn=wwn, serial=None)
    found = with_serial_of_paths(device, paths)
    common = serials[0] if wwn and len(set(serials)) == 1 else None
    assert found == msgspec.structs.replace(device, serial=common)
