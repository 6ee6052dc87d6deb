"""Text for terminals, shells, metric labels and HTML."""

import html
import re
import shlex
from collections.abc import Sequence


def escape_control(text: str) -> str:
    """Return `text` with every control or unprintable character escaped, except newlines.

    Terminals execute control sequences, and a direction mark would display 'sda' as 'ads'.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else escape_character(letter)
        for letter in text
    )


def escape_character(letter: str) -> str:
    """Return a character as a Python escape in ASCII."""
    return letter.encode("unicode_escape").decode("ascii")


def escape_bytes(text: str) -> str:
    """Return `text` with bytes that are not UTF-8, and direction marks, as backslash escapes.

    Serials and mount points may contain any bytes. Python decodes those that are not UTF-8 to
    lone surrogates, which cannot be encoded again. A direction mark would display what follows it
    backwards.
    """
    if text.isascii():
        return text
    shown = _DIRECTION.sub(lambda found: escape_character(found[0]), text)
    return shown.encode("utf-8", "backslashreplace").decode()


_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Unicode's Bidi_Control characters (UAX 9)."""


LONGEST_LABEL_VALUE = 256
"""In characters. A Prometheus that limits the length of labels would drop the whole scrape."""


def label_value(text: str) -> str:
    """Return text as the value of a label of a metric: as of `escape_bytes`, cut."""
    return escape_bytes(text)[:LONGEST_LABEL_VALUE]


def escape_html(text: str) -> str:
    """Escape text for HTML, and what `escape_bytes` escapes."""
    return html.escape(escape_bytes(text))


def percent_encoded(text: str) -> str:
    """Return text as it is written in the query of a URL (RFC 3986)."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-._~") else _escaped(letter)
        for letter in text
    )


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())


def command_lines(words: Sequence[str], width: int = 80) -> str:
    """Return a command for a shell, in lines of at most `width` columns where its words permit.

    All lines but the last end in a backslash, so that they can be copied together.
    """
    lines = [shlex.quote(words[0])]
    for word in map(shlex.quote, words[1:]):
        if len(lines[-1]) + len(word) + len("  \\") > width:
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)
