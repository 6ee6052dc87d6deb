"""The journal of a sweep: a line of JSON for each finished cell, to resume it."""

import contextlib
import os
from pathlib import Path
from typing import Self

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.schema.yaml_file import read_named
from disksla.base.units import MIB
from disksla.kernel.disks import Disk
from disksla.measure.benchmark.sweep_matrix import SweepHeader, SweepRow

LARGEST_BYTES = 64 * MIB
"""Of a journal or a table. A row has 200 bytes, and the largest plan thousands of rows."""


class SweepJournal(msgspec.Struct, frozen=True):
    """The content of a journal."""

    header: SweepHeader
    rows: tuple[SweepRow, ...]
    whole_bytes: int
    """Length up to the end of the last whole line; a killed sweep may leave an incomplete one."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(SweepHeader)
_row_decoder = msgspec.json.Decoder(SweepRow)


def encode_line(record: SweepHeader | SweepRow) -> bytes:
    """Return a record as a line of JSON."""
    return _encoder.encode(record) + b"\n"


def read_journal(content: bytes) -> SweepJournal:
    """Parse a journal; an incomplete last line is ignored.

    Raise DiskslaError with the number of the line that is invalid.
    """
    whole_bytes = content.rfind(b"\n") + 1
    first, *others = content[:whole_bytes].splitlines() or [b""]
    try:
        header = _header_decoder.decode(first)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line 1: not a sweep journal: {error}") from None
    cells = set(header.plan.cells())
    rows: dict[object, SweepRow] = {}
    for number, line in enumerate(others, start=2):
        try:
            row = _row_decoder.decode(line)
        except DECODE_ERRORS as error:
            raise DiskslaError(f"line {number}: not a cell of a sweep: {error}") from None
        if row.cell not in cells:
            raise DiskslaError(f"line {number}: the cell is not in the plan")
        rows[row.cell] = row
    return SweepJournal(header, tuple(rows.values()), whole_bytes)


def mismatch(journal: SweepHeader, now: SweepHeader) -> str | None:
    """Return why a sweep cannot resume from a journal, or None if it can."""
    before, disk = journal.disk, now.disk
    identity = "serial" if before.serial else "WWN" if before.wwn else "name"
    same = {
        "serial": before.serial == disk.serial,
        "WWN": before.wwn == disk.wwn,
        "name": before.name == disk.name,
    }[identity]
    if not same or before.size_bytes != disk.size_bytes:
        return f"it belongs to another disk ({_described(before)}), not to {_described(disk)}"
    if (journal.directory, journal.file_bytes) != (now.directory, now.file_bytes):
        return (
            f"it was measured on {journal.where}, not on {now.where}; where a file is"
            " written is not taken from a journal, so repeat --file and --file-size"
        )
    if journal.plan != now.plan:
        fields = journal.plan.__struct_fields__
        differ = [
            name for name in fields if getattr(journal.plan, name) != getattr(now.plan, name)
        ]
        return f"it has another plan ({', '.join(differ)} differ); omit those options"
    return None


def _described(disk: Disk) -> str:
    name = disk.serial or disk.wwn
    return f"{disk.name}{f' with serial {name}' if name else ''}, {disk.size_bytes} bytes"


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
