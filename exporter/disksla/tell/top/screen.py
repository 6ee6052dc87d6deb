"""The whole screen as lines: all disks, one disk, or the help; and all disks as plain text."""

from collections import Counter
from collections.abc import Sequence

from disksla.tell.api import DisksDocument, LiveDiskDocument
from disksla.tell.explanation import PROBLEMS, SHOWN_TEXT
from disksla.tell.top.columns import table
from disksla.tell.top.disk_screen import disk_lines, help_lines, who_lines
from disksla.tell.top.line import Line, Look, Span, clean, fit, fit_line, wrap
from disksla.tell.top.view import Place, Size, View, listed, problem_now

_TOP_ROWS = 2
"""Where the numbers come from, and how many disks have problems."""
_SENTENCE_ROWS = 3
_LEAST_DISKS = 5
"""Disks that are shown at least before there are lines for a sentence."""
_LIST_KEYS = "?:help Enter:open w:who Space:freeze /:filter q:quit  sort: t n i b a l"
_OPEN_KEYS = "Esc:back w:who Space:freeze ?:help"


def screen(document: DisksDocument | None, view: View, size: Size, look: Look) -> list[Line]:
    """Return the lines of a terminal of this size: all of them, each of exactly its width.

    `document` is None before the first sample.
    """
    if document is None:
        first = Span(f"disksla top: {look.source}", "title")
        lines: list[Line] = [(first,), (Span("waiting for the first sample"),)]
    elif view.is_list:
        lines = _list(document, view, size, look)
    else:
        lines = _scrolled(document, view, size, look)
    lines = [fit_line(line, size.columns) for line in lines[: size.rows]]
    return lines + [fit_line((), size.columns)] * (size.rows - len(lines))


def place_of(document: DisksDocument | None, view: View, size: Size, look: Look) -> Place:
    """Return what a key moves in."""
    if document is None:
        return Place()
    if view.is_list:
        names = [disk.device for disk in listed(document.disks, view.sort, view.filter)]
        return Place(names, _list_rows(size))
    page = _page(size)
    return Place((), page, max(0, len(_opened(document, view, size, look)) - page))


def current(document: DisksDocument, view: View) -> LiveDiskDocument | None:
    """Return the selected disk, or the first; None if none is listed."""
    disks = listed(document.disks, view.sort, view.filter)
    return next((disk for disk in disks if disk.device == view.selected), (*disks, None)[0])


def _title(document: DisksDocument, look: Look) -> str:
    """Return where the numbers come from."""
    return clean(f"disksla top: {look.source}; host {document.host}")


def _summary(document: DisksDocument, view: View, look: Look) -> Line:
    """Return how many disks have problems, and which are shown in which order."""
    second = [Span(_counts(document.disks), "strong"), Span(f"; sorted by {view.sort}")]
    if view.filter or view.is_typing:
        cursor = "_" if view.is_typing else ""
        second = [Span(f"/{view.filter}{cursor}", "strong"), Span(" (Esc: all); "), *second]
    if view.is_frozen:
        second = [Span(" FROZEN ", "selected"), Span(" Space resumes; "), *second]
    if look.problem:
        second = [Span(f"{look.problem}; ", "strong"), *second]
    return tuple(second)


def block(document: DisksDocument, width: int, look: Look) -> str:
    """Return all disks as `iostat` and `top -b` print them, with sentences on the problems."""
    view = View()
    disks = listed(document.disks, view.sort)
    columns = table(document.disks, width)
    lines = [
        (Span(f"{look.clock(document.timestamp_s)} {_title(document, look)}"),),
        _summary(document, view, look),
        columns.heading(),
        *(columns.row(disk, look, is_selected=False) for disk in disks),
    ]
    bad = [disk for disk in disks if problem_now(disk)]
    text = [clean("".join(span.text for span in line)).rstrip() for line in lines]
    text += [clean(f"{disk.device}: {disk.sentences[0]}") for disk in bad if disk.sentences]
    return "\n".join(text) + "\n"


