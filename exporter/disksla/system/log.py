"""Structured log lines: one event per line with its fields, as logfmt or JSON, on stderr.

`log.warning("probe failed", extra=fields(device="vdb", err=error))` becomes
`time=... level=warning component=probe msg="probe failed" device=vdb err="..."`. The message names
the event and never changes; what differs is in the fields.

The journal of systemd adds the time and keeps the severity apart, so lines for it have no time
and begin with the severity (sd-daemon(3)).
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, TextIO

LogFormat = Literal["logfmt", "json"]

log = logging.getLogger("disksla")

RESERVED_FIELDS = ("time", "level", "component", "msg", "traceback")

_BUG = "thread ended by a bug of disksla, please report it"
_SEVERITIES = {  # of syslog(3)
    logging.CRITICAL: 2,
    logging.ERROR: 3,
    logging.WARNING: 4,
    logging.INFO: 6,
    logging.DEBUG: 7,
}


def fields(**values: object) -> dict[str, dict[str, object]]:
    """Return the `extra` of a log call; None values are left out of the line."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Send log lines of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(log_format, journal=is_journal(sys.stderr, os.environ)))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    sys.excepthook = _log_end_of_process
    threading.excepthook = _log_end_of_thread


def is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Tell whether the journal reads a stream: $JOURNAL_STREAM names the one it made.

    What was redirected since, or inherited by chance, is another.
    """
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or no file at all
        return False
    return environment.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def error_lines(words: str) -> str:
    """Give words for standard error, of which the journal is told that they are an error."""
    if not is_journal(sys.stderr, os.environ):
        return words
    return "\n".join(_with_severity(line, logging.ERROR) for line in words.split("\n"))


class LineFormatter(logging.Formatter):
    """Time, level, component and message, and the traceback where there is one."""

    def __init__(self, log_format: LogFormat, *, journal: bool = False) -> None:
        """Take the format of lines, and whether they are for the journal."""
        super().__init__()
        self._log_format = log_format
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        event: dict[str, object] = {}
        if not self._journal:
            event["time"] = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        event |= {
            "level": record.levelname.lower(),
            "component": record.name.removeprefix("disksla."),
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        if self._log_format == "json":
            line = json.dumps(event, default=str)
        else:
            line = " ".join(f"{key}={_logfmt(str(value))}" for key, value in event.items())
        return _with_severity(line, record.levelno) if self._journal else line


def _log_end_of_process(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    log.critical(_BUG, extra=fields(thread="main"), exc_info=(kind, error, trace))


def _log_end_of_thread(end: threading.ExceptHookArgs) -> None:
    log.critical(
        _BUG,
        extra=fields(thread=end.thread.name if end.thread is not None else "unknown"),
        exc_info=(end.exc_type, end.exc_value or end.exc_type(), end.exc_traceback),
    )


def _with_severity(line: str, level: int) -> str:
    severity = next((number for at, number in _SEVERITIES.items() if level >= at), 7)
    return f"<{severity}>{line}"


def _logfmt(value: str) -> str:
    """Quote a value as logfmt wants it: as JSON, where it is not one plain word."""
    plain = value.isprintable() and not any(mark in value for mark in ' ="\\')
    return value if plain and value else json.dumps(value)
