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


FUSE = ("fuse", "fuse.sshfs", "fuse.rclone", "fuseblk")
NO_DISKS = ("tmpfs", "ramfs", "overlay", "proc", "zfs", "anything", "")


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        *((EXT4._replace(file_system=kind), None) for kind in ("ext2", "xfs", "f2fs", "vfat")),
        (Mount(0, 41, "/@", "/", "/dev/sdb", "btrfs"), None),
        *(
            (
                Mount(major, 50, "/", "/far", "server:/x", kind),
                "a network, shared or FUSE file system",
            )
            for kind in (*sorted(NETWORK_FILE_SYSTEMS), *FUSE)
            for major in (0, 8)
        ),
        *((Mount(0, 50, "/", "/near", kind, kind), "not on a disk") for kind in NO_DISKS),
        (EXT4._replace(read_only=True), "mounted read-only"),
    ],
)
def test_mounts_of_local_disks_are_accepted(mount: Mount, expected: str | None) -> None:
    if expected is None:
        check_mount(mount)
        return
    with pytest.raises(ScratchFileError, match=f"^{mount.mount_point} is {expected}") as caught:
        check_mount(mount)
    assert caught.value.reason == ("read_only" if mount.read_only else "no_scratch_file")


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


BTRFS = Mount(0, 41, "/@", "/data", "/dev/sdb", "btrfs")
WHOLE = EXT4._replace(minor=0, mount_point="/whole")
OTHER = EXT4._replace(minor=16, mount_point="/other")
ABOVE = Mount(253, 0, "/", "/stacked", "/dev/mapper/x", "ext4")
BOUND = EXT4._replace(root="/var", mount_point="/bound")
HIDING = EXT4._replace(major=0, minor=60, source="tmpfs", file_system="tmpfs")


@pytest.mark.parametrize(
    ("disk", "mounts", "points"),
    [
        (SDA, [EXT4, WHOLE, OTHER], ["/srv", "/whole"]),
        (SDB, [EXT4, WHOLE, OTHER], ["/other"]),
        (SDA, [ABOVE], []),  # of what is stacked on it
        (DM, [ABOVE], ["/stacked"]),
        (SDB, [BTRFS], ["/data"]),  # by its source
        (SDA, [BTRFS], []),
        (SDA, [EXT4._replace(read_only=True)], []),
        (SDA, [EXT4._replace(mount_point="/boot/efi", file_system="vfat")], []),
        (SDA, [BOUND, EXT4], ["/srv", "/bound"]),  # bind mounts come last
        (SDA, [EXT4, HIDING], []),
    ],
)
def test_mounts_for_files_of_a_disk(disk: Disk, mounts: list[Mount], points: list[str]) -> None:
    assert [mount.mount_point for mount in mounts_for_files(disk, DISKS, mounts)] == points


def test_mounts_by_a_further_path_are_of_the_disk() -> None:
    disks = (SDA, msgspec.structs.replace(SDB, path_of="sda"))
    assert [mount.mount_point for mount in mounts_for_files(SDA, disks, [OTHER])] == ["/other"]


def test_file_system_is_that_of_the_nearest_mount_point(tmp_path: Path) -> None:
    command = ["findmnt", "--noheadings", "--output=TARGET,FSTYPE", "--target", str(tmp_path)]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    mount_point, file_system = shown.split()
    assert file_system_of(tmp_path, a_disk(mount_points=(mount_point,))) == file_system


@pytest.mark.parametrize(
    ("name", "mount_points", "message"),
    [
        ("nothing", (), "nothing: No such file or directory"),
        ("file", (), "file is not a directory"),
        (".", ("/elsewhere",), "is not on vda: .* expected a directory below /elsewhere"),
        (".", (), "no file system of vda is mounted"),
    ],
)
def test_path_outside_the_disk_is_refused(
    tmp_path: Path, name: str, mount_points: tuple[str, ...], message: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskslaError, match=message):
        file_system_of(tmp_path / name, a_disk(mount_points=mount_points))
