"""How a terminal shows verdicts and numbers: characters, strips of verdicts and curves."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

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
    return msgspec.convert(_in_ascii(msgspec.to_builtins(document)), DisksDocument)


def _in_ascii(value: Any) -> Any:
    match value:
        case str():
            return value.encode("ascii", "backslashreplace").decode()
        case list() | tuple():
            return [_in_ascii(item) for item in value]
        case dict():
            return {key: _in_ascii(item) for key, item in value.items()}
        case _:
            return value


def strip(verdicts: Sequence[Shown | None], width: int, glyphs: Mapping[Shown, str]) -> list[Span]:
    """Return a strip of this width: the worst verdict of each column, the last on the right."""
    columns = [_worst(group) for group in _grouped(verdicts, width)]
    columns = [*[None] * (width - len(columns)), *columns]
    return [
        Span("".join(_UNKNOWN if each is None else glyphs[each] for each in same), verdict or "")
        for verdict, same in ((key, list(group)) for key, group in groupby(columns))
    ]


def _grouped(verdicts: Sequence[Shown | None], width: int) -> Iterable[Sequence[Shown | None]]:
    """Return at most `width` groups of equal length; the first may be shorter."""
    if not verdicts or width < 1:
        return []
    length = -(-len(verdicts) // width)
    first = len(verdicts) % length
    starts = range(first, len(verdicts), length)
    return [*([verdicts[:first]] if first else []), *(verdicts[i : i + length] for i in starts)]


def _worst(verdicts: Sequence[Shown | None]) -> Shown | None:
    known = [SHOWN.index(verdict) for verdict in verdicts if verdict is not None]
    return SHOWN[max(known)] if known else None


def curve(values: Sequence[float | None], top: float, *, has_blocks: bool) -> str:
    """Return a character for each value, the highest of them at `top` or above."""
    levels = _CURVE if has_blocks else _ASCII_CURVE
    return "".join(_UNKNOWN if value is None else _level(value, top, levels) for value in values)


def _level(value: float, top: float, levels: str) -> str:
    share = min(1.0, value / top) if top > 0 else 0.0
    return levels[min(len(levels) - 1, int(share * len(levels)))]
