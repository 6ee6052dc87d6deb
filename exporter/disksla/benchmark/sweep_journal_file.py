"""The file of a sweep's journal: made, read, and added to line by line."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from disksla.benchmark.sweep_journal import SweepHeader, SweepJournal, encode_line, read_journal
from disksla.benchmark.sweep_matrix import SweepRow
from disksla.errors import DiskslaError


def load_journal(path: Path) -> SweepJournal:
    """Read a journal. Raises Refusal, with the file and line, if it is none."""
    try:
        return read_journal(path.read_bytes())
    except OSError as error:
        raise DiskslaError(f"cannot read {path}: {error.strerror}") from error
    except DiskslaError as error:
        raise DiskslaError(f"{path}: {error}") from error


class SweepJournalFile:
    """Adds to a journal; what was added is on the disk when `add` returns."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Take the open file."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def make(cls, path: Path, header: SweepHeader) -> Self:
        """Begin a journal in a file that must not exist yet. Raises Refusal."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            file = cls(path, os.open(path, flags, 0o644))
        except FileExistsError:
            raise DiskslaError(
                f"{path} is there already: go on with it by --resume {path},"
                " or name another file by --output"
            ) from None
        except OSError as error:
            raise DiskslaError(f"cannot make {path}: {error.strerror}") from error
        file.add(header)
        return file

    @classmethod
    def go_on(cls, path: Path, journal: SweepJournal) -> Self:
        """Go on with a journal behind its last whole line. Raises Refusal."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            os.ftruncate(descriptor, journal.whole_bytes)
        except OSError as error:
            raise DiskslaError(f"cannot write {path}: {error.strerror}") from error
        return cls(path, descriptor)

    def add(self, record: SweepHeader | SweepRow) -> None:
        """Add a line. Raises Refusal if it cannot be written."""
        try:
            with os.fdopen(os.dup(self._descriptor), "wb") as file:
                file.write(encode_line(record))
            os.fsync(self._descriptor)
        except OSError as error:
            raise DiskslaError(f"cannot write {self.path}: {error.strerror}") from error

    def __enter__(self) -> Self:
        """Give the journal to a `with` block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        os.close(self._descriptor)
