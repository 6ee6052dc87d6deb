"""Escaping of characters that a terminal interprets."""

import pytest

from disksla.text import escape_control


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("vdb, 16 GiB\nö 東", "vdb, 16 GiB\nö 東"),
        ("a\x1b[2J\x9b\x07\t\r", r"a\x1b[2J\x9b\x07\t\r"),
        ("\u202eads\udcff\u200b", r"\u202eads\udcff\u200b"),
    ],
)
def test_escape_control_escapes_control_characters(text: str, escaped: str) -> None:
    assert escape_control(text) == escaped
    assert escape_control(escaped) == escaped
