"""Self-contained HTML pages: nothing is loaded from elsewhere."""

import base64
import hashlib

from disksla.base.package_files import file_beside
from disksla.base.text import escape_html

_STYLE = "\n" + file_beside(__file__, "html_page.css")
REPORT_STYLE = "\n" + file_beside(__file__, "report.css")
"""What the reports for a provider have in common."""


class HtmlPage:
    """The style, the script and the Content-Security-Policy of one kind of page."""

    def __init__(self, style: str, script: str = "") -> None:
        """Append `style` to the common style (html.css); without `script`, pages have none."""
        self._style = f"{_STYLE}{style}"
        self._script = f"<script>{script}</script>\n" if script else ""
        scripts = f"; script-src {_digest(script)}; connect-src 'self'" if script else ""
        self.policy = (
            f"default-src 'none'; style-src {_digest(self._style)}{scripts};"
            " base-uri 'none'; form-action 'none'"
        )
        """Content-Security-Policy that allows only what is in the page, by its hash."""

    def page(self, title: str, body: str) -> str:
        """Return a page; `title` is escaped, `body` is HTML."""
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{self.policy}">
<title>{escape_html(title)}</title>
<style>{self._style}</style>
</head>
<body>
{body}
{self._script}</body>
</html>
"""


def _digest(text: str) -> str:
    """Return the source expression that allows exactly this style or script."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
