"""The file of a journal."""

import os
from pathlib import Path

import pytest

from disksla.core.journal import Header, encode
from disksla.core.matrix import Plan, Row
from disksla.core.refusal import Refusal
from disksla.runtime.journalfile import JournalFile, load_journal
from machine import a_disk

PLAN = Plan(sizes=(4096,), workers=(1,))
HEADER = Header(disk=a_disk(), plan=PLAN, started_at_s=1.7e9, disksla="0.1")
ROWS = [Row(cell, 0.001, 1000.0, 4096000.0) for cell in PLAN.cells()]


def test_what_is_added_stands_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with JournalFile.make(path, HEADER) as file:
        for count, row in enumerate(ROWS, start=1):
            file.add(row)
            assert load_journal(path).rows == tuple(ROWS[:count])


def test_a_journal_is_gone_on_with_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with JournalFile.make(path, HEADER) as file:
        file.add(ROWS[0])
    with path.open("ab") as torn:
        torn.write(encode(ROWS[1])[:-5])
    with JournalFile.go_on(path, load_journal(path)) as file:
        file.add(ROWS[2])
    assert load_journal(path).rows == (ROWS[0], ROWS[2])


def test_no_other_file_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("mine\n")
    with pytest.raises(Refusal, match="is there already: go on with it by --resume"):
        JournalFile.make(path, HEADER)
    assert path.read_text() == "mine\n"
    with pytest.raises(Refusal, match=r"journal: line 1: not the journal of a sweep"):
        load_journal(path)


def test_what_cannot_be_made_or_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"cannot make .*absent/journal: No such file"):
        JournalFile.make(tmp_path / "absent" / "journal", HEADER)
    with pytest.raises(Refusal, match=r"cannot read .*absent: No such file"):
        load_journal(tmp_path / "absent")
    path = tmp_path / "journal"
    JournalFile.make(path, HEADER).__exit__(None, None, None)
    journal = load_journal(path)
    path.unlink()
    with pytest.raises(Refusal, match=r"cannot write .*journal: No such file"):
        JournalFile.go_on(path, journal)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: there is no /dev/full")
def test_a_full_disk_is_refused() -> None:
    with (
        JournalFile(Path("/dev/full"), os.open("/dev/full", os.O_WRONLY)) as file,
        pytest.raises(Refusal, match="cannot write /dev/full: No space left"),
    ):
        file.add(HEADER)
