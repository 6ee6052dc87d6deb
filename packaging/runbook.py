"""Render docs/runbook.md as the part of a page that the daemon serves: `make docs`.

Each heading has its text as an anchor. A link to a file becomes its text, or a link to the page
that the daemon has instead.
"""

import re
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "runbook.md"
SERVED = {"what-it-shows.md": "/"}
"""Pages that the daemon has instead of a file."""


def rendered(markdown: str) -> str:
    """Return Markdown as HTML with anchors, and with links that a reader of the daemon has."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown)
    anchors = {}
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            anchor = _anchor(inline.content)
            anchors[f"#{anchor.lower()}"] = f"#{anchor}"
            heading.attrSet("id", anchor)
    for token in tokens:
        token.children = _without_foreign_links(token.children or [], anchors)
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def _anchor(title: str) -> str:
    """Return the anchor of a heading: the name of an alert as it is."""
    return re.sub(r"[^\w-]", "-", title)


def _without_foreign_links(tokens: list[Token], anchors: Mapping[str, str]) -> list[Token]:
    """Return the parts of a line; links within the page have the anchors of its headings."""
    kept, is_foreign = [], False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href") or "")
            target = SERVED.get(target, target)
            token.attrSet("href", target)
            is_foreign = not target.startswith(("#", "/", "https://"))
            if target.startswith("#"):
                token.attrSet("href", anchors[target])
        if not (is_foreign and token.type in {"link_open", "link_close"}):
            kept.append(token)
        if token.type == "link_close":
            is_foreign = False
    return kept


if __name__ == "__main__":
    sys.stdout.write(rendered(SOURCE.read_text(encoding="utf-8")))
