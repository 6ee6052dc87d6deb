"""Raw devices that may be overwritten, and the reasons why others may not."""

import argparse
import ctypes
import os
import random
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from disksla.base.console import write_file
from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.commands.judge import check_report_files
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.inventory import read_disks
from disksla.measure.fio.device_users import device_users
from disksla.measure.fio.raw_device import RawDevice, RawDeviceError, exclusive_device
from disksla.measure.fio.raw_device_rules import writable_region
from support.loop_device import add_partition, attached, attached_and_closed, needs_loop
from support.sysfs_tree import add_device
from support.visible_processes import seeing_all, visible_processes

pytestmark = needs_loop
MIB = 1024**2
SIZE = 32 * MIB
LARGE = 512 * MIB
"""mkfs.xfs refuses less than 300 MiB, mkfs.btrfs less than 109 MiB."""


def disk_of(device: str, roots: Roots | None = None) -> Disk:
    [disk] = [one for one in read_disks(roots or Roots()).disks if one.name == device]
    return disk


def with_serial(device: str, directory: Path, serial: str) -> Roots:
    """Give a loop device a serial, as udev does for other disks."""
    number = Path(f"/sys/class/block/{device}/dev").read_text().strip()
    directory.mkdir(exist_ok=True)
    (directory / f"b{number}").write_text(f"E:ID_SERIAL_SHORT={serial}\n")
    return Roots(udev_data=directory)


@contextmanager
def reserved(
    disk: Disk,
    roots: Roots | None = None,
    chance: random.Random | None = None,
    destroy_data: str | None = None,
) -> Iterator[RawDevice]:
    with visible_processes() as procfs:
        seen = msgspec.structs.replace(roots or Roots(), procfs=procfs)
        with exclusive_device(disk, seen, chance, destroy_data=destroy_data) as device:
            yield device


def reasons_of(disk: Disk, roots: Roots | None = None) -> tuple[str, ...]:
    try:
        with reserved(disk, roots):
            return ()
    except RawDeviceError as error:
        return error.reasons


def reasons(device: str) -> str:
    return "; ".join(reasons_of(disk_of(device)))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "disk"
    with file.open("wb") as content:
        content.truncate(SIZE)
    return file


@pytest.fixture
def device(image: Path) -> Iterator[str]:
    with attached(image) as name:
        yield name


class NoChance(random.Random):
    """Chance that always selects the first block."""

    def randrange(self, *_args: object) -> int:
        return 0


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"NOT TESTED: {program} is missing")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(device: str, mount_point: Path) -> Iterator[Path]:
    mount_point.mkdir(exist_ok=True)
    run("mount", f"/dev/{device}", str(mount_point))
    try:
        yield mount_point
    finally:
        run("umount", str(mount_point))


@pytest.mark.in_check
def test_empty_disk_may_be_overwritten(device: str) -> None:
    assert reasons(device) == ""


def test_report_is_never_written_to_a_disk(image: Path, device: str) -> None:
    with pytest.raises(DiskslaError, match=f"cannot write /dev/{device}: it is a block device"):
        write_file(Path(f"/dev/{device}"), b"<html>")
    arguments = argparse.Namespace(html=Path(f"/dev/{device}"))
    with pytest.raises(DiskslaError, match="choose a file in a writable directory"):
        check_report_files(arguments)
    assert image.read_bytes() == bytes(SIZE)


@pytest.mark.in_check
def test_disk_is_reserved_in_the_block(device: str, tmp_path: Path) -> None:
    with reserved(disk_of(device)):
        assert "cannot be opened exclusively: Device or resource busy" in reasons(device)
        (tmp_path / "mounted").mkdir()
        attempt = subprocess.run(
            ["mount", "-t", "ext4", f"/dev/{device}", str(tmp_path / "mounted")],
            capture_output=True,
            check=False,
        )
        assert attempt.returncode != 0
    assert reasons(device) == ""


