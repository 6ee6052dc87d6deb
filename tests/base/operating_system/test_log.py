"""Log lines: logfmt, JSON, the journal, and exceptions that end a thread."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.log import LineFormatter, LogFormat, fields, is_journal

THREAD_AND_PROCESS_FAIL = """
import threading
from disksla.base.operating_system.log import set_up_logging
set_up_logging("info", "logfmt")
thread = threading.Thread(target=lambda: 1 / 0, name="sampler")
thread.start()
thread.join()
int("for a reason")
"""


def line_of(
    log_format: LogFormat,
    message: str,
    *,
    failed: bool = False,
    journal: bool = False,
    level: int = logging.WARNING,
) -> str:
    exception = None
    if failed:
        try:
            int("for a\nreason")
        except ValueError:
            exception = sys.exc_info()
    record = logging.LogRecord("disksla.sampler", level, "", 0, message, (), exception)
    return LineFormatter(log_format, journal=journal).format(record)


def test_logfmt_quotes_values_that_are_not_plain_words() -> None:
    assert line_of("logfmt", "late").endswith(" level=warning component=sampler msg=late")
    assert line_of("logfmt", 'a "b"=c').endswith('msg="a \\"b\\"=c"')
    assert line_of("logfmt", "").endswith('msg=""')


def event_line(log_format: LogFormat, **values: object) -> str:
    record = logging.makeLogRecord(
        {"name": "disksla.probe", "levelno": 30, "msg": "probe failed", **fields(**values)}
    )
    return LineFormatter(log_format, journal=True).format(record)


def test_fields_follow_the_message_in_logfmt() -> None:
    line = event_line("logfmt", device="vdb", tries=2, err=OSError(5, "I/O error"), kind=None)
    assert line.endswith('msg="probe failed" device=vdb tries=2 err="[Errno 5] I/O error"')


def test_fields_are_keys_in_json() -> None:
    line = event_line("json", device="vdb", tries=2, err=OSError(5, "I/O error"))
    event = json.loads(line.partition(">")[2])
    assert event["device"] == "vdb"
    assert event["tries"] == 2
    assert event["err"] == "[Errno 5] I/O error"


@given(
    st.sampled_from(["logfmt", "json"]),
    st.dictionaries(st.sampled_from(["device", "kind", "err"]), st.text()),
)
def test_fields_never_break_a_line(log_format: LogFormat, values: dict[str, str]) -> None:
    line = event_line(log_format, **values)
    assert len(line.splitlines()) == 1
    assert line.isprintable()


@pytest.mark.parametrize("log_format", ["logfmt", "json"])
def test_traceback_stays_on_one_line(log_format: LogFormat) -> None:
    line = line_of(log_format, "two\nlines", failed=True)
    assert "\n" not in line
    assert "ValueError" in line


def test_journal_line_has_severity_and_no_time() -> None:
    assert line_of("logfmt", "late", journal=True) == "<4>level=warning component=sampler msg=late"
    line = line_of("json", "two\nlines", failed=True, journal=True)
    assert line.startswith("<4>{")
    assert "\n" not in line
    assert list(json.loads(line[3:])) == ["level", "component", "msg", "traceback"]


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (logging.CRITICAL, 2),
        (logging.ERROR, 3),
        (logging.WARNING, 4),
        (logging.INFO, 6),
        (logging.DEBUG, 7),
        (logging.DEBUG - 1, 7),
    ],
)
def test_severity_matches_syslog(level: int, severity: int) -> None:
    assert line_of("logfmt", "x", journal=True, level=level).startswith(f"<{severity}>")


def test_is_journal_compares_device_and_inode(tmp_path: Path) -> None:
    with (tmp_path / "one").open("w") as one, (tmp_path / "other").open("w") as other:
        status = os.fstat(one.fileno())
        environment = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert is_journal(one, environment)
        assert not is_journal(other, environment)
        assert not is_journal(one, {})
    assert not is_journal(one, environment)


def test_uncaught_exceptions_are_logged_on_one_line() -> None:
    command = [sys.executable, "-c", THREAD_AND_PROCESS_FAIL]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    thread_line, process_line = ended.stderr.splitlines()
    assert 'msg="thread ended by a bug of disksla, please report it"' in thread_line
    assert "thread=sampler" in thread_line
    assert "ZeroDivisionError" in thread_line
    assert "level=critical" in process_line
    assert "ValueError" in process_line
