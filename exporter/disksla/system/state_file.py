"""The file of saved state: there as a whole or not at all, and never trusted when damaged."""

import logging
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from disksla.errors import DiskslaError
from disksla.system.log import fields

log = logging.getLogger("disksla.state")

FILE_NAME = "state.json"
MOST_BYTES = 16 * 1024**2
"""No state is as large as this."""

T = TypeVar("T")


class StateFile:
    """Reads and writes one file in the state directory, and touches nothing outside it.

    What goes wrong is kept in `trouble`, counted in `errors`, and logged when it changes: a
    daemon that cannot save still watches. It is for one thread at a time.
    """

    def __init__(self, directory: Path, name: str = FILE_NAME, mode: int = 0o600) -> None:
        """Take the directory, which has to be there when something is written; and a file name."""
        self.path = directory / name
        self.problem: str | None = None
        """What was wrong the last time; None if nothing was."""
        self.errors = 0
        """How often something was wrong."""
        self._directory = directory
        self._draft = directory / f"{name}.new"
        self._mode = mode

    def write(self, content: bytes) -> bool:
        """Replace the file; tell whether that was done. A reader sees the old or the new one."""
        try:
            self._replace(content)
        except OSError as error:
            with suppress(OSError):
                self._draft.unlink()
            return self._said(f"cannot save to {self.path}: {error.strerror}")
        return self._said(None)

    def read(self, decode: Callable[[bytes], T]) -> T | None:
        """Give what `decode` makes of the file; None if there is nothing that can be trusted.

        A file that cannot be read, or that `decode` refuses, is set aside for a person to look
        at, under another name in the same directory.
        """
        try:
            return decode(_content(self.path))
        except FileNotFoundError:
            return None
        except OSError as error:
            self._set_aside(error.strerror or str(error))
        except DiskslaError as error:
            self._set_aside(str(error))
        return None

    def _replace(self, content: bytes) -> None:
        with suppress(FileNotFoundError):  # left by a daemon that was killed
            self._draft.unlink()
        draft = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(draft, "wb") as file:
            os.fchmod(draft, self._mode)
            file.write(content)
            file.flush()
            os.fsync(draft)
        self._draft.rename(self.path)
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _set_aside(self, reason: str) -> None:
        """Keep the file under another name, so that nothing overwrites it."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        aside = self.path.with_name(f"{self.path.name}.damaged-{stamp}")
        try:
            self.path.rename(aside)
        except OSError as error:
            self._said(f"{self.path} is not used: {reason}; nor moved: {error.strerror}")
        else:
            self._said(f"{self.path} is not used, and was moved to {aside.name}: {reason}")

    def _said(self, problem: str | None) -> bool:
        """Take note of how it went, and log what changed."""
        if problem is not None:
            self.errors += 1
            if problem != self.problem:
                log.warning("state file problem", extra=fields(file=self.path, err=problem))
        elif self.problem is not None:
            log.info("state file recovered", extra=fields(file=self.path))
        self.problem = problem
        return problem is None


def _content(path: Path) -> bytes:
    """Read a regular file, and nothing that only looks like one."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise DiskslaError("not a file of saved state")
        return file.read(MOST_BYTES)
