"""JSON as commands print it: indented, and whole numbers without a point."""

from typing import Any

import msgspec

_DIGITS = 15
"""Beyond these stands only what binary fractions leave behind (11250.000000000002)."""


def json_text(value: Any) -> str:
    """Write records, mappings and sequences of them as JSON for people and programs."""
    plain = _plain(msgspec.to_builtins(value))
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            short = float(f"{value:.{_DIGITS}g}")
            return int(short) if short.is_integer() else short
        case _:
            return value
