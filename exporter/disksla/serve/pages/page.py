"""What the pages of the daemon have in common: style, script, header, tables."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from disksla.base.package_files import file_beside
from disksla.base.text import escape_bytes, escape_html, percent_encoded
from disksla.tell.explanation import VERDICT_STYLE
from disksla.tell.html_page import HtmlPage

_STYLE = (file_beside(__file__, "page.css"), VERDICT_STYLE + file_beside(__file__, "charts.css"))
_PAGE = HtmlPage("".join("\n" + each for each in _STYLE), "\n" + file_beside(__file__, "page.js"))
CONTENT_SECURITY_POLICY = f"{_PAGE.policy}; frame-ancestors 'none'"

DASH = "–"  # noqa: RUF001 -- tables use an en dash for an absent value


def table(columns: Iterable[str], rows: Iterable[str]) -> str:
    """Return a table of rows that `table_row` made."""
    headings = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "\n".join(rows)
    return f"<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def table_row(columns: Sequence[str], name: str, cells: Iterable[str]) -> str:
    """Return a row of a table, of which `name` is the first cell; all cells are HTML."""
    rest = "\n".join(
        f'<td data-label="{column}"><div>{cell}</div></td>'
        for column, cell in zip(columns[1:], cells, strict=True)
    )
    return f'<tr><th scope="row">{name}</th>\n{rest}</tr>'


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
