"""Files that are read again and again, and kept open: of procfs, `inflight` and `stat`."""

import errno
import os
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from disksla.base.counts import total
from disksla.base.errors import DiskslaError
from disksla.kernel.procfs.diskstats import CloseSample, parse_close_sample, parse_inflight
from disksla.kernel.procfs.mountinfo import Mount, foreign_file_system, parse_mountinfo

_PROCESS = Path("/proc/self")
"""The procfs of this process, whatever --path.procfs is: paths and descriptors are its own."""
_MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)


class NotKernelFileError(DiskslaError, OSError):
    """A file of procfs is provided by another file system; the message names it."""


def read_mounts() -> tuple[Mount, ...]:
    """Return the mounts of this process. Raise OSError without a procfs."""
    table = (_PROCESS / "mountinfo").read_bytes()
    return parse_mountinfo(table.decode(errors="surrogateescape"))


def mount_of(descriptor: int) -> Mount | None:
    """Return the mount that an open file is on; None if it is not in the mount table.

    A lookup by path could find another mount. Raise OSError without a procfs.
    """
    fdinfo = (_PROCESS / "fdinfo" / str(descriptor)).read_text(encoding="ascii")
    mount_ids = {int(number) for number in _MOUNT_ID.findall(fdinfo)}
    return next((mount for mount in read_mounts() if mount.number in mount_ids), None)


def require_kernel_file(file: Path, procfs: Path) -> None:
    """Raise NotKernelFileError if a file of procfs is not provided by the kernel.

    In a container, lxcfs mounts its own files over some of procfs, with values of the container
    or none: an iowait of 0, and counters that belong to no disk. The mount table shows this;
    without a readable mount table the file is accepted. The file itself is not opened, because a
    hung lxcfs would block.
    """
    try:
        file_mount, procfs_mount = _mount_at(file), _mount_at(procfs)
    except OSError:
        return
    if file_mount is None or procfs_mount is None:
        return
    file_system = foreign_file_system(file_mount, procfs_mount)
    if file_system is not None:
        raise NotKernelFileError(
            f"cannot use {file}: it is provided by {file_system}, not by the kernel;"
            " mount the host's procfs into the container and set --path.procfs"
        )


def _mount_at(path: Path) -> Mount | None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return mount_of(descriptor)
    finally:
        os.close(descriptor)


_PAGE_BYTES = 65536
_STAT_BYTES = 512
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)  # errors of a device that has been removed


