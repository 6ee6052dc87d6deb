"""What the pages of the daemon have in common: style, script, header."""

from typing import NamedTuple

from disksla.base.package_files import file_beside
from disksla.base.text import escape_bytes, escape_html, percent_encoded
from disksla.tell.explanation import VERDICT_STYLE
from disksla.tell.page import HtmlPage

_STYLE = (file_beside(__file__, "page.css"), VERDICT_STYLE + file_beside(__file__, "charts.css"))
_PAGE = HtmlPage("".join("\n" + each for each in _STYLE), "\n" + file_beside(__file__, "page.js"))
CONTENT_SECURITY_POLICY = f"{_PAGE.policy}; frame-ancestors 'none'"

DASH = "–"  # noqa: RUF001 -- tables use an en dash for an absent value


class Frame(NamedTuple):
    """What is around the content of each page."""

    host: str
    """Name of the machine."""
    version: str
    telemetry_path: str
    dashboard: str = ""
    """Address of a dashboard in Grafana; empty if none is configured."""

    def page(self, title: str, main: str, device: str = "") -> str:
        """Return a page, of a disk if it is given; `title` is escaped, `main` is HTML."""
        body = f"""<header>
<strong>{escape_html(self.host)}</strong>
<nav aria-label="Pages"><a href="/">Disks</a> <a href="/runbook">Runbook</a>
<a href="{escape_html(self.telemetry_path)}">Metrics</a>{self._grafana(device)}</nav>
<small>disksla {escape_html(self.version)}</small>
<strong id="problem" class="alarm" role="status"></strong>
<output id="values"></output>
</header>
<main>
{main}
</main>"""
        return _PAGE.page(f"{title}: disksla", body)

    def _grafana(self, device: str) -> str:
        """Return a link to the dashboard, where there is one, which selects a disk."""
        if not self.dashboard:
            return ""
        sign = "&" if "?" in self.dashboard else "?"
        selected = f"{sign}var-device={percent_encoded(escape_bytes(device))}" if device else ""
        return f' <a href="{escape_html(self.dashboard + selected)}">Grafana</a>'


def runbook_page(frame: Frame) -> str:
    """Return the runbook as HTML, made from docs/runbook.md by `make docs`.

    Each alert is an anchor.
    """
    content = file_beside(__file__, "runbook.html")
    return frame.page(f"Runbook on {frame.host}", content)
