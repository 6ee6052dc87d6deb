"""Format of the journal of a sweep: a line of JSON for each finished cell, to resume it."""

from typing import Literal

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.units import format_size
from disksla.kernel.disks import Disk
from disksla.measure.benchmark.sweep_matrix import SweepPlan, SweepRow


class SweepHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line: the disk and the plan."""

    sweep: Literal[1] = 1
    """Version of the format."""
    disk: Disk
    directory: str | None = None
    """Directory of the scratch file; None if the device itself is read."""
    file_bytes: int | None = None
    """Size of the scratch file."""
    plan: SweepPlan
    started_at_s: float
    """Unix time."""
    disksla: str
    """Version of disksla that started it."""


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
            f"it was measured on {_target(journal)}, not on {_target(now)}; where a file is"
            " written is not taken from a journal, so repeat --file and --file-size"
        )
    if journal.plan != now.plan:
        fields = journal.plan.__struct_fields__
        differ = [
            name for name in fields if getattr(journal.plan, name) != getattr(now.plan, name)
        ]
        return f"it has another plan ({', '.join(differ)} differ); omit those options"
    return None


def _target(header: SweepHeader) -> str:
    if header.directory is None or header.file_bytes is None:
        return "the device itself"
    return f"a file of {format_size(header.file_bytes)} in {header.directory}"


def _described(disk: Disk) -> str:
    name = disk.serial or disk.wwn
    return f"{disk.name}{f' with serial {name}' if name else ''}, {disk.size_bytes} bytes"