class WholeFile:
    """A file of procfs, read whole and kept open."""

    def __init__(self, path: Path, procfs: Path) -> None:
        """Open nothing; the first `read` opens the file."""
        self._procfs = procfs
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> str:
        """Return the whole text.

        Raise OSError if the file cannot be read, and NotKernelFileError, also an OSError, if the
        kernel does not provide it; the next call opens it again.
        """
        try:
            if self._descriptor is None:
                require_kernel_file(self._path, self._procfs)
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            chunks = []
            offset = 0
            # One read returns at most a page of the kernel, whatever the size of the buffer.
            while chunk := os.pread(self._descriptor, _PAGE_BYTES, offset):
                chunks.append(chunk)
                offset += len(chunk)
        except OSError:
            self.close()
            raise
        return b"".join(chunks).decode(errors="replace")

    def close(self) -> None:
        """Close the file; `read` opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class DiskstatsFile(WholeFile):
    """/proc/diskstats, read whole and kept open."""

    def __init__(self, procfs: Path) -> None:
        """Open nothing; the first `read` opens the file."""
        super().__init__(procfs / "diskstats", procfs)


class InflightFiles:
    """Sysfs `inflight` of active devices: reads and writes in flight.

    Format: Documentation/ABI/stable/sysfs-block. It was right on every kernel measured (6.1, 6.12,
    6.18), whether requests go to the disk or to its partitions; /proc/diskstats was not.
    """

    def __init__(self, sysfs: Path) -> None:
        """Open nothing; a file is open while its device is active."""
        self._directory = sysfs / "class" / "block"
        self._descriptors: dict[str, int] = {}

    def read(self, active: Collection[str]) -> tuple[dict[str, tuple[int, int]], dict[str, str]]:
        """Return reads and writes in flight by device, and errors by `inflight:DEVICE`.

        A device that has been removed is in neither; hotplug reports it.
        """
        if not (active or self._descriptors):
            return {}, {}
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
                problems[f"inflight:{device}"] = str(error)
        return counts, problems

    def close(self) -> None:
        """Close all files."""
        self.read(())

    def _read_one(self, device: str) -> tuple[int, int]:
        descriptor = self._descriptors.get(device)
        if descriptor is None:
            descriptor = _open(self._directory, device, "inflight")
            self._descriptors[device] = descriptor
        return parse_inflight(os.pread(descriptor, 256, 0))


class StatFiles:
    """Sysfs `stat` of disks that are looked at closer, with `inflight` of those with partitions.

    What is read is kept as bytes, and parsed when it is taken: that is cheaper at once.
    """

    def __init__(self, sysfs: Path) -> None:
        """Open nothing; files are open while their disk is looked at."""
        self._directory = sysfs / "class" / "block"
        self._descriptors: dict[str, tuple[list[int], int | None]] = {}
        self._counted_at: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, list[tuple[float, list[bytes], bytes | None]]] = {}
        self._problems: dict[str, str] = {}

    def look_at(
        self, devices: Mapping[str, tuple[str, ...]], partitioned: Collection[str]
    ) -> None:
        """Open and read the files of these disks, and close those of others.

        Each has the devices whose counters add up to its own.
        """
        for device in [*self._descriptors]:
            if self._counted_at[device] != devices.get(device):
                self._close(device)
        for device, counted_at in devices.items():
            if device not in self._descriptors:
                self._counted_at[device] = counted_at
                stats: list[int] = []
                self._descriptors[device] = (stats, None)
                try:
                    stats.extend(_open(self._directory, each, "stat") for each in counted_at)
                    if device in partitioned and counted_at == (device,):
                        inflight = _open(self._directory, device, "inflight")
                        self._descriptors[device] = (stats, inflight)
                    self._read(device)
                except OSError as error:
                    self._failed(device, error)

    def read(self) -> None:
        """Read the files of all disks that are looked at."""
        for device in [*self._descriptors]:
            try:
                self._read(device)
            except OSError as error:
                self._failed(device, error)

    def _read(self, device: str) -> None:
        stats, inflight = self._descriptors[device]
        at_s, texts = time.monotonic(), [os.pread(each, _STAT_BYTES, 0) for each in stats]
        in_flight = None if inflight is None else os.pread(inflight, _STAT_BYTES, 0)
        self._texts.setdefault(device, []).append((at_s, texts, in_flight))

    def take(self) -> tuple[dict[str, tuple[CloseSample, ...]], dict[str, str]]:
        """Return what was read since the last call, and errors by `close_samples:DEVICE`.

        A device that has been removed is in neither; hotplug reports it.
        """
        if not (self._texts or self._problems):
            return {}, {}
        samples, problems = {}, self._problems
        for device, texts in self._texts.items():
            try:
                samples[device] = tuple(
                    total(parse_close_sample(at_s, text, in_flight) for text in of_paths)
                    for at_s, of_paths, in_flight in texts
                )
            except ValueError as error:
                problems[f"close_samples:{device}"] = str(error)
        self._texts, self._problems = {}, {}
        return samples, problems

    def close(self) -> None:
        """Close all files."""
        self.look_at({}, ())

    def _failed(self, device: str, error: OSError) -> None:
        self._close(device)
        is_removed = not (self._directory / device.replace("/", "!")).exists()
        if error.errno not in _GONE or not is_removed or not self._directory.exists():
            self._problems[f"close_samples:{device}"] = str(error)

    def _close(self, device: str) -> None:
        stats, inflight = self._descriptors.pop(device, ([], None))
        for descriptor in (*stats, inflight):
            if descriptor is not None:
                os.close(descriptor)


def _open(directory: Path, device: str, name: str) -> int:
    """Open a file of a block device in sysfs, where `!` stands for `/`."""
    return os.open(directory / device.replace("/", "!") / name, os.O_RDONLY | os.O_CLOEXEC)
