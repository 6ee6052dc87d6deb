"""The journal of a sweep: complete, incomplete and invalid ones, and its file."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB
from disksla.measure.benchmark.sweep_journal import (
    SweepJournalFile,
    encode_line,
    load_journal,
    mismatch,
    read_journal,
)
from disksla.measure.benchmark.sweep_matrix import SweepHeader, SweepPlan, SweepRow
from support.simulated_host import a_disk

PLAN = SweepPlan(sizes=(4096, 8192), workers=(1,), runtime_s=1.0)
HEADER = SweepHeader(disk=a_disk(serial="s-1"), plan=PLAN, started_at_s=1.7e9, disksla="0.1")
ROWS = tuple(SweepRow(cell, 0.001, 1000.0, 4096000.0) for cell in PLAN.cells())


def written(*rows: SweepRow) -> bytes:
    return b"".join((encode_line(HEADER), *map(encode_line, rows)))


def test_journal_round_trip() -> None:
    content = written(*ROWS)
    journal = read_journal(content)
    assert (journal.header, journal.rows, journal.whole_bytes) == (HEADER, ROWS, len(content))


@given(st.integers(0, len(written(*ROWS))))
def test_truncated_journal_keeps_whole_lines(length: int) -> None:
    torn = written(*ROWS)[:length]
    whole = torn.count(b"\n")
    if not whole:
        with pytest.raises(DiskslaError, match="line 1"):
            read_journal(torn)
        return
    journal = read_journal(torn)
    assert journal.rows == ROWS[: whole - 1]
    assert torn[: journal.whole_bytes] == written(*journal.rows)


def test_last_result_of_a_cell_counts() -> None:
    again = replace(ROWS[0], iops=2.0)
    assert read_journal(written(ROWS[0], again)).rows == (again,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: not a sweep journal"),
        (b"{}\n", "line 1: not a sweep journal"),
        (written().replace(b'"sweep":1', b'"sweep":2'), "line 1: not a sweep journal"),
        (written().replace(b"vda", b"\xff"), "line 1: not a sweep journal"),
        (written().replace(b"[1]", b"[]"), "line 1: not a sweep journal"),
        (written().replace(b"[1]", b"[1%s]" % (b",1" * 100)), "line 1: not a sweep journal"),
        (written().replace(b"[1]", b"[%d]" % 2**41), "line 1: not a sweep journal"),
        (written(ROWS[0]) + b"{}\n", "line 3: not a cell"),
        (written(ROWS[0]) + b"\xff\n", "line 3: not a cell"),
        (written(ROWS[0]) + b'{"x":' + b"[" * 10_000 + b"\n", "line 3: not a cell"),
        (
            written(replace(ROWS[0], cell=replace(ROWS[0].cell, workers=2))),
            "line 2: the cell is not",
        ),
    ],
)
def test_invalid_line_is_refused_with_its_number(content: bytes, message: str) -> None:
    with pytest.raises(DiskslaError) as refused:
        read_journal(content)
    assert message in str(refused.value)


@given(st.binary())
def test_any_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(DiskslaError):
        read_journal(content)


WITH_FILE = {"directory": "/data", "file_bytes": GIB}


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({}, {"disk": a_disk("vdz", serial="s-1")}, None),  # renamed
        ({}, {"disk": a_disk(serial="s-2")}, "it belongs to another disk (vda with serial s-1"),
        (
            {"disk": a_disk(wwn="w-1")},
            {"disk": a_disk(wwn="w-2")},
            "it belongs to another disk (vda with serial w-1",
        ),
        ({"disk": a_disk()}, {"disk": a_disk("vdb")}, "it belongs to another disk (vda, "),
        ({}, {"disk": replace(HEADER.disk, size_bytes=200 * GIB)}, "another disk"),
        (
            {},
            {"plan": replace(PLAN, runtime_s=2.0, workers=(1, 16))},
            "it has another plan (workers, runtime_s differ); omit those options",
        ),
        ({}, WITH_FILE, "on the device itself, not on a file of 1 GiB in /data;"),
        (WITH_FILE, {}, "GiB in /data, not on the device itself;"),
    ],
)
def test_what_a_journal_must_have_in_common(before: Any, now: Any, message: str | None) -> None:
    found = mismatch(replace(HEADER, **before), replace(HEADER, **now))
    assert found is None if message is None else message in (found or "")


def test_added_rows_are_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with SweepJournalFile.create(path, HEADER) as file:
        for count, row in enumerate(ROWS, start=1):
            file.add(row)
            assert load_journal(path).rows == ROWS[:count]


def test_resumed_journal_drops_an_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with SweepJournalFile.create(path, HEADER) as file:
        file.add(ROWS[0])
    with path.open("ab") as torn:
        torn.write(encode_line(ROWS[1])[:-5])
    with SweepJournalFile.resume(path, load_journal(path)) as file:
        file.add(ROWS[2])
    assert load_journal(path).rows == (ROWS[0], ROWS[2])


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("mine\n")
    with pytest.raises(DiskslaError, match="already exists; resume it with --resume"):
        SweepJournalFile.create(path, HEADER)
    assert path.read_text() == "mine\n"
    with pytest.raises(DiskslaError, match=r"journal: line 1: not a sweep journal"):
        load_journal(path)


def test_unusable_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"cannot create .*absent/journal: No such file"):
        SweepJournalFile.create(tmp_path / "absent" / "journal", HEADER)
    with pytest.raises(DiskslaError, match=r"cannot read .*absent: No such file"):
        load_journal(tmp_path / "absent")
    path = tmp_path / "journal"
    SweepJournalFile.create(path, HEADER).__exit__(None, None, None)
    journal = load_journal(path)
    path.unlink()
    with pytest.raises(DiskslaError, match=r"cannot write .*journal: No such file"):
        SweepJournalFile.resume(path, journal)


def test_another_file_of_that_path_is_not_truncated(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    SweepJournalFile.create(path, HEADER).__exit__(None, None, None)
    journal = load_journal(path)
    content = path.read_bytes() + encode_line(ROWS[0]) + b"and half a line"
    path.write_bytes(content)
    with pytest.raises(DiskslaError, match=r"cannot resume from .*journal: it has changed"):
        SweepJournalFile.resume(path, journal)
    assert path.read_bytes() == content


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: /dev/full is missing")
def test_full_disk_is_an_error() -> None:
    with (
        SweepJournalFile(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY)) as file,
        pytest.raises(DiskslaError, match="cannot write /dev/full: No space left"),
    ):
        file.add(HEADER)
