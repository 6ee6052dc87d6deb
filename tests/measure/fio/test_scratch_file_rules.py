"""Mounts where a scratch file may be created, and the space that it may take."""

import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs.mountinfo import Mount
from disksla.measure.fio.scratch_file import file_system_of
from disksla.measure.fio.scratch_file_rules import (
    MAX_RESERVED_BYTES,
    NETWORK_FILE_SYSTEMS,
    ScratchFileError,
    check_free_space,
    check_mount,
    mounts_for_files,
)
from support.simulated_host import a_disk

GIB = 1024**3
EXT4 = Mount(8, 1, "/", "/srv", "/dev/sda1", "ext4")


def reason(mount: Mount) -> str | None:
    try:
        check_mount(mount)
    except ScratchFileError as error:
        assert mount.mount_point in str(error)  # noqa: PT017 -- either is right
        return error.reason
    return None


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4", "xfs", "f2fs", "vfat"])
def test_check_mount_accepts_file_systems_on_a_device(kind: str) -> None:
    assert reason(EXT4._replace(file_system=kind)) is None


def test_check_mount_accepts_btrfs() -> None:
    assert reason(Mount(0, 41, "/@", "/", "/dev/sdb", "btrfs")) is None


@pytest.mark.parametrize(
    "kind", [*sorted(NETWORK_FILE_SYSTEMS), "fuse", "fuse.sshfs", "fuse.rclone", "fuseblk"]
)
@pytest.mark.parametrize("major", [0, 8])
def test_check_mount_refuses_network_file_systems(kind: str, major: int) -> None:
    assert reason(Mount(major, 50, "/", "/far", "server:/x", kind)) == "network"


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs", "overlay", "proc", "zfs", "anything", ""])
def test_check_mount_refuses_what_is_not_on_a_disk(kind: str) -> None:
    assert reason(Mount(0, 50, "/", "/near", kind, kind)) == "not_a_disk"


def test_check_mount_refuses_read_only_mounts() -> None:
    assert reason(EXT4._replace(read_only=True)) == "read_only"


@given(st.integers(1, 2**63), st.integers(0, 2**63), st.floats(0, 1))
def test_free_space_keeps_the_reserve(size_bytes: int, total_bytes: int, free: float) -> None:
    free_bytes = int(total_bytes * free)
    try:
        check_free_space(size_bytes, total_bytes, free_bytes, "/srv")
    except ScratchFileError as error:
        assert error.reason == "no_space"  # noqa: PT017 -- either is right
        return
    left_bytes = free_bytes - size_bytes
    assert left_bytes >= min(total_bytes // 20 - 1, MAX_RESERVED_BYTES)


def test_free_space_reserves_at_most_10_gib() -> None:
    check_free_space(89 * GIB, 1000 * GIB, 99 * GIB, "/srv")
    with pytest.raises(ScratchFileError, match="99 GiB free; expected 90 GiB, and 10 GiB"):
        check_free_space(90 * GIB, 1000 * GIB, 99 * GIB, "/srv")


SDA = Disk("sda", 8, 0, 100 * GIB)
SDA1 = Disk("sda1", 8, 1, 50 * GIB, partition_of="sda")
SDB = Disk("sdb", 8, 16, 100 * GIB)
DM = Disk("dm-0", 253, 0, 50 * GIB, slaves=("sda",))
DISKS = (SDA, SDA1, SDB, DM)


def points(disk: Disk, *mounts: Mount) -> list[str]:
    return [mount.mount_point for mount in mounts_for_files(disk, DISKS, mounts)]


def test_mounts_of_the_disk_and_its_partitions() -> None:
    whole = EXT4._replace(minor=0, mount_point="/whole")
    other = EXT4._replace(minor=16, mount_point="/other")
    assert points(SDA, EXT4, whole, other) == ["/srv", "/whole"]
    assert points(SDB, EXT4, whole, other) == ["/other"]


def test_mounts_by_a_further_path_are_of_the_disk() -> None:
    disks = (SDA, msgspec.structs.replace(SDB, path_of="sda"))
    found = mounts_for_files(SDA, disks, [EXT4._replace(minor=16, mount_point="/other")])
    assert [mount.mount_point for mount in found] == ["/other"]


def test_mounts_of_stacked_devices_are_left_out() -> None:
    above = Mount(253, 0, "/", "/stacked", "/dev/mapper/x", "ext4")
    assert points(SDA, above) == []
    assert points(DM, above) == ["/stacked"]


def test_btrfs_is_matched_by_its_source() -> None:
    assert points(SDB, Mount(0, 41, "/@", "/data", "/dev/sdb", "btrfs")) == ["/data"]
    assert points(SDA, Mount(0, 41, "/@", "/data", "/dev/sdb", "btrfs")) == []


def test_unsuitable_and_boot_mounts_are_left_out() -> None:
    assert points(SDA, EXT4._replace(read_only=True)) == []
    assert points(SDA, EXT4._replace(mount_point="/boot/efi", file_system="vfat")) == []


def test_bind_mounts_come_last_and_hidden_ones_never() -> None:
    bind_mount = EXT4._replace(root="/var", mount_point="/bound")
    assert points(SDA, bind_mount, EXT4) == ["/srv", "/bound"]
    assert points(SDA, EXT4, tmpfs_over(EXT4)) == []


def tmpfs_over(mount: Mount) -> Mount:
    return mount._replace(major=0, minor=60, source="tmpfs", file_system="tmpfs")


def test_file_system_is_that_of_the_nearest_mount_point(tmp_path: Path) -> None:
    command = ["findmnt", "--noheadings", "--output=TARGET,FSTYPE", "--target", str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    mount_point, file_system = shown.split()
    assert file_system_of(tmp_path, a_disk(mount_points=(mount_point,))) == file_system


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "nothing: No such file or directory"),
        ("file", "file is not a directory"),
        (".", "is not on vda: .* expected a directory below /elsewhere"),
    ],
)
def test_path_outside_the_disk_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskslaError, match=message):
        file_system_of(tmp_path / name, a_disk(mount_points=("/elsewhere",)))


def test_disk_without_mounts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match="no file system of vda is mounted"):
        file_system_of(tmp_path, a_disk())
