"""The file of saved state: replaced atomically, and moved aside if it cannot be trusted.

And the lock by which one measurement at a time runs on a machine.
"""

import contextlib
import fcntl
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields

log = logging.getLogger("disksla.state")

FILE_NAME = "state.json"
MAX_BYTES = 16 * 1024**2  # larger files are not read: no saved state comes near this size

T = TypeVar("T")


class StateFile:
    """One file in the state directory, for one thread at a time.

    A problem is kept in `problem`, counted in `errors`, and logged when it changes. No method
    raises an exception for it: a daemon that cannot save still monitors its disks.
    """

    def __init__(self, directory: Path, name: str = FILE_NAME, mode: int = 0o600) -> None:
        """Name the file; its directory must exist when it is written, and is never created."""
        self.path = directory / name
        self.problem: str | None = None  # why the last operation failed; None if it succeeded
        self.errors = 0  # number of operations that failed
        self._mode = mode

    def write(self, content: bytes) -> bool:
        """Replace the file and return whether that succeeded.

        Readers see the old or the new content, never a mixture.
        """
        try:
            replace_file(self.path, content, self._mode)
        except OSError as error:
            return self._record(f"cannot save to {self.path}: {error.strerror}")
        return self._record(None)

    def read(self, decode: Callable[[bytes], T]) -> T | None:
        """Return the decoded content, or None if the file is missing or cannot be trusted.

        A file that cannot be read, or for which `decode` raises DiskslaError, is renamed within
        its directory and so kept for the administrator.
        """
        try:
            return decode(read_content(self.path))
        except FileNotFoundError:
            return None
        except OSError as error:
            self._set_aside(error.strerror or str(error))
        except DiskslaError as error:
            self._set_aside(str(error))
        return None

    def _set_aside(self, reason: str) -> None:
        """Rename the file, so that the next write does not replace it."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        aside = self.path.with_name(f"{self.path.name}.damaged-{stamp}")
        try:
            self.path.rename(aside)
        except OSError as error:
            self._record(f"cannot use {self.path}: {reason}; cannot rename it: {error.strerror}")
        else:
            self._record(f"cannot use {self.path}: {reason}; renamed to {aside.name}")

    def _record(self, problem: str | None) -> bool:
        """Record the problem of an operation and log a change; return whether there is none."""
        if problem is not None:
            self.errors += 1
            if problem != self.problem:
                log.warning("state file problem", extra=fields(file=self.path, err=problem))
        elif self.problem is not None:
            log.info("state file recovered", extra=fields(file=self.path))
        self.problem = problem
        return problem is None


def replace_file(path: Path, content: bytes, mode: int) -> None:
    """Replace a file, so that readers see the old or the new content. Raise OSError."""
    name = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):  # left by a process that was killed
        name.unlink()
    try:
        draft = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(draft, "wb") as file:
            os.fchmod(draft, mode)
            file.write(content)
            file.flush()
            os.fsync(draft)
        name.rename(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError:
        with suppress(OSError):
            name.unlink()
        raise


def read_content(path: Path) -> bytes:
    """Return the content of a regular file; do not follow a link or wait for a FIFO.

    Raise OSError, or DiskslaError for anything but a regular file of at most 16 MiB.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DiskslaError("not a regular file")
        if status.st_size > MAX_BYTES:
            raise DiskslaError(f"found {status.st_size} bytes; expected at most {MAX_BYTES}")
        return file.read(MAX_BYTES)


@contextlib.contextmanager
def measurement_lock(directory: Path) -> Iterator[bool]:
    """Yield whether the lock was acquired; hold it until the end of the block.

    The lock is an flock(2) on the state directory, or on its nearest existing parent, so that it
    needs no lock file and ends with the process that holds it. Raises DiskslaError if the
    directory cannot be opened.
    """
    try:
        descriptor = os.open(
            _nearest_existing(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        )
    except OSError as error:
        raise DiskslaError(
            f"cannot check whether another measurement runs: {directory}: {error.strerror}"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _nearest_existing(directory: Path) -> Path:
    try:
        directory.stat()
    except FileNotFoundError:
        return _nearest_existing(directory.parent)
    return directory
