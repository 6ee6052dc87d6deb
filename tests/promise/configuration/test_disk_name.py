"""Names of disks as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.kernel.disks.stacking import with_stacking
from disksla.kernel.procfs.mountinfo import parse_mountinfo
from disksla.promise.configuration.disk_name import find_array, find_disk, in_order, is_below
from support.simulated_host import a_disk

MOUNTS = parse_mountinfo(
    """\
22 1 254:1 / / rw - ext4 /dev/vda1 rw
23 22 0:24 / /run rw - tmpfs tmpfs rw
30 22 252:0 / /data rw - xfs /dev/mapper/vg-pg rw
31 22 0:40 /sub /btrfs rw - btrfs /dev/vdd rw
32 22 252:1 / /wide rw - ext4 /dev/mapper/vg-wide rw
36 22 259:0 / /part rw - ext4 /dev/md0p1 rw
33 31 254:1 / /btrfs/over rw - ext4 /dev/vda1 rw
34 22 254:48 / /data/later rw - ext4 /dev/vdd rw
35 34 254:1 / /data/later rw - ext4 /dev/vda1 rw
"""
)
DISKS = with_stacking(
    (
        a_disk("vda", minor=0, serial="root-disk", links=("disk/by-path/pci-0",)),
        a_disk("vda1", minor=1, partition_of="vda"),
        a_disk("vdb", minor=16, volume="vol-0a1b", by_id=("virtio-b",), wwn="0x5000"),
        a_disk("vdc", minor=32, persistent_volume="pvc-1", claim="data", namespace="db"),
        a_disk("vdd", minor=48, serial="same"),
        a_disk("vde", minor=64, serial="same"),
        replace(a_disk("dm-0", 0), major=252, slaves=("vdb",), by_id=("dm-name-vg-pg",)),
        replace(a_disk("dm-1", 1), major=252, slaves=("vdb", "vdc"), links=("vg/wide",)),
        replace(a_disk("md0", 0), major=9, slaves=("vdd", "vde")),
        replace(a_disk("md0p1", 0), major=259, partition_of="md0"),
    ),
    MOUNTS,
)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("vda", "vda"),
        ("/dev/vda1", "vda1"),
        ("/dev/disk/by-path/pci-0", "vda"),
        ("disk/by-path/pci-0", "vda"),
        ("virtio-b", "vdb"),
        ("/dev/disk/by-id/virtio-b", "vdb"),
        ("vg-pg", "dm-0"),
        ("/dev/mapper/vg-pg", "dm-0"),
        ("/dev/vg/wide", "dm-1"),
        ("root-disk", "vda"),
        ("vol-0a1b", "vdb"),
        ("vol0a1b", "vdb"),
        ("naa.5000", "vdb"),
        ("pvc-1", "vdc"),
        ("db/data", "vdc"),
        ("/", "vda"),
        ("//", "vda"),
        ("/home/me", "vda"),
        ("/data/", "vdb"),
        ("/data/../data/16", "vdb"),
        ("/database", "vda"),
        ("/btrfs/x", "vdd"),
        ("/btrfs/over/x", "vda"),
        ("/data/later", "vda"),
    ],
)
def test_every_kind_of_name(name: str, device: str) -> None:
    assert find_disk(name, DISKS, MOUNTS).name == device


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "vdz",
            "no disk named 'vdz'; expected a kernel name, .* claim, of: vda, vdb, vdc, .*, dm-0",
        ),
        ("None/None", "no disk named 'None/None'"),
        ("/dev/sda", "no disk named '/dev/sda'"),
        ("same", "found several disks for 'same'; expected one of: vdd, vde"),
        ("/wide/x", "found several disks for '/wide/x'; expected one of: vdb, vdc"),
        ("/run/x", "no disk found for /run/x: it is on tmpfs .tmpfs., mounted at /run"),
    ],
)
def test_other_names_are_errors_with_what_there_is(name: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        find_disk(name, DISKS, MOUNTS)


def test_path_without_a_mount_table_is_a_mount_point() -> None:
    assert find_disk("/data/", DISKS).name == "vdb"
    with pytest.raises(DiskslaError, match="no disk named '/data/x'"):
        find_disk("/data/x", DISKS)


def test_machine_without_disks_or_root() -> None:
    with pytest.raises(DiskslaError, match=r"\(no disks found\)"):
        find_disk("vda", ())
    with pytest.raises(DiskslaError, match="the mount table has no file system for it"):
        find_disk("/x", DISKS, MOUNTS[1:2])


def test_order_is_volumes_first_and_loop_devices_last() -> None:
    loop, tenth, local = a_disk("loop0"), a_disk("vdb10"), a_disk("nvme1n1", is_local=True)
    names = [disk.name for disk in in_order((loop, *reversed(DISKS), tenth, local))]
    volumes = ["vda", "vdb", "vdb10", "vdc", "vdd", "vde"]
    stacked = ["dm-0", "dm-1", "md0", "md0p1"]
    assert names == [*volumes, "nvme1n1", *stacked, "vda1", "loop0"]


@given(st.text())
def test_any_name_is_a_disk_or_an_error(name: str) -> None:
    try:
        assert find_disk(name, DISKS, MOUNTS) in DISKS
    except DiskslaError as error:
        assert name in str(error) or name.startswith("/")  # noqa: PT017 -- both are valid


names = st.text("ab", min_size=1, max_size=2)


@given(st.lists(names, max_size=3), st.lists(names, max_size=3))
def test_a_path_is_below_its_parents_and_no_others(path: list[str], other: list[str]) -> None:
    below = is_below("/" + "/".join(path), "/" + "/".join(other))
    assert below is (path[: len(other)] == other)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("/wide/x", "dm-1"),
        ("dm-1", "dm-1"),
        ("/dev/vg/wide", "dm-1"),
        ("/part", "md0"),
        ("md0p1", "md0"),
        ("/data", None),
        ("dm-0", None),
        ("vdb", None),
        ("/", None),
    ],
)
def test_arrays(name: str, array: str | None) -> None:
    found = find_array(name, DISKS, MOUNTS)
    assert (None if found is None else found[0].name) == array


def test_array_of_a_recording_is_found_by_its_mount_point() -> None:
    found = find_array("/wide", DISKS)
    assert found is not None
    assert [found[0].name, *(disk.name for disk in found[1])] == ["dm-1", "vdb", "vdc"]
    assert find_array("/data", DISKS) is None
