"""Pictures of `disksla top`: what it wrote to a terminal, as SVG."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from support.daemon_process import DISKSLA
from support.terminal import on_terminal

_PATIENCE_S = 20.0
_ANSI = [
    (0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188),
    (17, 168, 205), (229, 229, 229),
]  # fmt: skip
DARK = TerminalTheme((20, 24, 30), (228, 232, 238), _ANSI)
LIGHT = TerminalTheme((255, 255, 255), (28, 36, 48), _ANSI)
"""Ground and text as those of the pages."""
_ASPECT = 0.602
"""Width of a letter of DejaVu Sans Mono, by its height."""
_CELL = (12.04, 24.4)
"""Width and height of a cell in the picture."""
_MARGIN = 16
_SCALE = 0.75
_FORMAT = """<svg viewBox="-{margin} -{margin} {{width}} {{height}}" width="{shown_width}"
height="{shown_height}" style="background: {ground}" xmlns="http://www.w3.org/2000/svg">
<style>.{{unique_id}}-matrix {{{{ font-family: DejaVu Sans Mono, monospace;
font-size: {{char_height}}px; }}}} {{styles}}</style>
<defs>{{lines}}</defs>{{backgrounds}}<g class="{{unique_id}}-matrix">{{matrix}}</g></svg>
"""


class TerminalPicture(NamedTuple):
    """A screen of `disksla top`, after some keys."""

    name: str
    columns: int
    rows: int
    keys: str = ""
    expected: str = "sorted by trouble"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture in pixels."""
        width, height = _whole(self)
        return round(_SCALE * width), round(_SCALE * height)


TERMINAL_PICTURES = (
    TerminalPicture("top-80x24", 80, 24),
    TerminalPicture("top-120x40", 120, 40, "\r", "5 s for each character"),
    TerminalPicture("top-200x50", 200, 50),
)


def screen_of(picture: TerminalPicture, address: str) -> list[str]:
    """Return the lines of `disksla top` on a terminal, with their colours."""
    command: list[str | Path] = [DISKSLA, "top", f"--url=http://{address}"]
    with on_terminal(command, picture.columns, picture.rows) as program:
        assert program.shows("asks the daemon", "credits", within_s=_PATIENCE_S)
        program.type(picture.keys)
        assert program.shows(picture.expected, within_s=_PATIENCE_S)
        program.read(0.3)
        rows = [program.screen.rows[number] for number in range(1, picture.rows + 1)]
        program.type("qq")
        assert program.end(_PATIENCE_S) == 0
        return rows


def svg(picture: TerminalPicture, rows: Sequence[str], theme: TerminalTheme) -> str:
    """Return the lines of a terminal as SVG."""
    console = Console(
        record=True, width=picture.columns, file=io.StringIO(), force_terminal=True,
        color_system="truecolor", highlight=False,
    )  # fmt: skip
    for row in rows:
        console.print(Text.from_ansi(row), soft_wrap=True)
    width, height = _whole(picture)
    shown_width, shown_height = picture.size
    code = _FORMAT.format(
        margin=_MARGIN,
        shown_width=shown_width,
        shown_height=shown_height,
        ground=theme.background_color.hex,
    )
    code = code.replace("{width}", f"{width:g}").replace("{height}", f"{height:g}")
    return console.export_svg(theme=theme, code_format=code, font_aspect_ratio=_ASPECT)


def _whole(picture: TerminalPicture) -> tuple[float, float]:
    """Return the size of the drawing: that of the cells and of the margin around them."""
    return picture.columns * _CELL[0] + 2 * _MARGIN, picture.rows * _CELL[1] + 2 * _MARGIN
