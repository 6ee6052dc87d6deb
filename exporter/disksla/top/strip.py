"""Strips of verdicts and curves of numbers, a character for each column of time."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from disksla.top.line import Span
from disksla.verdict import VERDICTS, Verdict

LETTERS: Mapping[Verdict, str] = dict(zip(VERDICTS, ".-+TBS", strict=True))
"""Where there are no blocks, or no colours."""
BLOCKS: Mapping[Verdict, str] = dict(zip(VERDICTS, "▁▂▃▅▆█", strict=True))
"""The worse the verdict, the higher."""
_UNKNOWN = " "
_CURVE = "▁▂▃▄▅▆▇█"
_ASCII_CURVE = "_.:-=+*#"


def strip(
    verdicts: Sequence[Verdict | None], width: int, glyphs: Mapping[Verdict, str]
) -> list[Span]:
    """Return a strip of this width: the worst verdict of each column, the last on the right."""
    columns = [_worst(group) for group in _grouped(verdicts, width)]
    columns = [*[None] * (width - len(columns)), *columns]
    return [
        Span("".join(_UNKNOWN if each is None else glyphs[each] for each in same), verdict or "")
        for verdict, same in ((key, list(group)) for key, group in groupby(columns))
    ]


def _grouped(verdicts: Sequence[Verdict | None], width: int) -> Iterable[Sequence[Verdict | None]]:
    """Return at most `width` groups of equal length; the first may be shorter."""
    if not verdicts or width < 1:
        return []
    length = -(-len(verdicts) // width)
    first = len(verdicts) % length
    starts = range(first, len(verdicts), length)
    return [*([verdicts[:first]] if first else []), *(verdicts[i : i + length] for i in starts)]


def _worst(verdicts: Sequence[Verdict | None]) -> Verdict | None:
    known = [VERDICTS.index(verdict) for verdict in verdicts if verdict is not None]
    return VERDICTS[max(known)] if known else None


def curve(values: Sequence[float | None], top: float, *, has_blocks: bool) -> str:
    """Return a character for each value, the highest of them at `top` or above."""
    levels = _CURVE if has_blocks else _ASCII_CURVE
    return "".join(_UNKNOWN if value is None else _level(value, top, levels) for value in values)


def _level(value: float, top: float, levels: str) -> str:
    share = min(1.0, value / top) if top > 0 else 0.0
    return levels[min(len(levels) - 1, int(share * len(levels)))]
