"""Log lines."""

import json
import logging
import sys

import pytest

from disksla.runtime.logs import LineFormatter, LogFormat


def line_of(log_format: LogFormat, message: str, *, failed: bool = False) -> str:
    exception = None
    if failed:
        try:
            int("for a\nreason")
        except ValueError:
            exception = sys.exc_info()
    record = logging.LogRecord("disksla.sampler", logging.WARNING, "", 0, message, (), exception)
    return LineFormatter(log_format).format(record)


def test_logfmt_quotes_what_is_not_one_plain_word() -> None:
    assert line_of("logfmt", "late").endswith(" level=warning component=sampler msg=late")
    assert line_of("logfmt", 'a "b"=c').endswith('msg="a \\"b\\"=c"')
    assert line_of("logfmt", "").endswith('msg=""')


@pytest.mark.parametrize("log_format", ["logfmt", "json"])
def test_an_event_is_one_line(log_format: LogFormat) -> None:
    line = line_of(log_format, "two\nlines", failed=True)
    assert "\n" not in line
    assert "ValueError" in line


def test_json_is_json() -> None:
    event = json.loads(line_of("json", "läte", failed=True))
    assert event["msg"] == "läte"
    assert event["component"] == "sampler"
    assert "reason" in event["traceback"]
