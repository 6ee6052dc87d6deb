"""Where texts of the configuration become values: one door for each kind of value."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from disksla import units
from disksla.schema.reader import FieldType, close_match

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")


def quantity(parse: Callable[[str], float], expected: str) -> Callable[[str], Any]:
    """Give a parser of positive quantities that says what a bare number lacks."""

    def parse_positive(text: str) -> float:
        if _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' has no unit; expected {expected}")
        value = parse(text)
        if value <= 0:
            raise ValueError(f"'{text}' is nothing; expected {expected}")
        return value

    return parse_positive


def duration(least: str, most: str, example: str) -> FieldType:
    """Give the door of durations from `least` to `most`."""
    expected = f"a duration from {least} to {most}, such as {example}"
    parse_positive = quantity(units.parse_duration_s, expected)

    def parse(text: str) -> float:
        seconds: float = parse_positive(text)
        if not units.parse_duration_s(least) <= seconds <= units.parse_duration_s(most):
            raise ValueError(f"'{text}' is out of bounds; expected {expected}")
        return seconds

    return FieldType(expected, parse)


def size(least: str, most: str, example: str) -> FieldType:
    """Give the door of sizes from `least` to `most`."""
    expected = f"a size from {least} to {most}, such as {example}"
    parse_positive = quantity(units.parse_size_bytes, expected)

    def parse(text: str) -> int:
        size_bytes: int = parse_positive(text)
        if not units.parse_size_bytes(least) <= size_bytes <= units.parse_size_bytes(most):
            raise ValueError(f"'{text}' is out of bounds; expected {expected}")
        return size_bytes

    return FieldType(expected, parse)


def rate(least: int, most: int) -> FieldType:
    """Give the door of requests per second."""
    expected = f"a plain number of requests from {least} to {most}, such as 300"

    def parse(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(text)

    return FieldType(expected, parse)


def percentage(least: float, most: float) -> FieldType:
    """Give the door of shares, which are written in percent."""
    expected = f"a percentage from {least:g}% to {most:g}%, such as 3%"

    def parse(text: str) -> float:
        number = text.removesuffix("%").strip()
        if number == text or not _NUMBER.fullmatch(number) or not least <= float(number) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(number) / 100

    return FieldType(expected, parse)


def choice(*words: str, expected: str = "") -> FieldType:
    """Give the door of one of a few words."""
    expected = expected or f"one of: {', '.join(words)}"

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"found '{text}'{close_match(text, words)}; expected {expected}")
        return text

    return FieldType(expected, parse)


def pattern(expected: str, pattern: str = r"\S(.*\S)?", prefix: str = "") -> FieldType:
    """Give the door of texts that match `pattern` once `prefix`, if there, is taken off."""

    def parse(text: str) -> str:
        short = text.strip().removeprefix(prefix)
        if not re.fullmatch(pattern, short):
            raise ValueError(f"found '{text}'; expected {expected}")
        return short

    return FieldType(expected, parse)


Text = Annotated[str, pattern("a text")]
