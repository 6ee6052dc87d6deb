"""Options of a disk: what is chosen besides its type and its size, such as a performance tier."""

from collections.abc import Mapping

import msgspec

from disksla.errors import DiskslaError
from disksla.limits.terms import Option, Terms
from disksla.schema import close_match
from disksla.units import format_size

_CHANGED = ("read_iops", "write_iops", "read_bandwidth", "write_bandwidth", "latency", "burst")


def effective_options(terms: Terms, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each option: the one that was chosen, or the default.

    Raise DiskslaError if an option or a value is unknown.
    """
    for name in chosen:
        if name not in terms.options:
            known = ", ".join(terms.options) or "none"
            raise DiskslaError(f"found option '{name}' of {terms.id}; expected one of: {known}")
    return {name: _value(terms, name, option, chosen) for name, option in terms.options.items()}


def with_options(terms: Terms, size_bytes: int, chosen: Mapping[str, str]) -> tuple[Terms, int]:
    """Return the row as the chosen values of its options change it, and the size that counts.

    Raise DiskslaError if an option or a value is unknown, or the disk is too small for it.
    """
    changes: dict[str, object] = {}
    counted_bytes = size_bytes
    for name, word in effective_options(terms, chosen).items():
        value = terms.options[name].values.get(word)
        if value is None:
            continue
        if value.least_size_bytes is not None and size_bytes < value.least_size_bytes:
            raise DiskslaError(
                f"found {name}={word} of {terms.id} at {format_size(size_bytes)};"
                f" expected a disk of at least {format_size(value.least_size_bytes)}"
            )
        counted_bytes = max(counted_bytes, value.as_size_bytes or 0)
        fields = msgspec.structs.asdict(value)
        changes |= {key: fields[key] for key in _CHANGED if fields[key] is not None}
    return msgspec.structs.replace(terms, **changes), counted_bytes


def _value(terms: Terms, name: str, option: Option, chosen: Mapping[str, str]) -> str:
    """Return the value of an option."""
    value = chosen.get(name, option.default)
    if value not in option.values and value != option.default:
        known = dict.fromkeys((option.default, *option.values))
        raise DiskslaError(
            f"found {name}={value} of {terms.id}{close_match(value, known)};"
            f" expected one of: {', '.join(known)}"
        )
    return value