@pytest.mark.parametrize(
    "command",
    [("mkfs.ext4", "-q"), ("mkfs.ext4", "-q", "-b1024"), ("mkfs.btrfs", "-q"), ("mkfs.xfs", "-q")],
    ids=" ".join,
)
def test_empty_file_system_is_found_after_its_ends_were_erased(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Nothing is found by chance: the blocks of chance are all the first one."""
    needs(command[0])
    image = tmp_path / "formatted"
    with image.open("wb") as file:
        file.truncate(3 * 2**30 + 7 * MIB + 3 * 4096)
    run(*command, str(image))
    with image.open("r+b") as file:
        edge, span = writable_region(image.stat().st_size)
        file.write(bytes(edge))
        file.seek(edge + span)
        file.write(bytes(edge))
    with attached(image) as device:
        disk = disk_of(device)
        with (
            pytest.raises(RawDeviceError, match="it contains data at byte"),
            reserved(disk, chance=NoChance()),
        ):
            pass


def test_disk_that_cannot_be_read_is_refused(image: Path) -> None:
    """A block in its middle, that of the stride, has no storage."""
    with attached(image) as device:
        os.truncate(image, SIZE // 2)
        assert reasons(device) == "it cannot be read: Input/output error"


def test_content_is_read_from_the_disk_and_not_from_the_page_cache(image: Path) -> None:
    """What was written by way of another device, as on a shared volume, is not in the cache."""
    with attached(image) as device:
        with Path(f"/dev/{device}").open("rb") as file:
            file.seek(SIZE - MIB)
            assert not any(file.read(4096))
            with image.open("r+b") as behind:
                behind.seek(SIZE - MIB)
                behind.write(b"r")
        assert f"it contains data at byte {SIZE - MIB};" in reasons(device)


@pytest.mark.in_check
def test_serial_is_the_only_way_past_data(image: Path, tmp_path: Path) -> None:
    image.write_bytes(b"r" * MIB + bytes(SIZE - MIB))
    with attached(image) as device:
        roots = with_serial(device, tmp_path / "udev", "S1")
        disk = disk_of(device, roots)
        assert disk.serial == "S1"
        for wrong in ("", device, "s1"):
            with (
                pytest.raises(DiskslaError, match="expected 'S1', the serial"),
                reserved(disk, roots, destroy_data=wrong),
            ):
                pass
        with reserved(disk, roots, destroy_data="S1") as held:
            held.check_identity()
        with (
            attached(Path(f"/dev/{device}")),
            pytest.raises(RawDeviceError, match="loop devices use it"),
            reserved(disk, roots, destroy_data="S1"),
        ):
            pass


@pytest.mark.in_check
def test_disk_that_changed_is_noticed_before_a_test(image: Path, tmp_path: Path) -> None:
    with attached(image) as device:
        roots = with_serial(device, tmp_path / "udev", "S1")
        disk = disk_of(device, roots)
        with reserved(disk, roots) as held:
            held.check_identity()
            with_serial(device, tmp_path / "udev", "S2")
            with pytest.raises(RawDeviceError, match="is now the name of another disk"):
                held.check_identity()
            with_serial(device, tmp_path / "udev", "S1")
            held.check_identity()
            os.truncate(image, SIZE + MIB)
            run("losetup", "--set-capacity", f"/dev/{device}")
            with pytest.raises(RawDeviceError, match=f"its size was {SIZE} bytes and is"):
                held.check_identity()


@pytest.mark.in_check
def test_sequence_number_is_that_of_the_open_descriptor(image: Path, tmp_path: Path) -> None:
    """Sysfs may be that of another disk: its number is not the one of the descriptor."""
    sysfs = tmp_path / "sys"
    with attached(image) as device:
        disk = disk_of(device)
        if disk.diskseq is None:
            pytest.skip("NOT TESTED: this kernel has no diskseq")
        add_device(
            sysfs,
            f"block/{device}",
            f"{disk.major}:{disk.minor}",
            SIZE,
            diskseq=str(disk.diskseq + 1),
            ro="0",
        )
        roots = Roots(sysfs=sysfs)
        with (
            pytest.raises(RawDeviceError, match=f"{device} is now the name of another disk"),
            reserved(disk_of(device, roots), roots),
        ):
            pass


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        (("mkfs.ext4", "-q"), "TYPE=ext4"),
        (("mkswap",), "TYPE=swap"),
        (("mkfs.xfs", "-q"), "TYPE=xfs"),
        (("mkfs.btrfs", "-q"), "TYPE=btrfs"),
        (("mkfs.vfat",), "TYPE=vfat"),
        (("pvcreate", "-q"), "TYPE=LVM2_member"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_content_is_named_by_blkid(image: Path, command: tuple[str, ...], reported: str) -> None:
    needs("blkid", command[0])
    os.truncate(image, LARGE)
    with attached(image) as device:
        run(*command, f"/dev/{device}")
        assert reported in reasons(device).partition("blkid reports ")[2].split()


def test_partition_table_is_named_by_blkid(device: str) -> None:
    needs("blkid", "sfdisk")
    table = "label: gpt\nstart=2048\n"
    subprocess.run(["sfdisk", "-q", f"/dev/{device}"], input=table, text=True, check=True)
    assert "PTTYPE=gpt" in reasons(device)


@pytest.mark.in_check
@pytest.mark.parametrize("offset", [0, 3_000_000, SIZE - 3_000_000, SIZE - 1])
def test_unknown_content_counts_as_content(image: Path, offset: int) -> None:
    with image.open("r+b") as file:
        file.seek(offset)
        file.write(b"r")
    with attached(image) as device:
        assert f"it contains data at byte {offset};" in reasons(device)


def test_mount_in_another_namespace_is_a_reason(device: str, tmp_path: Path) -> None:
    needs("mkfs.ext4", "unshare")
    run("mkfs.ext4", "-q", f"/dev/{device}")
    mount_point = tmp_path / "mounted"
    mount_point.mkdir()
    script = f"mount /dev/{device} {mount_point} && echo mounted && read line"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as container:
        assert container.stdout is not None
        assert container.stdout.readline() == "mounted\n"
        assert disk_of(device).mount_points == ()
        assert f"it is mounted ({mount_point})" in reasons(device)
        container.communicate("\n")


def test_partitions_are_a_reason(device: str) -> None:
    add_partition(device, MIB, 4 * MIB)
    assert f"it has partitions ({device}p1)" in reasons(device)
    assert "expected a whole disk" in reasons(f"{device}p1")


def test_swap_is_a_reason(device: str) -> None:
    needs("mkswap", "swapon")
    run("mkswap", f"/dev/{device}")
    if subprocess.run(["swapon", f"/dev/{device}"], capture_output=True, check=False).returncode:
        pytest.skip("NOT TESTED: this kernel has no swap")
    try:
        assert "it is used as swap" in reasons(device)
    finally:
        run("swapoff", f"/dev/{device}")


@contextmanager
def opened_elsewhere(node: Path) -> Iterator[int]:
    """Open a device in another process, and yield its number."""
    code = f"f = open('{node}', 'rb'); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        yield other.pid
        other.communicate("\n")


@pytest.mark.in_check
def test_process_that_opened_another_node_of_it_is_a_reason(device: str, tmp_path: Path) -> None:
    """A container has its own nodes; so has a chroot."""
    disk = disk_of(device)
    node = tmp_path / "node"
    os.mknod(node, 0o600 | stat.S_IFBLK, os.makedev(disk.major, disk.minor))
    with opened_elsewhere(node) as pid:
        assert f" {pid})" in reasons(device)
    assert reasons(device) == ""


def test_process_that_sends_it_commands_is_a_reason(image: Path, tmp_path: Path) -> None:
    """A virtual machine may have /dev/sg0 open instead of /dev/sda."""
    with attached(image) as device:
        disk = disk_of(device)
        add_device(tmp_path, f"block/{device}", f"{disk.major}:{disk.minor}", SIZE, ro="0")
        generic = tmp_path / f"devices/block/{device}/device/scsi_generic/sg0/dev"
        generic.parent.mkdir(parents=True)
        found = Path("/dev/zero").stat().st_rdev
        generic.write_text(f"{os.major(found)}:{os.minor(found)}\n")
        roots = Roots(sysfs=tmp_path)
        with opened_elsewhere(Path("/dev/zero")) as pid:
            [reason] = reasons_of(disk_of(device, roots), roots)
    assert f" {pid}" in reason


@pytest.mark.in_check
def test_outside_the_first_pid_namespace_users_are_unknown(image: Path, tmp_path: Path) -> None:
    with attached_and_closed(image) as device:
        config = tmp_path / "config.yml"
        terms = "{budget: sum, iops: 9}"
        config.write_text(f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n")
        options = (f"--config.file={config}", f"--write-to-raw-device={device}", "--dry-run")
        verify = (sys.executable, "-m", "disksla", "verify", device, *options)
        inside, outside = (
            subprocess.run(command, check=False, capture_output=True, text=True)
            for command in (seeing_all(verify), ("unshare", "-pf", "--mount-proc", *verify))
        )
    assert (inside.returncode, outside.returncode) == (0, 2), (inside.stderr, outside.stderr)
    assert f"refusing to overwrite {device}: it is not known whether" in outside.stderr
    assert "this is not the first PID namespace of the machine" in outside.stderr


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="NOT TESTED: /dev/fuse is missing")
def test_file_system_that_does_not_answer_is_not_asked(tmp_path: Path) -> None:
    """Stat of a file of it waits without end, as on a server of NFS that is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    server = os.open("/dev/fuse", os.O_RDWR)  # nobody reads from it
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    assert libc.mount(b"hung", os.fsencode(tmp_path), b"fuse", 0, options) == 0
    opened = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        with (
            subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[opened]) as other,
            visible_processes() as procfs,
        ):
            assert (procfs / f"{other.pid}/fd/{opened}").is_symlink()
            assert device_users([], procfs).unknown is None
    finally:
        os.close(opened)
        os.close(server)
        run("umount", str(tmp_path))


