"""The journal file of a sweep."""

import os
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.measure.benchmark.sweep_journal import SweepHeader, encode_line
from disksla.measure.benchmark.sweep_journal_file import SweepJournalFile, load_journal
from disksla.measure.benchmark.sweep_matrix import SweepPlan, SweepRow
from support.simulated_host import a_disk

PLAN = SweepPlan(sizes=(4096,), workers=(1,))
HEADER = SweepHeader(disk=a_disk(), plan=PLAN, started_at_s=1.7e9, disksla="0.1")
ROWS = [SweepRow(cell, 0.001, 1000.0, 4096000.0) for cell in PLAN.cells()]


def test_added_rows_are_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with SweepJournalFile.create(path, HEADER) as file:
        for count, row in enumerate(ROWS, start=1):
            file.add(row)
            assert load_journal(path).rows == tuple(ROWS[:count])


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
