"""Whether a raw disk may be written to, as far as this machine can tell; and holding it then."""

import contextlib
import mmap
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.disks import Disk
from disksla.disks.inventory import read_disks
from disksla.errors import DiskslaError
from disksla.fio.process import run_process
from disksla.fio.raw_device_rules import (
    EDGE_BYTES,
    DeviceNumber,
    parse_root,
    parse_swaps,
    reasons_in_use,
    reasons_not_empty,
)
from disksla.fio.sandbox import ProcessLimits
from disksla.procfs import Mount, parse_mountinfo
from disksla.system.roots import Roots

_EXCLUSIVE = os.O_RDONLY | os.O_EXCL | os.O_DIRECT | os.O_CLOEXEC
_BLOCK_BYTES = 4096
_BLKID_LIMIT_S = 10.0
_BLKID_MEMORY_BYTES = 1024**3
_BLKID_FOUND_NOTHING = 2


class RawDeviceError(DiskslaError):
    """A disk that must not be overwritten, and all the reasons."""

    def __init__(self, disk: Disk, reasons: tuple[str, ...]) -> None:
        """Take the disk and why."""
        super().__init__(f"{disk.name} is not overwritten: {'; '.join(reasons)}")
        self.reasons = reasons


@contextmanager
def exclusive_device(disk: Disk, roots: Roots | None = None) -> Iterator[Path]:
    """Hold a disk that may be overwritten, so that nobody can mount it or build on it meanwhile.

    The path is that of its device. Raises RawDeviceRefusal if it must not be overwritten.
    """
    where = roots or Roots()
    device = Path("/dev") / disk.name
    reasons = _why_in_use(disk, where)
    if reasons:
        raise RawDeviceError(disk, reasons)
    try:
        descriptor = os.open(device, _EXCLUSIVE)
    except OSError as error:
        raise RawDeviceError(
            disk, (f"{device} cannot be opened for us alone: {error.strerror}",)
        ) from error
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, descriptor)
        # Once more: what came between the first look and the lock is seen now.
        reasons = _why_in_use(disk, where) or _why_not_ours(disk, descriptor)
        if reasons:
            raise RawDeviceError(disk, reasons)
        yield device


def _why_in_use(disk: Disk, roots: Roots) -> tuple[str, ...]:
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
    loops = sorted(_loops_upon(disk, roots.sysfs))
    openers = sorted(_openers(disk, roots.procfs))
    read_only = _text(roots.block_device(disk.name) / "ro").strip()
    return (
        *reasons,
        *([f"loop devices lie on it ({', '.join(loops)})"] if loops else []),
        *([f"other processes have it open ({', '.join(openers)})"] if openers else []),
        *([] if read_only == "0" else ["it is read only"]),
    )


def _why_not_ours(disk: Disk, descriptor: int) -> tuple[str, ...]:
    """Look into the disk itself, which is held."""
    found = os.fstat(descriptor)
    number = (os.major(found.st_rdev), os.minor(found.st_rdev))
    if not stat.S_ISBLK(found.st_mode) or number != (disk.major, disk.minor):
        return (f"/dev/{disk.name} is not that disk",)
    size_bytes = os.lseek(descriptor, 0, os.SEEK_END)
    tail_at = max(0, size_bytes - EDGE_BYTES) // _BLOCK_BYTES * _BLOCK_BYTES
    try:
        head = _read(descriptor, 0, min(EDGE_BYTES, size_bytes))
        tail = _read(descriptor, tail_at, size_bytes - tail_at)
    except OSError as error:
        return (f"it cannot be read: {error.strerror}",)
    return (*reasons_not_empty(head, tail), *_what_blkid_finds(disk))


def _read(descriptor: int, at: int, length: int) -> bytes:
    """Read what is on the disk, not what was remembered of it. Raises OSError."""
    content = bytearray()
    with mmap.mmap(-1, EDGE_BYTES + _BLOCK_BYTES) as room:
        while len(content) < length:
            with memoryview(room) as whole, whole[: length - len(content)] as wanted:
                read = os.preadv(descriptor, [wanted], at + len(content))
            if not read:
                raise OSError(0, f"{length - len(content)} bytes are missing")
            content += room[:read]
    return bytes(content)


def _what_blkid_finds(disk: Disk) -> tuple[str, ...]:
    """Ask util-linux too, where it is installed: it knows places far within."""
    program = shutil.which("blkid", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        return ()
    command = (program, "--probe", "--output", "export", f"/dev/{disk.name}")
    leash = ProcessLimits(os.getpid(), 0, _BLKID_MEMORY_BYTES, gentle=False)
    ended = run_process(command, leash, limit_s=_BLKID_LIMIT_S)
    if ended.ending == "ended" and ended.status == _BLKID_FOUND_NOTHING:
        return ()
    words = " ".join(line for line in ended.output.split("\n") if "TYPE=" in line)
    return (f"blkid reports {words or f'status {ended.status}'}",)


def _all_mounts(procfs: Path) -> Iterator[Mount]:
    """Give the mounts of every namespace that can be seen: a container may use the disk."""
    seen: set[Path] = set()
    for process in procfs.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            namespace = (process / "ns/mnt").readlink()
            if namespace not in seen:
                table = (process / "mountinfo").read_bytes()
                seen.add(namespace)
                yield from parse_mountinfo(table.decode(errors="replace"))


def _loops_upon(disk: Disk, sysfs: Path) -> Iterator[str]:
    """Give the loop devices whose file is this very device; sysfs does not call them holders."""
    for file in (sysfs / "block").glob("loop*/loop/backing_file"):
        if _number(_text(file).rstrip("\n")) == (disk.major, disk.minor):
            yield file.parent.parent.name


def _openers(disk: Disk, procfs: Path) -> Iterator[str]:
    """Give the processes that have the device open, ourselves aside: a virtual machine, say."""
    for process in procfs.glob("[0-9]*"):
        if process.name != str(os.getpid()) and _has_open(disk, process):
            yield f"{_text(process / 'comm').strip()} {process.name}"


def _has_open(disk: Disk, process: Path) -> bool:
    with contextlib.suppress(OSError):
        for file in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                # Only what is in /dev: to look at other files may take for ever.
                is_device = file.readlink().is_relative_to("/dev")
                if is_device and _number(str(file)) == (disk.major, disk.minor):
                    return True
    return False


def _number(path: str | None) -> DeviceNumber | None:
    """Give the number of the block device at a path, through links; None if there is none."""
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
    """Read a file of the kernel; nothing if it is not there."""
    with contextlib.suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""
