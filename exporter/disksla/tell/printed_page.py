"""A page (`page.py`) on a terminal, or as text of some columns."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from disksla.base.console import SafeConsole
from disksla.base.text import escape_control
from disksla.tell.page import (
    DataTable,
    Drawing,
    FactList,
    Heading,
    Items,
    Line,
    PagePart,
    Piece,
    Section,
    Styled,
    Words,
    pieces_of,
)

_COLOURS = {
    "good": "green",
    "bad": "bold red",
    "alarm": "bold red",
    "note": "yellow",
    "strong": "bold",
    "soft": "dim",
}
_GAPS = (3, 2, 1)
"""Columns between those of a table: the first that fits."""
_INDENT = 2
_LEAST_WIDTH = 20
"""Words are not wrapped to less, however long the names beside them are."""
_WIDTH = 80


def print_parts(parts: Iterable[PagePart], console: Console | None = None) -> None:
    """Print parts in the width of the terminal."""
    console = console or SafeConsole()
    for line in _laid_out(parts, console.width):
        console.print(line, soft_wrap=True)


def text_of(parts: Iterable[PagePart], width: int = _WIDTH) -> str:
    """Return parts as text without colours, in lines of `width` columns where words permit."""
    return "".join(f"{line.plain}\n" for line in _laid_out(parts, width))


def _laid_out(parts: Iterable[PagePart], width: int) -> Iterator[Text]:
    """Yield all lines, an empty one between parts that stand apart."""
    before: PagePart | None = None
    for part in _flat(parts):
        is_first = True
        for line in _lines(part, width):
            if is_first and before is not None and _is_apart(before, part):
                yield Text()
            is_first = False
            before = part
            line.rstrip()
            yield line


def _flat(parts: Iterable[PagePart]) -> Iterator[PagePart]:
    for part in parts:
        if not isinstance(part, Section):
            yield part
        elif part.where != "page":
            yield from _flat(part.parts)


def _is_apart(before: PagePart, part: PagePart) -> bool:
    if isinstance(part, Heading):
        return True
    if isinstance(before, Heading) and before.level > 1:
        return False
    return isinstance(before, FactList | DataTable) or isinstance(part, FactList | DataTable)


def _lines(part: PagePart, width: int) -> Iterator[Text]:
    match part:
        case Heading():
            yield from _wrapped(_text(part.words, f"strong {part.style}"), width)
        case Line():
            yield from _wrapped(_text(part.words, part.style), width)
        case Items():
            for item in part.items:
                yield from _beside(Text("- "), [_text(item)], width)
        case FactList():
            yield from _facts(part.facts, width)
        case DataTable() if part.rows:
            yield from _table(part, width)
        case Drawing() if part.text:
            yield _text(part)


def _facts(
    facts: Iterable[tuple[Piece, Words | None]], width: int, indent: str = ""
) -> Iterator[Text]:
    """Yield the lines of each fact beside its name."""
    shown = [(_text(name), _cell_lines(words)) for name, words in facts]
    shown = [(name, lines) for name, lines in shown if lines]
    widest = max((name.cell_len for name, _ in shown), default=0)
    for name, lines in shown:
        if not name.spans:
            name.stylize(_COLOURS["soft"])
        name.pad_right(widest - name.cell_len + _GAPS[0])
        yield from _beside(Text(indent) + name, lines, width)


def _beside(name: Text, lines: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines in a column of their own beside the name of the first."""
    left, indent = name, Text(" " * name.cell_len)
    for line in lines:
        for wrapped in _wrapped(line, max(_LEAST_WIDTH, width - name.cell_len)):
            yield left + wrapped
            left = indent


def _table(table: DataTable, width: int) -> Iterator[Text]:
    """Yield a table without its empty columns, or its rows one by one where it does not fit."""
    if table.caption:
        yield from _wrapped(_text(table.caption, "strong"), width)
    rows = [[Text(", ").join(_cell_lines(cell)) for cell in row] for row in table.rows]
    columns = [
        _column(name, column, is_number=name in table.numbers)
        for name, column in zip(table.columns, zip(*rows, strict=True), strict=True)
        if any(column)
    ]
    widest = sum(lines[0].cell_len for lines in columns)
    gap = next((gap for gap in _GAPS if widest + gap * (len(columns) - 1) <= width), 0)
    if gap:
        yield from (Text(" " * gap).join(row) for row in zip(*columns, strict=True))
        return
    for name, *cells in table.rows:
        yield from _beside(Text(), _cell_lines(name), width)
        yield from _facts([*zip(table.columns[1:], cells, strict=True)], width, " " * _INDENT)


def _column(name: str, cells: Iterable[Text], *, is_number: bool) -> list[Text]:
    """Return a heading and the cells of its column, all of the same width."""
    lines = [Text(name, _COLOURS["strong"]), *cells]
    widest = max(line.cell_len for line in lines)
    for line in lines:
        pad = line.pad_left if is_number else line.pad_right
        pad(widest - line.cell_len)
    return lines


def _cell_lines(words: Words | None) -> list[Text]:
    return [_text(each) for each in pieces_of(words, "terminal")]


def _text(words: Words, style: str = "") -> Text:
    """Return words in their colours; characters that are not shown are escapes."""
    styles, texts = style.split(), []
    for piece in pieces_of(words, "terminal"):
        of_piece = piece.style.split() if isinstance(piece, Styled) else []
        texts.append((escape_control(piece.text).replace("\n", " "), _colours(of_piece)))
        styles += of_piece if "copied" in of_piece else []
    return Text.assemble(*texts, style=_colours(styles), no_wrap="copied" in styles)


def _colours(styles: Iterable[str]) -> str:
    return " ".join(_COLOURS[each] for each in styles if each in _COLOURS)


def _wrapped(text: Text, width: int) -> Iterable[Text]:
    """Return lines of at most `width` columns; longer words are not broken."""
    cuts, start = [], 0
    for word in () if text.no_wrap else re.finditer(r"\S+", text.plain):
        if start < word.start() and cell_len(text.plain[start : word.end()]) > width:
            start = word.start()
            cuts.append(start)
    return text.divide(cuts)
