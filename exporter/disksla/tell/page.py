"""A page as data, for browsers and terminals: what it says is written once.

A page is a sequence of parts:

    parts = (
        Heading("Disk vdb", level=1),
        Line(("Limits of ", Styled("gp3", "soft"))),
        FactList((("size", "30 GiB"), ("serial", disk.serial))),
        DataTable(("", "read", "write"), (("IOPS", "3000", "3000"),), numbers=("read", "write")),
    )
    html_of(parts)        # goes between <main> and </main>; `HtmlPage` has what is around it
    print_parts(parts)    # of `printed_page`, the only one that loads rich

All texts are escaped. A text without style is a `str`. A tuple has the pieces of a line, but of a
cell and of a fact the lines. Names of facts and columns begin in lower case; browsers show them
with a capital. Styles are classes of the style sheet; `soft`, `good`, `bad`, `alarm`, `note` and
`strong` are colours of terminals too, and what is `copied` is on one line there, however long.
What has `where="page"` is not printed; what has `where="terminal"` is not in the HTML.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from disksla.base.package_files import file_beside
from disksla.base.text import escape_control, escape_html

Where = Literal["both", "page", "terminal"]


class Styled(msgspec.Struct, frozen=True):
    """Words with a style, or a link."""

    text: str
    style: str = ""
    href: str = ""
    tag: str = "span"
    where: Where = "both"


class Drawing(msgspec.Struct, frozen=True):
    """HTML that is drawn by code, SVG for example; it has to escape its names."""

    html: str
    text: str = ""
    """What a terminal shows instead."""


Piece: TypeAlias = str | Styled | Drawing
Words: TypeAlias = Piece | tuple[Piece, ...]


class Heading(msgspec.Struct, frozen=True):
    """A heading; that of the page has level 1."""

    words: Words
    level: int = 2
    style: str = ""
    id: str = ""


class Line(msgspec.Struct, frozen=True):
    """A sentence, or a paragraph."""

    words: Words
    style: str = ""


class Items(msgspec.Struct, frozen=True):
    """A list with bullets; nothing without items."""

    items: Sequence[Words]


class FactList(msgspec.Struct, frozen=True):
    """Names and what is known of them; those without words are left out."""

    facts: Sequence[tuple[Piece, Words | None]]


class DataTable(msgspec.Struct, frozen=True):
    """A table, whose first column has the names of the rows; nothing without rows.

    Phones, and terminals on which it does not fit, show each row as a list of facts.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Words]]
    numbers: Sequence[str] = ()
    """The columns that are aligned at the right."""
    style: str = ""
    caption: Words = ""


class Section(msgspec.Struct, frozen=True):
    """Parts that belong together."""

    parts: Sequence["PagePart"]
    tag: str = "div"
    style: str = ""
    key: str = ""
    """By which the script of the daemon's pages finds it again."""
    summary: str = ""
    """What is shown while it is folded, of a group that can be."""
    where: Where = "both"


PagePart: TypeAlias = Heading | Line | Items | FactList | DataTable | Drawing | Section


def pieces_of(words: Words | None, where: Where) -> list[Styled | Drawing]:
    """Return the pieces that a page or a terminal shows; a text without style is a `Styled`."""
    pieces: list[Styled | Drawing] = []
    for piece in words if isinstance(words, tuple) else (words or "",):
        shown = Styled(piece) if isinstance(piece, str) else piece
        if isinstance(shown, Drawing):
            is_shown = bool(shown.html if where == "page" else shown.text)
        else:
            is_shown = bool(shown.text) and shown.where in {"both", where}
        if is_shown:
            pieces.append(shown)
    return pieces


def html_of(parts: Iterable[PagePart]) -> str:
    """Return parts as HTML."""
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: PagePart) -> str:
    html = ""
    match part:
        case Heading():
            tag = f"h{part.level}"
            html = _element(tag, _pieces(part.words), id=part.id, class_=part.style)
        case Line():
            html = _element("p", _pieces(part.words), class_=part.style)
        case Items() if part.items:
            html = _element("ul", "".join(_element("li", _pieces(each)) for each in part.items))
        case FactList():
            facts = "\n".join(filter(None, (_fact(*each) for each in part.facts)))
            html = _element("dl", f"\n{facts}\n") if facts else ""
        case DataTable() if part.rows:
            html = _table(part)
        case Drawing():
            html = part.html
        case Section() if part.where != "terminal":
            html = _group(part)
    return html


def _group(group: Section) -> str:
    named = {"class_": group.style, "data_key": group.key}
    content = f"\n{html_of(group.parts)}\n"
    if not group.summary:
        return _element(group.tag, content, **named)
    return _element("details", _element("summary", _escaped(group.summary)) + content, **named)


def _fact(name: Piece, words: Words | None) -> str:
    texts = [_piece(each) for each in pieces_of(words, "page")]
    text = texts[0] if len(texts) == 1 else "".join(_element("p", each) for each in texts)
    return text and f"<div><dt>{_capital(_pieces(name))}</dt><dd>{text}</dd></div>"


def _table(table: DataTable) -> str:
    """Return a table; each cell has its heading as `data-label`, which phones show."""
    names = [_capital(name) for name in table.columns]
    numbers = ["number" if name in table.numbers else "" for name in table.columns]
    headings = "".join(
        _element("th", _escaped(name), scope="col", class_=number)
        for name, number in zip(names, numbers, strict=True)
    )
    rows = []
    for name, *cells in table.rows:
        others = "\n".join(
            _element("td", f"<div>{_lines(cell)}</div>", data_label=label, class_=number)
            for label, number, cell in zip(names[1:], numbers[1:], cells, strict=True)
        )
        rows.append(_element("tr", f"{_element('th', _lines(name), scope='row')}\n{others}"))
    caption = _element("caption", _pieces(table.caption)) if table.caption else ""
    body = "\n".join(rows)
    content = f"\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
    return _element("table", caption + content, class_=table.style)


def _lines(words: Words) -> str:
    """Return the lines of a cell, each as an element if there are several."""
    pieces = pieces_of(words, "page")
    return "".join(_piece(each, is_element=len(pieces) > 1) for each in pieces)


def _pieces(words: Words) -> str:
    return "".join(map(_piece, pieces_of(words, "page")))


def _piece(piece: Styled | Drawing, *, is_element: bool = False) -> str:
    if isinstance(piece, Drawing):
        return piece.html
    text = _escaped(piece.text)
    if piece.href:
        return _element("a", text, href=piece.href, class_=piece.style)
    if piece.style or piece.tag != "span" or is_element:
        return _element(piece.tag, text, class_=piece.style)
    return text


def _element(tag: str, content: str, **attributes: str) -> str:
    """Return an element; attributes without value are left out, `data_key` is `data-key`."""
    named = "".join(
        f' {name.strip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value
    )
    return f"<{tag}{named}>{content}</{tag}>"


def _escaped(text: str) -> str:
    """Return text for HTML; characters that are not shown, or change directions, are escapes."""
    return escape_html(escape_control(text))


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


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
