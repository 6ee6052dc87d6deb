"""How a terminal shows verdicts and numbers: characters, strips of verdicts and curves."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from disksla.tell.api import DisksDocument
from disksla.tell.explanation import SHOWN, SHOWN_TEXT, Shown
from disksla.tell.top.line import Span

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
