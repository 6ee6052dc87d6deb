"""Characters that a terminal obeys."""

import pytest

from disksla.text import escape_control


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("vdb, 16 GiB\nö 東", "vdb, 16 GiB\nö 東"),
        ("a\x1b[2J\x9b\x07\t\r", r"a\x1b[2J\x9b\x07\t\r"),
        ("\u202eads\udcff\u200b", r"\u202eads\udcff\u200b"),
    ],
)
def test_what_a_terminal_obeys_is_written_out(text: str, shown: str) -> None:
    assert escape_control(text) == shown
    assert escape_control(shown) == shown
