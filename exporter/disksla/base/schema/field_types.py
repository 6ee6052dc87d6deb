"""Field types: how the texts of a file are parsed to numbers, words and dates."""

import datetime as dt
import re
from collections.abc import Callable
from typing import Annotated

from disksla.base import units
from disksla.base.schema.shape import FieldType

_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)
_LONGEST_NOTE = 5000


def _quantity(
    parse: Callable[[str], float],
    expected: str,
    bounds: tuple[str, str] | None = None,
    *,
    needs_unit: bool = False,
) -> FieldType:
    """Return the field type of quantities above zero that reports a missing unit."""

    def parse_positive(text: str) -> float:
        if needs_unit and _NUMBER.fullmatch(text):
            raise ValueError(f"'{text}' has no unit; expected {expected}")
        value = parse(text)
        if value <= 0:
            raise ValueError(f"'{text}' is zero; expected {expected}")
        if bounds is not None and not parse(bounds[0]) <= value <= parse(bounds[1]):
            raise ValueError(f"'{text}' is out of range; expected {expected}")
        return value

    return FieldType(expected, parse_positive)


def duration(least: str, most: str, example: str) -> FieldType:
    """Return the field type of durations from `least` to `most`, in seconds."""
    expected = f"a duration from {least} to {most}, such as {example}"
    return _quantity(units.parse_duration_s, expected, (least, most), needs_unit=True)


def size(least: str, most: str, example: str) -> FieldType:
    """Return the field type of sizes from `least` to `most`, in bytes."""
    expected = f"a size from {least} to {most}, such as {example}"
    return _quantity(units.parse_size_bytes, expected, (least, most))


def number(least: float, most: float, expected: str) -> FieldType:
    """Return the field type of plain numbers from `least` to `most`."""

    def parse(text: str) -> float:
        if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(text)

    return FieldType(expected, parse)


def rate(least: int, most: int) -> FieldType:
    """Return the field type of requests per second from `least` to `most`."""
    return number(least, most, f"a plain number of requests from {least} to {most}, such as 300")


def whole_number(least: int, most: int) -> FieldType:
    """Return the field type of whole numbers from `least` to `most`."""
    expected = f"a whole number from {least} to {most}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,15}", text, re.ASCII) or not least <= int(text) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return int(text)

    return FieldType(expected, parse)


def percentage(least: float, most: float) -> FieldType:
    """Return the field type of shares that are written as a percentage; '3%' is 0.03."""
    expected = f"a percentage from {least:g}% to {most:g}%, such as 3%"

    def parse(text: str) -> float:
        number = text.removesuffix("%").strip()
        if number == text or not _NUMBER.fullmatch(number) or not least <= float(number) <= most:
            raise ValueError(f"found '{text}'; expected {expected}")
        return float(number) / 100

    return FieldType(expected, parse)


def pattern(expected: str, pattern: str = r"\S(.*\S)?", prefix: str = "") -> FieldType:
    """Return the field type of texts that match `pattern`; `prefix` may precede it, and is cut."""

    def parse(text: str) -> str:
        short = text.strip().removeprefix(prefix)
        if not re.fullmatch(pattern, short):
            raise ValueError(f"found '{text}'; expected {expected}")
        return short

    return FieldType(expected, parse)


def _parse_flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"found '{text}'; expected true or false")
    return text == "true"


def _parse_date(text: str) -> dt.date:
    expected = "a date such as 2026-08-21"
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(f"found '{text}'; expected {expected}")
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"found '{text}' ({error}); expected {expected}") from error


Text = Annotated[str, pattern("a text")]
LongText = Annotated[str, FieldType("a text", str.strip, longest=_LONGEST_NOTE)]
"""Of several lines."""
Flag = Annotated[bool, FieldType("true or false", _parse_flag)]
Date = Annotated[dt.date, FieldType("a date such as 2026-08-21", _parse_date)]
Number = Annotated[float, number(1e-9, 1e15, "a plain number above 0, such as 300")]
Bytes = Annotated[int, _quantity(units.parse_size_bytes, "a size such as 500GiB, 100G or 4k")]
BytesPerSecond = Annotated[
    float,
    _quantity(units.parse_bandwidth_bytes_per_second, "a bandwidth such as 25MB/s or 240MiB/s"),
]
Seconds = Annotated[
    float, _quantity(units.parse_duration_s, "a duration such as 1ms", needs_unit=True)
]
