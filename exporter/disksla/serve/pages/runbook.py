"""The runbook of the alerts: always there, of the right version, without the Internet."""

from disksla.base.package_files import file_beside
from disksla.serve.pages.page import Frame


def runbook_page(frame: Frame) -> str:
    """Return the runbook as HTML, made from docs/runbook.md by `make docs`.

    Each alert is an anchor.
    """
    content = file_beside(__file__, "runbook.html")
    return frame.page(f"Runbook on {frame.host}", content)
