"""Verification reports in the state directory."""

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disksla.measure.verification.report import encode_report
from disksla.measure.verification.store import ReportStore, file_name, save_report
from support.log_events import events
from support.reports import a_report, a_result

PASSED = a_report(a_result())
FAILED = a_report(a_result(verdict="fail", ratio=0.7))
KEY = "serial:vol-1"


def test_saved_report_is_read_again(tmp_path: Path) -> None:
    store = ReportStore(tmp_path)
    store.read()
    assert store.by_key == {}
    assert save_report(tmp_path, PASSED) is None
    [saved] = tmp_path.iterdir()
    assert saved.name == "verification-serial:vol-1.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o644
    store.read()
    assert store.by_key == {KEY: PASSED}
    save_report(tmp_path, FAILED)
    store.read()
    assert store.by_key == {KEY: FAILED}
    saved.unlink()
    store.read()
    assert store.by_key == {}
    assert (store.errors, store.success) == (0, True)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (a_report(a_result(), key=None), "no serial and no WWN"),
        (a_report(), "not valid, or not complete"),
        (a_report(a_result(verdict="unmeasured")), "not valid, or not complete"),
    ],
)
def test_invalid_report_is_not_saved(tmp_path: Path, report: object, reason: str) -> None:
    assert reason in (save_report(tmp_path, report) or "")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_missing_directory_is_reported(tmp_path: Path) -> None:
    assert "No such file or directory" in (save_report(tmp_path / "none", PASSED) or "")
    store = ReportStore(tmp_path / "none")
    store.read()
    assert (store.by_key, store.success) == ({}, True)


def test_damaged_file_is_moved_aside_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    save_report(tmp_path, PASSED)
    other = tmp_path / file_name("serial:vol-2")
    other.write_bytes(encode_report(PASSED).replace(b'"kept"', b'"broken"'))
    store = ReportStore(tmp_path)
    for _ in range(3):
        store.read()
    assert store.by_key == {KEY: PASSED}
    assert store.errors == 1
    [event] = events(caplog)
    assert (event.message, event.fields["file"]) == ("state file problem", other)
    assert not other.exists()
    [aside] = tmp_path.glob("*.damaged-*")
    assert aside.name.startswith(other.name)


@given(st.text(), st.text())
@example("a" * 500, "a" * 501)
def test_any_key_gives_a_safe_file_name(key: str, other: str) -> None:
    name = file_name(key)
    assert len(name) < 200
    assert "/" not in name
    assert name.isascii()
    assert (file_name(other) == name) == (other == key)
