"""What the screen depends on besides the disks: the terminal, and where the numbers come from."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from disksla.api import DisksDocument
from disksla.top.strip import BLOCKS, LETTERS
from disksla.verdict import Shown


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
