"""The journal file of a sweep: create, load, resume, and append finished cells."""

import contextlib
import os
from pathlib import Path
from typing import Self

from disksla.base.errors import DiskslaError
from disksla.base.schema.yaml_file import read_named
from disksla.base.units import MIB
from disksla.measure.benchmark.sweep_journal import (
    SweepHeader,
    SweepJournal,
    encode_line,
    read_journal,
)
from disksla.measure.benchmark.sweep_matrix import SweepRow

LARGEST_BYTES = 64 * MIB
"""Of a journal or a table. A row has 200 bytes, and the largest plan thousands of rows."""


def load_journal(path: Path) -> SweepJournal:
    """Read a journal. Raise DiskslaError with the file and line if it is invalid."""
    content = read_named(path, LARGEST_BYTES)
    try:
        return read_journal(content)
    except DiskslaError as error:
        raise DiskslaError(f"{path}: {error}") from error


class SweepJournalFile:
    """An open journal; a record is on disk when `add` returns."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Wrap an open file descriptor."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, header: SweepHeader) -> Self:
        """Create a journal. Raise DiskslaError if the file exists or cannot be created."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            file = cls(path, os.open(path, flags, 0o644))
        except FileExistsError:
            raise DiskslaError(
                f"{path} already exists; resume it with --resume {path}, or choose another file"
                " with --output"
            ) from None
        except OSError as error:
            raise DiskslaError(f"cannot create {path}: {error.strerror}") from error
        file.add(header)
        return file

    @classmethod
    def resume(cls, path: Path, journal: SweepJournal) -> Self:
        """Open a journal to append after its last whole line. Raise DiskslaError if it fails.

        The path may lead to another file than the one that was read: that is never truncated.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            with contextlib.ExitStack() as cleanup:
                cleanup.callback(os.close, descriptor)
                with open(descriptor, "rb", closefd=False) as file:
                    if read_journal(file.read(LARGEST_BYTES)) != journal:
                        raise DiskslaError(f"cannot resume from {path}: it has changed")
                os.ftruncate(descriptor, journal.whole_bytes)
                cleanup.pop_all()
        except OSError as error:
            raise DiskslaError(f"cannot write {path}: {error.strerror}") from error
        return cls(path, descriptor)

    def add(self, record: SweepHeader | SweepRow) -> None:
        """Append a record. Raise DiskslaError if it cannot be written."""
        try:
            with os.fdopen(os.dup(self._descriptor), "wb") as file:
                file.write(encode_line(record))
            os.fsync(self._descriptor)
        except OSError as error:
            raise DiskslaError(f"cannot write {self.path}: {error.strerror}") from error

    def __enter__(self) -> Self:
        """Return the journal."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)
