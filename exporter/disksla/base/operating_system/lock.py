"""The measurement lock: at most one measurement at a time on this machine."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from disksla.base.errors import DiskslaError


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
