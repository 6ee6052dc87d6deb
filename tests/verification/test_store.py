"""Accounts of tests in the state directory."""

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.verification.report import encode_report
from disksla.verification.store import ReportStore, file_name, save_report
from support.log_events import events
from support.reports import a_line, an_account

KEPT = an_account(a_line())
BROKEN = an_account(a_line(verdict="fail", ratio=0.7))
KEY = "serial:vol-1"


def test_what_is_saved_is_read_by_whoever_runs_the_daemon(tmp_path: Path) -> None:
    files = ReportStore(tmp_path)
    files.read()
    assert files.by_key == {}
    assert save_report(tmp_path, KEPT) is None
    [saved] = tmp_path.iterdir()
    assert saved.name == "verification-serial:vol-1.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o644
    files.read()
    assert files.by_key == {KEY: KEPT}
    save_report(tmp_path, BROKEN)
    files.read()
    assert files.by_key == {KEY: BROKEN}
    saved.unlink()
    files.read()
    assert files.by_key == {}
    assert (files.errors, files.success) == (0, True)


@pytest.mark.parametrize(
    ("account", "why"),
    [
        (an_account(a_line(), key=None), "no serial and no WWN"),
        (an_account(), "not valid, or not complete"),
        (an_account(a_line(verdict="unmeasured")), "not valid, or not complete"),
    ],
)
def test_what_proves_nothing_is_not_left(tmp_path: Path, account: object, why: str) -> None:
    assert why in (save_report(tmp_path, account) or "")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert "No such file or directory" in (save_report(tmp_path / "none", KEPT) or "")
    files = ReportStore(tmp_path / "none")
    files.read()
    assert (files.by_key, files.success) == ({}, True)


def test_a_damaged_file_is_set_aside_with_one_message_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    save_report(tmp_path, KEPT)
    other = tmp_path / file_name("serial:vol-2")
    other.write_bytes(encode_report(KEPT).replace(b'"kept"', b'"broken"'))
    files = ReportStore(tmp_path)
    for _ in range(3):
        files.read()
    assert files.by_key == {KEY: KEPT}
    assert files.errors == 1
    [event] = events(caplog)
    assert (event.message, event.fields["file"]) == ("state file problem", other)
    assert not other.exists()
    [aside] = tmp_path.glob("*.damaged-*")
    assert aside.name.startswith(other.name)


@given(st.text())
def test_a_disk_may_be_called_anything(key: str) -> None:
    name = file_name(key)
    assert len(name) < 200
    assert "/" not in name
    assert name.isascii()


def test_different_disks_have_different_files() -> None:
    assert len({file_name(key) for key in ("a", "a" * 500, "a" * 501, "b" * 500)}) == 4
