"""The runbook of the alerts: always there, of the right version, without the Internet."""

from pathlib import Path

from disksla.web.page import Frame

_FILE = Path(__file__).with_name("runbook.html")
"""Made from docs/runbook.md by `make docs`."""


def runbook_page(frame: Frame) -> str:
    """Return the runbook as HTML; each alert is an anchor."""
    content = _FILE.read_text(encoding="utf-8")
    return frame.page(f"Runbook on {frame.host}", content)
