"""Self-contained HTML pages: nothing is loaded from elsewhere."""

import base64
import hashlib
import html

from disksla.text import escape_bytes

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #d8dde4;
  --ground: #f6f7f9; --sheet: #ffffff; --link: #0b5cad; --good: #1d7a46; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #333c48;
  --ground: #14181e; --sheet: #1c222a; --link: #7db8f5; --good: #4fc481; --bad: #ff8a80; } }
@media (forced-colors: active) { :root { --ink: CanvasText; --soft: CanvasText; --line: GrayText;
  --ground: Canvas; --sheet: Canvas; --link: LinkText; --good: CanvasText; --bad: CanvasText; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1.25rem; background: var(--ground);
  color: var(--ink); font: 0.9375rem/1.45 system-ui, sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
h1 { font-size: 1.375rem; margin: 0; }
h2 { font-size: 1.0625rem; margin: 1.75rem 0 0.5rem; }
p { margin: 0.25rem 0; }
pre { white-space: pre-wrap; }
.soft { color: var(--soft); font-weight: normal; font-size: 0.8125rem; }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb;
  --ground: #fff; --sheet: #fff; --link: #000; --good: #1d7a46; --bad: #b3261e; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; font-size: 9.5pt; }
  tr, figure, svg, pre { break-inside: avoid; }
  h1, h2 { break-after: avoid; } }
"""


class HtmlPage:
    """The style, the script and the Content-Security-Policy of one kind of page."""

    def __init__(self, style: str, script: str = "") -> None:
        """Append `style` to the common style; without `script`, pages have none."""
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


def escape_html(text: str) -> str:
    """Escape text for HTML; bytes that are not UTF-8 become backslash escapes."""
    return html.escape(escape_bytes(text))
