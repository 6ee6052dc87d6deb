"""A file of our own to measure a disk with: made where nobody else's is, and gone afterwards.

It lies in a directory of our own, below the one that is given. Whoever may write to the latter
could exchange the former for a link; so nothing is found by path twice: everything goes through
open descriptors, and the file is handed on as /proc/<pid>/fd/<n>, which names the file itself.
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

from disksla.fio.scratch_file_rules import (
    ScratchFileError,
    ScratchFileReason,
    check_free_space,
    check_mount,
)
from disksla.procfs.mountinfo_file import mount_of
from disksla.system.log import fields

log = logging.getLogger("disksla.fio")

SCRATCH_DIRECTORY = ".disksla"
_OURS = re.compile(r"disksla-probe-\d+-[0-9a-f]{16}\.tmp")
_PIECE_BYTES = 1024**2
_TRIES = 10
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_REASONS: dict[int | None, ScratchFileReason] = {
    errno.ENOENT: "not_a_directory",
    errno.ENOTDIR: "not_a_directory",
    errno.ELOOP: "not_ours",
    errno.EROFS: "read_only",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
}


@contextmanager
def scratch_file(
    directory: Path,
    size_bytes: int,
    *,
    written: bool = True,
    on_written: Callable[[int], None] | None = None,
) -> Iterator[Path]:
    """Make a file of so many bytes below `directory`, and remove it in the end.

    The path that is given is good in this process and its children, as long as the file is there.
    All blocks are allocated, and with `written` hold random data: a file system answers reads of
    others without asking the disk, and has more to do when they are first written. `on_written`
    is told the bytes so far, and may raise to end it.

    Raises PlaceRefusal where no file should be made: not on a disk of this machine, no room, read
    only, a directory of ours that somebody else made.
    """
    with ExitStack() as undo:
        try:
            descriptor = _made(directory, size_bytes, undo)
            os.posix_fallocate(descriptor, 0, size_bytes)
            if written:
                _write(descriptor, size_bytes, on_written or _tell_nobody)
            os.fsync(descriptor)
            # What was written must not be read from memory.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise _refusal(error, directory) from error
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")


def remove_leftovers(directory: Path) -> tuple[str, ...]:
    """Remove files that a killed disksla left below `directory`; give their names.

    Only regular files of our own, with such a name, in a directory of our own, that no living
    disksla holds. Raises PlaceRefusal if that directory is not ours, or cannot be read.
    """
    removed = []
    with ExitStack() as undo:
        try:
            parent = _opened(str(directory), undo)
            own = _entered(parent, directory, undo)
            if own is None:
                return ()
            for name in filter(_OURS.fullmatch, os.listdir(own)):  # noqa: PTH208 -- no path
                if _is_left(name, own):
                    os.unlink(name, dir_fd=own)
                    removed.append(name)
        except OSError as error:
            raise _refusal(error, directory) from error
        _remove_directory(parent)
    return tuple(sorted(removed))


def _made(directory: Path, size_bytes: int, undo: ExitStack) -> int:
    """Make the empty file in our directory, and lock it; `undo` removes both."""
    parent = _opened(str(directory), undo)
    mount = mount_of(parent)
    if mount is None:
        raise ScratchFileError("error", f"{directory}: its mount is not in our mount table")
    check_mount(mount)
    room = os.fstatvfs(parent)
    total_bytes, free_bytes = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    check_free_space(size_bytes, total_bytes, free_bytes, str(directory))
    for _ in range(_TRIES):
        with contextlib.suppress(FileExistsError):
            os.mkdir(SCRATCH_DIRECTORY, 0o700, dir_fd=parent)
        # Another disksla may just remove the directory, so that there is none, or a dead one.
        with ExitStack() as attempt, contextlib.suppress(FileNotFoundError):
            own = _entered(parent, directory, attempt)
            if own is None:
                continue
            attempt.callback(_remove_directory, parent)
            name = f"disksla-probe-{os.getpid()}-{secrets.token_hex(8)}.tmp"
            descriptor = os.open(name, _NEW, 0o600, dir_fd=own)
            attempt.callback(_remove, name, own, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(own, fcntl.LOCK_UN)
            undo.push(attempt.pop_all())
            return descriptor
    raise ScratchFileError("error", f"{directory / SCRATCH_DIRECTORY} is removed again and again")


def _opened(name: str, undo: ExitStack, flags: int = 0, within: int | None = None) -> int:
    descriptor = os.open(name, _DIRECTORY | flags, dir_fd=within)
    undo.callback(os.close, descriptor)
    return descriptor


def _entered(parent: int, directory: Path, undo: ExitStack) -> int | None:
    """Open and lock our directory, if it is there and ours.

    The lock keeps others from removing a file that is not locked yet. Raises PlaceRefusal if it
    is somebody else's, or something else.
    """
    try:
        own = _opened(SCRATCH_DIRECTORY, undo, os.O_NOFOLLOW, parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise ScratchFileError(
                "not_ours",
                f"{directory / SCRATCH_DIRECTORY} is no directory; disksla did not make it",
            ) from error
        raise
    found = os.fstat(own)
    if (
        found.st_uid != os.geteuid()
        or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        or found.st_dev != os.fstat(parent).st_dev
    ):
        raise ScratchFileError(
            "not_ours",
            f"{directory / SCRATCH_DIRECTORY} belongs to somebody else, or others may write to it;"
            " expected a directory that disksla made",
        )
    fcntl.flock(own, fcntl.LOCK_EX)
    return own


def _write(descriptor: int, size_bytes: int, on_written: Callable[[int], None]) -> None:
    """Fill the file, and never leave much of it for the last moment."""
    with open(descriptor, "wb", buffering=0, closefd=False) as file:
        for at in range(0, size_bytes, _PIECE_BYTES):
            file.write(os.urandom(min(_PIECE_BYTES, size_bytes - at)))
            os.fdatasync(descriptor)
            on_written(min(at + _PIECE_BYTES, size_bytes))


def _tell_nobody(_: int) -> None:
    """Stand in for a caller who does not want to know."""


def _is_left(name: str, own: int) -> bool:
    """Tell whether a file is one of ours that nobody holds any more."""
    try:
        descriptor = os.open(name, _LOOK, dir_fd=own)
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
    """Remove the file, if its name is still its own."""
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
    with contextlib.suppress(OSError):  # there are other files in it
        os.rmdir(SCRATCH_DIRECTORY, dir_fd=parent)


def _refusal(error: OSError, directory: Path) -> ScratchFileError:
    reason = _REASONS.get(error.errno, "error")
    return ScratchFileError(reason, f"no test file can be made in {directory}: {error.strerror}")
