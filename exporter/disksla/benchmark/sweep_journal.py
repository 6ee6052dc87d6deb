"""The journal of a sweep: each finished cell as a line of JSON, so that it can be gone on with."""

from typing import Literal

import msgspec

from disksla.benchmark.sweep_matrix import SweepPlan, SweepRow
from disksla.disks import Disk
from disksla.errors import DECODE_ERRORS, DiskslaError


class SweepHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line: what is measured, and on which disk."""

    sweep: Literal[1] = 1
    """Number of the format."""
    disk: Disk
    directory: str | None = None
    """Where the test file is; None where the device itself is read."""
    file_bytes: int | None = None
    """Size of the test file."""
    plan: SweepPlan
    started_at_s: float
    """Wall time."""
    disksla: str
    """Version that began it."""


class SweepJournal(msgspec.Struct, frozen=True):
    """What a journal holds."""

    header: SweepHeader
    rows: tuple[SweepRow, ...]
    whole_bytes: int
    """Length up to the end of the last whole line: a program that was killed may leave half."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(SweepHeader)
_row_decoder = msgspec.json.Decoder(SweepRow)


def encode_line(record: SweepHeader | SweepRow) -> bytes:
    """Write one line."""
    return _encoder.encode(record) + b"\n"


def read_journal(content: bytes) -> SweepJournal:
    """Read a whole journal; what stands behind its last end of line is left out.

    Raises Refusal with the number of the line that is wrong.
    """
    whole_bytes = content.rfind(b"\n") + 1
    first, *others = content[:whole_bytes].splitlines() or [b""]
    try:
        header = _header_decoder.decode(first)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line 1: not the journal of a sweep: {error}") from None
    cells = set(header.plan.cells())
    rows: dict[object, SweepRow] = {}
    for number, line in enumerate(others, start=2):
        try:
            row = _row_decoder.decode(line)
        except DECODE_ERRORS as error:
            raise DiskslaError(f"line {number}: not a cell of a sweep: {error}") from None
        if row.cell not in cells:
            raise DiskslaError(f"line {number}: a cell that the plan does not have")
        rows[row.cell] = row
    return SweepJournal(header, tuple(rows.values()), whole_bytes)


def mismatch(journal: SweepHeader, now: SweepHeader) -> str | None:
    """Say why a journal cannot be gone on with, or None if it can."""
    before, disk = journal.disk, now.disk
    known = "serial" if before.serial else "WWN" if before.wwn else "name"
    same = {
        "serial": before.serial == disk.serial,
        "WWN": before.wwn == disk.wwn,
        "name": before.name == disk.name,
    }[known]
    if not same or before.size_bytes != disk.size_bytes:
        return f"it is of another disk ({_described(before)}), not of {_described(disk)}"
    if journal.plan != now.plan:
        fields = journal.plan.__struct_fields__
        differ = [
            name for name in fields if getattr(journal.plan, name) != getattr(now.plan, name)
        ]
        return f"it has another plan ({', '.join(differ)} differ): leave those options out"
    if (journal.directory, journal.file_bytes) != (now.directory, now.file_bytes):
        where = journal.directory or "the device itself"
        return f"it was measured on {where}, not on {now.directory or 'the device itself'}"
    return None


def _described(disk: Disk) -> str:
    name = disk.serial or disk.wwn
    return f"{disk.name}{f' with serial {name}' if name else ''}, {disk.size_bytes} bytes"
