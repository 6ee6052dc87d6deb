"""Log lines: one event a line, as logfmt or JSON, on standard error."""

import json
import logging
import sys
from typing import Literal

LogFormat = Literal["logfmt", "json"]


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Send log lines of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(log_format))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class LineFormatter(logging.Formatter):
    """Time, level, component and message, and the traceback where there is one."""

    def __init__(self, log_format: LogFormat) -> None:
        """Take the format of lines."""
        super().__init__()
        self._log_format = log_format

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        event = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "component": record.name.removeprefix("disksla."),
            "msg": record.getMessage(),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        if self._log_format == "json":
            return json.dumps(event)
        return " ".join(f"{key}={_logfmt(value)}" for key, value in event.items())


def _logfmt(value: str) -> str:
    """Quote a value as logfmt wants it: as JSON, where it is not one plain word."""
    plain = value.isprintable() and not any(mark in value for mark in ' ="\\')
    return value if plain and value else json.dumps(value)
