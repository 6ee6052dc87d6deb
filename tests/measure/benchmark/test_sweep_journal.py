"""The journal of a sweep: complete, incomplete and invalid ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB
from disksla.measure.benchmark.sweep_journal import (
    SweepHeader,
    encode_line,
    mismatch,
    read_journal,
)
from disksla.measure.benchmark.sweep_matrix import SweepPlan, SweepRow
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


def test_renamed_disk_can_be_resumed() -> None:
    assert mismatch(HEADER, replace(HEADER, disk=a_disk("vdz", serial="s-1"))) is None


@pytest.mark.parametrize(
    ("known", "now", "message"),
    [
        ({"serial": "s-1"}, {"serial": "s-2"}, "it belongs to another disk (vda with serial s-1"),
        ({"wwn": "w-1"}, {"wwn": "w-2"}, "it belongs to another disk (vda with serial w-1"),
        ({}, {"name": "vdb"}, "it belongs to another disk (vda, "),
    ],
)
def test_other_disk_is_refused(known: Any, now: Any, message: str) -> None:
    before = replace(HEADER, disk=a_disk(**known))
    assert message in (mismatch(before, replace(HEADER, disk=a_disk(**now))) or "")


def test_resized_disk_is_refused() -> None:
    grown = replace(HEADER.disk, size_bytes=200 * GIB)
    assert "another disk" in (mismatch(HEADER, replace(HEADER, disk=grown)) or "")


def test_other_plan_is_refused_with_its_differences() -> None:
    now = replace(HEADER, plan=replace(PLAN, runtime_s=2.0, workers=(1, 16)))
    assert "it has another plan (workers, runtime_s differ); omit those options" in (
        mismatch(HEADER, now) or ""
    )


def test_other_target_is_refused() -> None:
    now = replace(HEADER, directory="/data", file_bytes=GIB)
    assert "on the device itself, not on a file of 1 GiB in /data;" in (
        mismatch(HEADER, now) or ""
    )
    assert "GiB in /data, not on the device itself;" in (mismatch(now, HEADER) or "")