def test_descriptors_that_cannot_be_read_are_said() -> None:
    """A process of another user may have anything open."""
    with visible_processes() as procfs:
        assert device_users([], procfs).unknown is None
    code = (
        "import os; from pathlib import Path; from disksla.measure.fio.device_users import "
        "device_users;"
        " os.setuid(65534); print(device_users([], Path('/proc')).unknown)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert re.fullmatch(r"the descriptors of process \d+ cannot be read\n", found.stdout)


@pytest.mark.in_check
def test_other_path_of_a_mounted_disk_is_refused(image: Path, tmp_path: Path) -> None:
    """Two devices of one volume: by WWN and serial number, by the number alone, by the file."""
    needs("mkfs.ext4")
    os.truncate(image, LARGE)
    run("mkfs.ext4", "-q", str(image))
    udev = tmp_path / "udev"
    with attached(image) as first, attached(image) as second, mounted(first, tmp_path / "m"):
        (tmp_path / "m/file").write_bytes(b"r" * MIB)
        for wwn in ("E:ID_WWN=0x5000c50012345678\n", ""):
            roots = with_serial(first, udev, "S1")
            with_serial(second, udev, "S1")
            for entry in udev.iterdir():
                entry.write_text(entry.read_text() + wwn)
            for device in (first, second):
                disk = disk_of(device, roots)
                with (
                    pytest.raises(RawDeviceError) as error,
                    reserved(disk, roots, destroy_data="S1"),
                ):
                    pass
                other = second if device == first else first
                assert f"the same volume as other devices ({other})" in str(error.value)
                assert f"it is mounted ({tmp_path / 'm'})" in str(error.value)
        assert f"loop devices use it ({first})" in reasons(second)
        linked = tmp_path / "linked"
        linked.hardlink_to(image)
        with attached(linked) as third:
            assert f"loop devices use it ({first}, {second})" in reasons(third)


def test_read_only_disk_is_a_reason(device: str) -> None:
    needs("blockdev")
    run("blockdev", "--setro", f"/dev/{device}")
    try:
        assert "it is read-only" in reasons(device)
    finally:
        run("blockdev", "--setrw", f"/dev/{device}")


@pytest.mark.in_check
def test_system_disk_is_never_overwritten() -> None:
    system = [one for one in read_disks(Roots()).disks if "/" in one.mount_points]
    if not system:
        pytest.skip("NOT TESTED: / is not on a visible disk")
    for disk in system:
        assert "the system runs from it" in "; ".join(reasons_of(disk))
