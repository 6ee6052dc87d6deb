"""Reserve a raw disk that fio may overwrite: not in use, and empty or named by its serial."""

import contextlib
import fcntl
import mmap
import os
import random
import shutil
import stat
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks import Disk
from disksla.kernel.disks.inventory import read_disks
from disksla.kernel.procfs import Mount, parse_mountinfo
from disksla.measure.fio.device_users import DeviceNode, device_node, device_users, file_number
from disksla.measure.fio.process import run_process
from disksla.measure.fio.raw_device_rules import (
    BLOCK_BYTES,
    EDGE_BYTES,
    DeviceNumber,
    VolumeDevices,
    check_consent,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
    reasons_other_disk,
    sampled_regions,
    volume_devices,
)
from disksla.measure.fio.sandbox import ProcessLimits

_BLKGETDISKSEQ = 0x80081280  # linux/fs.h
_EXCLUSIVE = os.O_RDONLY | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
_BLKID_LIMIT_S = 10.0
_BLKID_MEMORY_BYTES = 1024**3
_BLKID_FOUND_NOTHING = 2
_GENERIC_DEVICES = ("device/scsi_generic/*/dev", "device/bsg/*/dev", "device/ng*n*/dev")
"""Character devices by which programs send commands to a disk, in its directory of sysfs."""
_PATH_CHECKER = "multipathd"


class RawDeviceError(DiskslaError):
    """A disk that must not be overwritten, with all the reasons."""

    def __init__(self, disk: Disk, reasons: tuple[str, ...]) -> None:
        """Set the reasons, and the message that contains them."""
        super().__init__(f"refusing to overwrite {disk.name}: {'; '.join(reasons)}")
        self.reasons = reasons


class RawDevice(NamedTuple):
    """A disk that this process has open exclusively."""

    disk: Disk
    """As it was examined."""
    descriptor: int
    """It must stay open."""
    roots: Roots

    def check_identity(self) -> None:
        """Raise RawDeviceError unless the descriptor and the path still lead to the same disk.

        Number, size and diskseq are read from the descriptor; serial and WWN from sysfs and udev,
        as is the rest, since no call returns them for a descriptor. Nor may it have got another
        path meanwhile, which the descriptor does not reserve.
        """
        path = Path("/dev") / self.disk.name
        reasons = _reasons_other_disk(self.disk, self.descriptor, path, self.roots)
        disks = read_disks(self.roots).disks
        reasons = reasons or _reasons_of_devices(self.disk, disks, self.roots)
        if reasons:
            raise RawDeviceError(self.disk, reasons)


@contextlib.contextmanager
def exclusive_device(
    disk: Disk,
    roots: Roots | None = None,
    chance: random.Random | None = None,
    *,
    destroy_data: str | None = None,
) -> Iterator[RawDevice]:
    """Keep a disk from being mounted or stacked on until the block ends.

    It must be empty, unless `destroy_data` is its serial, or its WWN if it has no serial. `chance`
    selects blocks that must be empty. Raise RawDeviceError if the disk must not be overwritten,
    DiskslaError if `destroy_data` is another one.
    """
    roots, chance = roots or Roots(), chance or random.SystemRandom()
    if destroy_data is not None:
        check_consent(disk, destroy_data)
    device = Path("/dev") / disk.name
    reasons = _reasons_in_use(disk, roots)
    if reasons:
        raise RawDeviceError(disk, reasons)
    try:
        descriptor = os.open(device, _EXCLUSIVE)
    except OSError as error:
        raise RawDeviceError(
            disk, (f"{device} cannot be opened exclusively: {error.strerror}",)
        ) from error
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(os.close, descriptor)
        raw_device = RawDevice(disk, descriptor, roots)
        raw_device.check_identity()
        # Check again: the disk may have been put to use between the first check and O_EXCL.
        reasons = _reasons_in_use(disk, roots)
        if not reasons and destroy_data is None:
            reasons = _reasons_not_empty(disk, descriptor, chance)
        if reasons:
            raise RawDeviceError(disk, reasons)
        yield raw_device


def _reasons_other_disk(disk: Disk, descriptor: int, path: Path, roots: Roots) -> tuple[str, ...]:
    opened, number = os.fstat(descriptor), (disk.major, disk.minor)
    opened_number = (os.major(opened.st_rdev), os.minor(opened.st_rdev))
    if not stat.S_ISBLK(opened.st_mode) or not number == opened_number == _number(str(path)):
        return (f"{path} is another disk now",)
    try:
        size_bytes = os.lseek(descriptor, 0, os.SEEK_END)
    except OSError as error:
        return (f"its size cannot be read: {error.strerror}",)
    own = msgspec.structs.replace(disk, size_bytes=size_bytes, diskseq=_diskseq(descriptor))
    named = next((one for one in read_disks(roots).disks if one.name == disk.name), None)
    return reasons_other_disk(disk, own) or reasons_other_disk(disk, named)


def _diskseq(descriptor: int) -> int | None:
    """Return the sequence number of an open disk; None before Linux 5.15."""
    number = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _BLKGETDISKSEQ, number)
    except OSError:
        return None
    return int.from_bytes(number, sys.byteorder)


