"""One measurement at a time on this machine, by a lock that leaves nothing behind."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from disksla.errors import DiskslaError


@contextlib.contextmanager
def measurement_lock(directory: Path) -> Iterator[bool]:
    """Tell whether nobody else on this machine measures, and keep it so.

    The lock is an flock(2) on the state directory itself (or what is above it, where it was not
    made yet), so that there is no file of ours, and it ends with the process that holds it.
    Raises Refusal if it cannot be asked for.
    """
    try:
        descriptor = os.open(_existing(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DiskslaError(
            f"cannot tell whether another measurement runs: {directory}: {error.strerror}"
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


def _existing(directory: Path) -> Path:
    try:
        directory.stat()
    except FileNotFoundError:
        return _existing(directory.parent)
    return directory
