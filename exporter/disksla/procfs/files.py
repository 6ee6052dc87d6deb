"""Which file system something lies on, and whether that is one of a disk."""

import errno
import os
import re
from collections.abc import Collection
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.procfs.mountinfo import Mount, foreign_file_system, parse_mountinfo

_PROCESS = Path("/proc/self")
"""Our own: things are named as we see them."""
_MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)


def mount_of(descriptor: int) -> Mount | None:
    """Give the mount that something open is on; by path it could be another one.

    None if it is out of our sight. Raises OSError without a procfs of our own.
    """
    told = (_PROCESS / "fdinfo" / str(descriptor)).read_text(encoding="ascii")
    numbers = {int(number) for number in _MOUNT_ID.findall(told)}
    return next((mount for mount in read_mounts() if mount.number in numbers), None)


def read_mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process. Raise OSError without a procfs."""
    table = (_PROCESS / "mountinfo").read_bytes()
    return parse_mountinfo(table.decode(errors="surrogateescape"))


_PAGE_BYTES = 65536
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)


class NotKernelFileError(DiskslaError, OSError):
    """A file of procfs is shown by something else than the kernel; the text says by what."""


def require_kernel_file(file: Path, procfs: Path) -> None:
    """Raise StandIn if a file of procfs is not the kernel's.

    In a container, lxcfs mounts files of its own over some of procfs, with the container's share
    in them or none: an iowait of 0, and counters that no disk has. The mount table tells of it;
    where there is none to be read, nothing does. The file itself is not opened: an lxcfs that
    hangs would not let go.
    """
    try:
        shown, around = _mount_at(file), _mount_at(procfs)
    except OSError:
        return
    kind = None if shown is None or around is None else foreign_file_system(shown, around)
    if kind is not None:
        raise NotKernelFileError(
            f"{file} is shown by {kind} and not by the kernel, so it does not tell of the disks;"
            " mount the host's procfs into the container and name it with --path.procfs"
        )


def _mount_at(path: Path) -> Mount | None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return mount_of(descriptor)
    finally:
        os.close(descriptor)


class DiskstatsFile:
    """/proc/diskstats, read whole."""

    def __init__(self, procfs: Path) -> None:
        """Take the place; nothing is opened before the first reading."""
        self._procfs = procfs
        self._path = procfs / "diskstats"
        self._descriptor: int | None = None

    def read(self) -> str:
        """Give the whole text. Raises OSError, also for a stand-in; the next call opens again.

        One read gives at most a page, so reading goes on until there is nothing left.
        """
        try:
            if self._descriptor is None:
                require_kernel_file(self._path, self._procfs)
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            chunks = []
            offset = 0
            while chunk := os.pread(self._descriptor, _PAGE_BYTES, offset):
                chunks.append(chunk)
                offset += len(chunk)
        except OSError:
            self.close()
            raise
        return b"".join(chunks).decode(errors="replace")

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class InflightFiles:
    """Sysfs `inflight` of the devices that are awake: reads and writes in flight.

    The kernel's own count of what a disk has to do, right on every kernel and whether requests
    go to the disk or to its partitions (Documentation/ABI/stable/sysfs-block).
    """

    def __init__(self, sysfs: Path) -> None:
        """Take the root; files are opened as devices wake and closed as they fall asleep."""
        self._directory = sysfs / "class" / "block"
        self._descriptors: dict[str, int] = {}

    def read(self, active: Collection[str]) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
        """Give what is in flight per device, and what could not be read.

        A device that is gone is in neither: hotplug will say so.
        """
        for device in self._descriptors.keys() - active:
            os.close(self._descriptors.pop(device))
        counts: dict[str, tuple[int, int]] = {}
        problems: dict[str, str] = {}
        for device in active:
            try:
                counts[device] = self._read_one(device)
            except OSError as error:
                if error.errno not in _GONE:
                    problems[f"inflight:{device}"] = str(error)
            except ValueError as error:
                problems[f"inflight:{device}"] = f"not two numbers: {error}"
        return counts, problems

    def close(self) -> None:
        """Let go of all files."""
        self.read(())

    def _read_one(self, device: str) -> tuple[int, int]:
        descriptor = self._descriptors.get(device)
        if descriptor is None:
            path = self._directory / device.replace("/", "!") / "inflight"
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._descriptors[device] = descriptor
        reads, writes = os.pread(descriptor, 256, 0).split()
        return int(reads), int(writes)
