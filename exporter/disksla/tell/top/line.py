"""Lines of a terminal: styled text of a known width in cells."""

import textwrap
from itertools import accumulate
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

from disksla.base.text import escape_control
from disksla.tell.explanation import Shown

Style = Literal["", "strong", "soft", "title", "heading", "selected"] | Shown
"""What a text is; the style of a verdict is its colour."""
_LEAST_WIDTH = 4
_CUT = "~"
"""Ends a text that does not fit."""


class Span(NamedTuple):
    """Text of one style; a verdict as a label is on a ground of its colour."""

    text: str
    style: Style = ""
    is_label: bool = False


Line = tuple[Span, ...]


def clean(text: str) -> str:
    """Return text in which a terminal finds nothing to execute, on one line."""
    return escape_control(text).replace("\n", "\\n")


def cells(text: str) -> int:
    """Return how many cells of a terminal a clean text takes at most.

    Combining marks count as one, because some terminals show them in a cell of their own.
    """
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(letter: str) -> int:
    return 2 if east_asian_width(letter) in {"W", "F"} else 1


def fit(text: str, width: int, *, is_number: bool = False) -> str:
    """Return a clean text of exactly this width: filled with blanks, or cut off.

    Numbers are on the right.
    """
    text = clean(text)
    blanks = " " * (width - cells(text))
    if cells(text) > width:
        text = _beginning(text, width - 1) + _CUT if width else ""
        blanks = " " * (width - cells(text))
    return blanks + text if is_number else text + blanks


def _beginning(text: str, width: int) -> str:
    """Return as much of a text as fits."""
    ends = accumulate(map(_cells_of, text))
    return text[: sum(end <= width for end in ends)]


def fit_line(line: Line, width: int) -> Line:
    """Return a line of exactly this width."""
    fitted: list[Span] = []
    left = width
    for span in line:
        taken = min(cells(clean(span.text)), left)
        fitted.append(span._replace(text=fit(span.text, taken)))
        left -= taken
    last = fitted[-1].style if fitted else ""
    return (*fitted, Span(" " * left, "selected" if last == "selected" else ""))


def wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Return a text as lines that fit into this width, if it is not tiny; at most so many."""
    text = clean(text)
    letters = width if cells(text) == len(text) else width // 2  # some take two cells
    return textwrap.wrap(text, max(_LEAST_WIDTH, letters), max_lines=most, placeholder=" ...")