def _reasons_in_use(disk: Disk, roots: Roots) -> tuple[str, ...]:
    disks = read_disks(roots).disks
    volume = volume_devices(disk, disks)
    own_file = _backing_file(disk.name, roots)
    numbers = {(one.major, one.minor) for one in volume.all}
    loops = sorted(
        one.name
        for one in disks
        if (file := _backing_file(one.name, roots)) and one.name != disk.name
        # Sysfs does not list them as holders. Two of one file are two paths of a disk.
        if _is_one(file, own_file) or _number(file) in numbers
    )
    read_only = _text(roots.block_device(disk.name) / "ro").strip()
    return (
        *_reasons_of_devices(disk, disks, roots),
        *([f"loop devices use it ({', '.join(loops)})"] if loops else []),
        *([f"its file is a device ({own_file})"] if _number(own_file) else []),
        *_reasons_of_processes(volume, roots),
        *([] if read_only == "0" else ["it is read-only"]),
    )


def _reasons_of_devices(disk: Disk, disks: Collection[Disk], roots: Roots) -> tuple[str, ...]:
    return reasons_in_use(
        disk,
        disks,
        [*_all_mounts(roots.procfs)],
        [
            number
            for name in parse_swaps(_text(roots.procfs / "swaps"))
            if (number := _number(name))
        ],
        _number(parse_root(_text(roots.procfs / "cmdline"))),
    )


def _reasons_of_processes(volume: VolumeDevices, roots: Roots) -> Iterator[str]:
    """Yield that other processes have it open, by whatever path and name, or that they may."""
    nodes = {DeviceNode("block", one.major, one.minor) for one in volume.all if not one.hidden}
    for one in (*volume.sides, *volume.below):
        for pattern in _GENERIC_DEVICES:
            for file in roots.block_device(one.name).glob(pattern):
                with contextlib.suppress(ValueError):  # it was removed
                    major, minor = map(int, _text(file).split(":"))
                    nodes.add(DeviceNode("character", major, minor))
    paths = {DeviceNode("block", one.major, one.minor) for one in volume.below}
    users = device_users(nodes, roots.procfs)
    # It has the paths open for as long as it runs, to check whether they work.
    named = [
        f"{user.name} {user.number}"
        for user in users.found
        if user.name != _PATH_CHECKER or user.devices - paths
    ]
    if named:
        yield f"other processes have it open ({', '.join(named)})"
    if users.unknown:
        yield f"it is not known whether other processes have it open: {users.unknown}"


def _reasons_not_empty(disk: Disk, descriptor: int, chance: random.Random) -> tuple[str, ...]:
    """Read both ends of the open disk, and blocks between them."""
    regions = sampled_regions(disk.size_bytes, chance.randrange)
    try:
        with_data = reasons_not_empty(
            (at, _read(descriptor, at, length)) for at, length in regions
        )
    except OSError as error:
        return (f"it cannot be read: {error.strerror}",)
    return (*with_data, *_blkid_reasons(disk))


def _read(descriptor: int, at: int, length: int) -> bytes:
    """Read from the disk by direct I/O, not from the page cache. Raise OSError."""
    content = bytearray()
    with mmap.mmap(-1, EDGE_BYTES + BLOCK_BYTES) as buffer:
        while len(content) < length:
            with memoryview(buffer) as whole, whole[: length - len(content)] as part:
                read = os.preadv(descriptor, [part], at + len(content))
            if not read:
                raise OSError(0, f"{length - len(content)} bytes are missing")
            content += buffer[:read]
    return bytes(content)


def _blkid_reasons(disk: Disk) -> tuple[str, ...]:
    """Check with blkid too, which knows the formats, and names what it finds."""
    program = shutil.which("blkid", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return ("blkid, which must confirm that it is empty, is not installed (util-linux)",)
    command = (program, "--probe", "--output", "export", f"/dev/{disk.name}")
    limits = ProcessLimits(os.getpid(), 0, _BLKID_MEMORY_BYTES, gentle=False)
    ended = run_process(command, limits, limit_s=_BLKID_LIMIT_S)
    if ended.ending == "exited" and ended.status == _BLKID_FOUND_NOTHING:
        return ()
    types = " ".join(line for line in ended.output.split("\n") if "TYPE=" in line)
    return (f"blkid reports {types or f'status {ended.status}'}",)


def _all_mounts(procfs: Path) -> Iterator[Mount]:
    """Yield the mounts of every visible mount namespace: a container may use the disk."""
    visited: set[Path] = set()
    for process in procfs.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            namespace = (process / "ns/mnt").readlink()
            if namespace not in visited:
                table = (process / "mountinfo").read_bytes()
                visited.add(namespace)
                yield from parse_mountinfo(table.decode(errors="replace"))


def _backing_file(device: str, roots: Roots) -> str:
    """Return the file of a loop device; empty for any other device."""
    return _text(roots.block_device(device) / "loop/backing_file").rstrip("\n")


def _is_one(file: str, other: str) -> bool:
    """Return whether two paths lead to one file, as by a hard link or a mount."""
    if file == other:
        return True
    try:
        number = file_number(file)
        return number is not None and number == file_number(other)
    except OSError:
        return False


def _number(path: str | None) -> DeviceNumber | None:
    """Return the number of the block device that a path leads to; None if it leads to none."""
    found = None
    with contextlib.suppress(OSError, ValueError):
        found = None if path is None else device_node(path)
    return (found.major, found.minor) if found is not None and found.kind == "block" else None


def _text(path: Path) -> str:
    """Return the text of a file of the kernel; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""