def _header(document: DisksDocument, view: View, width: int, look: Look) -> list[Line]:
    time = f" {look.clock(document.timestamp_s)}"
    first = fit(_title(document, look), max(0, width - len(time)))
    return [(Span(first, "title"), Span(time, "soft")), _summary(document, view, look)]


def _counts(disks: Sequence[LiveDiskDocument]) -> str:
    count = Counter(problem_now(disk) for disk in disks)
    bad = [f"{count[each]} {SHOWN_TEXT[each].words}" for each in PROBLEMS if count[each]]
    noun = "disk" if len(disks) == 1 else "disks"
    return f"{len(disks)} {noun}: {', '.join(bad) or 'no problem now'}"


def _list(document: DisksDocument, view: View, size: Size, look: Look) -> list[Line]:
    disks = listed(document.disks, view.sort, view.filter)
    chosen = current(document, view)
    index = disks.index(chosen) if chosen is not None else 0
    rows = _list_rows(size)
    first = max(0, min(index - rows // 2, len(disks) - rows))
    columns = table(document.disks, size.columns)
    lines = _header(document, view, size.columns, look)[: max(0, size.rows - 2)]
    if size.rows > 1:
        lines.append(columns.heading())
    lines += [
        columns.row(disk, look, is_selected=disk is chosen) for disk in disks[first : first + rows]
    ]
    if not disks:
        lines.append((Span(_why_empty(document)),))
    below = size.rows - len(lines)
    lines += [()] * (below - _sentence_rows(size) - _key_rows(size))
    if _sentence_rows(size):
        lines += _sentence(chosen, size)
    return [*lines, (Span(_LIST_KEYS, "soft"),)]


def _why_empty(document: DisksDocument) -> str:
    if document.disks:
        return "no disk has this in its name, mount point or claim; Esc shows all"
    return "no disk is monitored; disksla disks shows why"


def _list_rows(size: Size) -> int:
    """Return how many disks are shown."""
    around = min(_TOP_ROWS, max(0, size.rows - 2)) + (size.rows > 1) + _key_rows(size)
    return max(1, size.rows - around - _sentence_rows(size))


def _key_rows(size: Size) -> int:
    return 1 if size.rows > _TOP_ROWS + _LEAST_DISKS else 0


def _sentence_rows(size: Size) -> int:
    enough = size.rows >= _TOP_ROWS + 2 + _LEAST_DISKS + _SENTENCE_ROWS
    return _SENTENCE_ROWS if enough else 0


def _sentence(disk: LiveDiskDocument | None, size: Size) -> list[Line]:
    """Return what the last five minutes of a disk mean."""
    if disk is None:
        return [()] * _SENTENCE_ROWS
    sentences = f"{disk.device}: {' '.join(disk.sentences)}"
    text = wrap(sentences, size.columns, _SENTENCE_ROWS)
    return [*((Span(line),) for line in text), *[()] * (_SENTENCE_ROWS - len(text))]


def _opened(document: DisksDocument, view: View, size: Size, look: Look) -> list[Line]:
    """Return what scrolls: the help, one disk, or who uses it."""
    if view.is_help:
        return help_lines(look, size.columns)
    found = [disk for disk in document.disks if disk.device == view.selected]
    if not found:
        return [(Span(f"{view.selected} is not monitored any more; Esc shows all disks"),)]
    if view.is_who:
        return who_lines(found[0], size.columns)
    return disk_lines(found[0], document.timestamp_s, size.columns, look)


def _page(size: Size) -> int:
    return max(1, size.rows - _TOP_ROWS - 1)


def _scrolled(document: DisksDocument, view: View, size: Size, look: Look) -> list[Line]:
    body, page = _opened(document, view, size, look), _page(size)
    scrolled = min(view.scrolled, max(0, len(body) - page))
    shown = body[scrolled : scrolled + page]
    more = len(body) - scrolled - len(shown)
    keys = f"{more} more lines, arrows:scroll {_OPEN_KEYS}" if more else _OPEN_KEYS
    lines = [*_header(document, view, size.columns, look), *shown]
    return [*lines, *[()] * (size.rows - len(lines) - 1), (Span(keys, "soft"),)]
