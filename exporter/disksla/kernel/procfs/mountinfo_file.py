"""/proc/self/mountinfo: read the mount table, and check that a file of procfs is the kernel's."""

import os
import re
from pathlib import Path

from disksla.base.errors import DiskslaError
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
