"""Log records as events, for assertions."""

from typing import Any, NamedTuple

import pytest


class Event(NamedTuple):
    """One log record."""

    level: str
    message: str
    fields: dict[str, Any]


def events(caplog: pytest.LogCaptureFixture) -> list[Event]:
    """Return the captured events in order."""
    return [
        Event(record.levelname.lower(), record.getMessage(), getattr(record, "fields", {}))
        for record in caplog.records
    ]
