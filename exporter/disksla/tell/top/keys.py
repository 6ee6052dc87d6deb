"""Keys from the bytes that a terminal sends."""

import codecs
import re
from typing import NamedTuple

_ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
_LONGEST = 32
"""Bytes of a sequence; a longer one is none."""
_SEQUENCES = {
    **{f"\x1b{kind}{letter}": key for kind in "[O" for letter, key in
       (("A", "up"), ("B", "down"), ("H", "home"), ("F", "end"))},
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[1~": "home",
    "\x1b[7~": "home",
    "\x1b[4~": "end",
    "\x1b[8~": "end",
}  # fmt: skip
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    " ": "space",
    "\x7f": "backspace",
    "\b": "backspace",
    "\f": "redraw",
}


class Keys(NamedTuple):
    """What was read and is not a key yet: the beginning of a sequence, or of a letter."""

    pending: bytes = b""

    def read(self, data: bytes) -> tuple["Keys", list[str]]:
        """Return what remains, and the keys of the bytes that were read."""
        arrived = self.pending + data
        text, length = codecs.utf_8_decode(arrived, "replace", False)  # noqa: FBT003 -- C
        rest = arrived[length:]
        keys: list[str] = []
        while text:
            unfinished = _UNFINISHED.fullmatch(text)
            if unfinished and len(text) < _LONGEST:
                return Keys(text.encode() + rest), keys
            length, key = _first(text)
            keys += [key] if key else []
            text = text[length:]
        return Keys(rest), keys

    def ended(self) -> list[str]:
        """Return the keys of what remains if nothing follows: Esc alone."""
        return ["escape"] if self.pending.startswith(_ESCAPE.encode()) else []


def _first(text: str) -> tuple[int, str]:
    """Return the length and the name of the first key; without a name if it means nothing."""
    sequence = _SEQUENCE.match(text)
    if sequence:
        return sequence.end(), _SEQUENCES.get(sequence.group(), "")
    if text[0] == _ESCAPE:
        return 1, "escape"
    key = _CONTROLS.get(text[0], text[0])
    return 1, key if key.isprintable() else ""
