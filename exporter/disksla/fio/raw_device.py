"""Reserve a raw disk that fio may overwrite: not in use, and empty or named by its serial."""

import contextlib
import fcntl
import mmap
import os
import random
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.disks import Disk
from disksla.disks.inventory import read_disks
from disksla.errors import DiskslaError
from disksla.fio.process import run_process
from disksla.fio.raw_device_rules import (
    BLOCK_BYTES,
    EDGE_BYTES,
    DeviceNumber,
    check_consent,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
    reasons_other_disk,
    sampled_regions,
)
from disksla.fio.sandbox import ProcessLimits
from disksla.procfs import Mount, parse_mountinfo
from disksla.system.roots import Roots

_BLKGETDISKSEQ = 0x80081280  # linux/fs.h
_EXCLUSIVE = os.O_RDONLY | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
_BLKID_LIMIT_S = 10.0
_BLKID_MEMORY_BYTES = 1024**3
_BLKID_FOUND_NOTHING = 2


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
        as is the rest, since no call returns them for a descriptor.
        """
        path = Path("/dev") / self.disk.name
        reasons = _reasons_other_disk(self.disk, self.descriptor, path, self.roots)
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
    reasons = reasons_in_use(
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
    loops = sorted(_loop_devices_on(disk, roots.sysfs))
    processes = sorted(_processes_using(disk, roots.procfs))
    read_only = _text(roots.block_device(disk.name) / "ro").strip()
    return (
        *reasons,
        *([f"loop devices use it ({', '.join(loops)})"] if loops else []),
        *([f"other processes have it open ({', '.join(processes)})"] if processes else []),
        *([] if read_only == "0" else ["it is read-only"]),
    )


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


def _loop_devices_on(disk: Disk, sysfs: Path) -> Iterator[str]:
    """Yield the loop devices whose file is this device; sysfs does not list them as holders."""
    for file in (sysfs / "block").glob("loop*/loop/backing_file"):
        if _number(_text(file).rstrip("\n")) == (disk.major, disk.minor):
            yield file.parent.parent.name


def _processes_using(disk: Disk, procfs: Path) -> Iterator[str]:
    """Yield the other processes that have the device open, such as a virtual machine."""
    for process in procfs.glob("[0-9]*"):
        if process.name != str(os.getpid()) and _has_open(disk, process):
            yield f"{_text(process / 'comm').strip()} {process.name}"


def _has_open(disk: Disk, process: Path) -> bool:
    with contextlib.suppress(OSError):
        for file in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                # Only files in /dev: stat() of other files, such as on NFS, may block for ever.
                is_device = file.readlink().is_relative_to("/dev")
                if is_device and _number(str(file)) == (disk.major, disk.minor):
                    return True
    return False


def _number(path: str | None) -> DeviceNumber | None:
    """Return the number of the block device that a path leads to; None if it leads to none."""
    if path is None:
        return None
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISBLK(found.st_mode):
        return None
    return os.major(found.st_rdev), os.minor(found.st_rdev)


def _text(path: Path) -> str:
    """Return the text of a file of the kernel; empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""
