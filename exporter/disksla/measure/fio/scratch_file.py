"""Create a file to measure a disk with, safe from links and races, and remove it afterwards.

The file is created in a directory of disksla, below the given directory. The owner of the given
directory could replace the one of disksla by a link, so no path is looked up twice: everything is
done through open descriptors, and fio gets /proc/<pid>/fd/<n>, which leads to the file itself.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields
from disksla.kernel.disks import Disk
from disksla.kernel.procfs.files import mount_of, read_mounts
from disksla.measure.fio.result import reason_of
from disksla.measure.fio.scratch_file_rules import ScratchFileError, check_free_space, check_mount

log = logging.getLogger("disksla.fio")

SCRATCH_DIRECTORY = ".disksla"
_FILE_NAME = re.compile(r"disksla-probe-\d+-[0-9a-f]{16}\.tmp")
_CHUNK_BYTES = 1024**2
_ATTEMPTS = 10
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_NO_DIRECTORY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@contextmanager
def scratch_file(
    directory: Path, size_bytes: int, on_written: Callable[[int], None] | None = None
) -> Iterator[Path]:
    """Create a file of `size_bytes` below `directory`, yield its path, and remove it.

    The path is valid in this process and its children while the file exists. All blocks are
    allocated and contain random data: a file system answers reads of unwritten
    blocks without the disk, and has more work when it writes them for the first time. `on_written`
    is called with the bytes written so far; what it raises ends the writing.

    Raise ScratchFileError if the file cannot be created: not on a local disk, not enough space,
    read-only, or a directory of this name that another program created.
    """
    with ExitStack() as cleanup:
        try:
            descriptor = _create(directory, size_bytes, cleanup)
            os.posix_fallocate(descriptor, 0, size_bytes)
            _write(descriptor, size_bytes, on_written)
            os.fsync(descriptor)
            # Reads must come from the disk, not from the page cache.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise _scratch_file_error(error, directory) from error
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def remove_leftovers(directory: Path) -> tuple[str, ...]:
    """Remove the files that a killed disksla left below `directory`; return their names.

    Only regular files of this user with such a name, in a directory of this user, that no running
    disksla has locked. Raise ScratchFileError if the directory belongs to another user or cannot
    be read.
    """
    removed = []
    with ExitStack() as cleanup:
        try:
            parent = _open_directory(str(directory), cleanup)
            own = _open_own_directory(parent, directory, cleanup)
            if own is None:
                return ()
            for name in filter(_FILE_NAME.fullmatch, os.listdir(own)):  # noqa: PTH208 -- no path
                if _is_leftover(name, own):
                    os.unlink(name, dir_fd=own)
                    removed.append(name)
        except OSError as error:
            raise _scratch_file_error(error, directory) from error
        _remove_directory(parent)
    return tuple(sorted(removed))


def _create(directory: Path, size_bytes: int, cleanup: ExitStack) -> int:
    """Create the empty file in a directory of disksla and lock it; `cleanup` removes both."""
    parent = _open_directory(str(directory), cleanup)
    mount = mount_of(parent)
    if mount is None:
        raise ScratchFileError(f"{directory}: its mount is not in /proc/self/mountinfo", "error")
    check_mount(mount)
    space = os.fstatvfs(parent)
    total_bytes, free_bytes = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
    check_free_space(size_bytes, total_bytes, free_bytes, str(directory))
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileExistsError):
            os.mkdir(SCRATCH_DIRECTORY, 0o700, dir_fd=parent)
        # Another disksla may be removing the directory: then it is missing, or open but deleted.
        with ExitStack() as attempt, contextlib.suppress(FileNotFoundError):
            own = _open_own_directory(parent, directory, attempt)
            if own is None:
                continue
            attempt.callback(_remove_directory, parent)
            name = f"disksla-probe-{os.getpid()}-{secrets.token_hex(8)}.tmp"
            descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=own)
            attempt.callback(_remove, name, own, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(own, fcntl.LOCK_UN)
            cleanup.push(attempt.pop_all())
            return descriptor
    raise ScratchFileError(
        f"cannot keep {directory / SCRATCH_DIRECTORY}: another process removes it", "error"
    )


def _open_directory(
    name: str, cleanup: ExitStack, flags: int = 0, within: int | None = None
) -> int:
    descriptor = os.open(name, _DIRECTORY | flags, dir_fd=within)
    cleanup.callback(os.close, descriptor)
    return descriptor


def _open_own_directory(parent: int, directory: Path, cleanup: ExitStack) -> int | None:
    """Open and lock the directory of disksla; return None if it does not exist.

    The lock keeps other processes from removing a file that is not locked yet. Raise
    ScratchFileError if it is not a directory, or not one that disksla created.
    """
    try:
        own = _open_directory(SCRATCH_DIRECTORY, cleanup, os.O_NOFOLLOW, parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise ScratchFileError(
                f"{directory / SCRATCH_DIRECTORY} is not a directory; expected one that disksla"
                " created"
            ) from error
        raise
    found = os.fstat(own)
    if (
        found.st_uid != os.geteuid()
        or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        or found.st_dev != os.fstat(parent).st_dev
    ):
        raise ScratchFileError(
            f"{directory / SCRATCH_DIRECTORY} belongs to another user, can be written by other"
            " users, or is a mount point; expected a directory that disksla created"
        )
    fcntl.flock(own, fcntl.LOCK_EX)
    return own


def _write(descriptor: int, size_bytes: int, on_written: Callable[[int], None] | None) -> None:
    """Fill the file, and flush each chunk, so that no large write-back remains for the end."""
    with open(descriptor, "wb", buffering=0, closefd=False) as file:
        for at in range(0, size_bytes, _CHUNK_BYTES):
            file.write(os.urandom(min(_CHUNK_BYTES, size_bytes - at)))
            os.fdatasync(descriptor)
            if on_written is not None:
                on_written(min(at + _CHUNK_BYTES, size_bytes))


def _is_leftover(name: str, own: int) -> bool:
    """Return whether a file is a regular file of this user that no process has locked."""
    try:
        descriptor = os.open(name, _OLD_FILE, dir_fd=own)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def _remove(name: str, own: int, descriptor: int) -> None:
    """Remove the file, unless its name now belongs to another file."""
    try:
        fcntl.flock(own, fcntl.LOCK_EX)
        if os.path.samestat(
            os.stat(name, dir_fd=own, follow_symlinks=False), os.fstat(descriptor)
        ):
            os.unlink(name, dir_fd=own)
    except OSError as error:
        log.warning("cannot remove scratch file", extra=fields(file=name, err=error.strerror))
    finally:
        os.close(descriptor)


def _remove_directory(parent: int) -> None:
    with contextlib.suppress(OSError):  # it contains other files
        os.rmdir(SCRATCH_DIRECTORY, dir_fd=parent)


def _scratch_file_error(error: OSError, directory: Path) -> ScratchFileError:
    number = error.errno or 0
    reason = "no_space" if number == errno.EFBIG else reason_of(number)
    return ScratchFileError(
        f"cannot create a scratch file in {directory}: {error.strerror}",
        "no_scratch_file" if number in _NO_DIRECTORY else reason,
    )


def file_system_of(directory: Path, disk: Disk) -> str:
    """Return the type of the file system on `disk` that holds the directory, such as ext4.

    Raise DiskslaError if it is not a directory, or is on another disk.
    """
    try:
        resolved = directory.resolve(strict=True)
    except OSError as error:
        raise DiskslaError(f"{directory}: {error.strerror}") from error
    if not resolved.is_dir():
        raise DiskslaError(f"{directory} is not a directory")
    types = {mount.mount_point: mount.file_system for mount in read_mounts()}
    mount_point = next(
        (str(path) for path in (resolved, *resolved.parents) if str(path) in types), "/"
    )
    if mount_point not in disk.mount_points:
        hint = f"no file system of {disk.name} is mounted"
        if disk.mount_points:
            hint = f"expected a directory below {', '.join(disk.mount_points)}"
        raise DiskslaError(
            f"{directory} is not on {disk.name}: its file system is mounted at {mount_point};"
            f" {hint}"
        )
    return types[mount_point]
