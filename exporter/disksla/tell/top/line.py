"""What a terminal shows: styled text of a known width in cells, strips of verdicts and curves."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

import msgspec

from disksla.base.text import escape_control
from disksla.tell.api import DisksDocument
from disksla.tell.explanation import SHOWN, SHOWN_TEXT, Shown

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


LETTERS: Mapping[Shown, str] = {shown: text.letter for shown, text in SHOWN_TEXT.items()}
BLOCKS: Mapping[Shown, str] = {shown: text.block for shown, text in SHOWN_TEXT.items()}
_UNKNOWN = " "
_CURVE = "▁▂▃▄▅▆▇█"
_ASCII_CURVE = "_.:-=+*#"


class Look(NamedTuple):
    """What a terminal can show, and what is said above the disks."""

    source: str
    """Whether the daemon is asked, or this command samples by itself, and why."""
    has_blocks: bool = True
    """The terminal shows block characters."""
    has_colours: bool = True
    utc_offset_s: float = 0.0
    """Of the local time from UTC."""
    problem: str = ""
    """Why what is shown is old, or not complete."""

    @property
    def glyphs(self) -> Mapping[Shown, str]:
        """Characters of the verdicts; letters where their colours are missing."""
        return BLOCKS if self.has_blocks and self.has_colours else LETTERS

    def clock(self, timestamp_s: float) -> str:
        """Return the local time of the day."""
        second = int(timestamp_s + self.utc_offset_s) % 86400
        return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def in_ascii(document: DisksDocument) -> DisksDocument:
    """Return the disks with all letters that are not ASCII as backslash escapes."""

    def escaped(found: re.Match[str]) -> str:
        return found[0].encode("ascii", "backslashreplace").decode().replace("\\", r"\\")

    text = re.sub(r"[^\0-\x7f]+", escaped, msgspec.json.encode(document).decode())
    return msgspec.json.decode(text, type=DisksDocument)


def strip(verdicts: Sequence[Shown | None], width: int, glyphs: Mapping[Shown, str]) -> list[Span]:
    """Return a strip of this width: the worst verdict of each column, the last on the right."""
    length = max(1, -(-len(verdicts) // max(1, width)))
    ends = range(len(verdicts) - (width - 1) * length, len(verdicts) + 1, length)
    columns = [
        max(
            (each for each in verdicts[max(0, end - length) : max(0, end)] if each is not None),
            key=SHOWN.index,
            default=None,
        )
        for end in ends
    ]
    return [
        Span((_UNKNOWN if verdict is None else glyphs[verdict]) * len(list(same)), verdict or "")
        for verdict, same in groupby(columns)
    ]


def curve(values: Sequence[float | None], top: float, *, has_blocks: bool) -> str:
    """Return a character for each value, the highest of them at `top` or above."""
    levels = _CURVE if has_blocks else _ASCII_CURVE
    shares = [value and min(1.0, value / top) if top > 0 else value and 0.0 for value in values]
    most = len(levels) - 1
    return "".join(
        _UNKNOWN if share is None else levels[min(most, int(share * len(levels)))]
        for share in shares
    )
