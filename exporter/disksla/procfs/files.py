"""Files that are read at every tick and kept open: /proc/diskstats and sysfs `inflight`."""

import errno
import os
from collections.abc import Collection
from pathlib import Path

from disksla.procfs.mountinfo_file import require_kernel_file

_PAGE_BYTES = 65536
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)
"""Errors of a device that has been removed."""


class DiskstatsFile:
    """/proc/diskstats, read whole and kept open."""

    def __init__(self, procfs: Path) -> None:
        """Open nothing; the first `read` opens the file."""
        self._procfs = procfs
        self._path = procfs / "diskstats"
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
            path = self._directory / device.replace("/", "!") / "inflight"
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._descriptors[device] = descriptor
        content = os.pread(descriptor, 256, 0)
        try:
            reads, writes = map(int, content.split())
        except ValueError:
            raise ValueError(
                f"found {content.decode(errors='replace')!r}; expected two numbers"
            ) from None
        return reads, writes
