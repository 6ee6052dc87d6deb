"""Structured log lines: one event per line with its fields, as logfmt or JSON, on stderr.

`log.warning("probe failed", extra=fields(device="vdb", err=error))` becomes
`time=... level=warning component=probe msg="probe failed" device=vdb err="..."`. The message names
the event and never changes; what differs is in the fields.

The systemd journal adds the time and stores the severity as a field, so lines for it have no time
and begin with the severity in the form of sd-daemon(3).
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, TextIO

from disksla.base.errors import DiskslaError

LogFormat = Literal["logfmt", "json"]

log = logging.getLogger("disksla")

_BUG = "thread ended by a bug of disksla, please report it"
_SEVERITIES = {  # levels of syslog(3)
    logging.CRITICAL: 2,
    logging.ERROR: 3,
    logging.WARNING: 4,
    logging.INFO: 6,
    logging.DEBUG: 7,
}


def fields(**values: object) -> dict[str, dict[str, object]]:
    """Return the `extra` of a log call; None values are left out of the line."""
    return {"fields": {name: value for name, value in values.items() if value is not None}}


def traceback_of(error: Exception) -> Exception | None:
    """Return the `exc_info` of a log call: an error that nobody expects is a bug of disksla."""
    return None if isinstance(error, OSError | DiskslaError) else error


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Send log lines of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(log_format, journal=is_journal(sys.stderr, os.environ)))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    sys.excepthook = _log_process_end
    threading.excepthook = _log_thread_end


def is_journal(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether the systemd journal reads a stream.

    $JOURNAL_STREAM has the device and inode of the stream that systemd connected to the journal.
    A stream that was redirected since, or an inherited variable, does not match.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or without a descriptor
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def error_lines(text: str) -> str:
    """Return text for standard error, with the severity of an error if the journal reads it."""
    if not is_journal(sys.stderr, os.environ):
        return text
    return "\n".join(_with_severity(line, logging.ERROR) for line in text.split("\n"))


class LineFormatter(logging.Formatter):
    """Formats a record as one line: time, level, component, message, fields and traceback."""

    def __init__(self, log_format: LogFormat, *, journal: bool = False) -> None:
        """Set the format; lines for the journal begin with the severity and have no time."""
        super().__init__()
        self._log_format = log_format
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
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


def _log_process_end(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    log.critical(_BUG, extra=fields(thread="main"), exc_info=(kind, error, traceback))


def _log_thread_end(end: threading.ExceptHookArgs) -> None:
    log.critical(
        _BUG,
        extra=fields(thread=end.thread.name if end.thread is not None else "unknown"),
        exc_info=(end.exc_type, end.exc_value or end.exc_type(), end.exc_traceback),
    )


def _with_severity(line: str, level: int) -> str:
    severity = next((number for least, number in _SEVERITIES.items() if level >= least), 7)
    return f"<{severity}>{line}"


def _logfmt(value: str) -> str:
    """Return a value of logfmt: quoted as JSON unless it is one plain word."""
    is_plain = value.isprintable() and not any(mark in value for mark in ' ="\\')
    return value if is_plain and value else json.dumps(value)
