"""Options of a disk: what is chosen besides its type and its size, such as a performance tier."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.schema import close_match
from disksla.base.units import format_size
from disksla.promise.catalogue.terms import (
    Changes,
    ClientLimits,
    Option,
    OptionOfValue,
    OptionValue,
    Terms,
)

_OTHER = "other"
"""A default for all values that are not listed: a close match would be another one."""
_CHANGED = set(Changes.__struct_fields__) & set(Terms.__struct_fields__)


class Chosen(NamedTuple):
    """An option and its value."""

    option: Option | OptionOfValue
    value: str
    changes: Changes | None  # None for a default that changes nothing


def chosen_values(terms: Terms, chosen: Mapping[str, str]) -> dict[str, Chosen]:
    """Return the options by name, each with the value that was chosen, or the default.

    Those that a value has follow its option. Raise DiskslaError if an option or a value is
    unknown.
    """
    found = dict(_chosen_of(terms, terms.options, chosen))
    for name in chosen:
        if name not in found:
            known = ", ".join(found) or "none"
            raise DiskslaError(f"found option '{name}' of {terms.id}; expected one of: {known}")
    return found


def effective_options(terms: Terms, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each option, as `chosen_values` does."""
    return {name: each.value for name, each in chosen_values(terms, chosen).items()}


def _chosen_of(
    terms: Terms, options: Mapping[str, Option | OptionOfValue], chosen: Mapping[str, str]
) -> Iterator[tuple[str, Chosen]]:
    for name, option in options.items():
        value = _value(terms, name, option, chosen)
        changes = option.values.get(value)
        yield name, Chosen(option, value, changes)
        if isinstance(changes, OptionValue):
            yield from _chosen_of(terms, changes.options, chosen)


def with_options(terms: Terms, size_bytes: int, chosen: Mapping[str, str]) -> tuple[Terms, int]:
    """Return the row as the chosen values of its options change it, and the size that counts.

    Raise DiskslaError if an option or a value is unknown, or the disk is too small for it.
    """
    changes: dict[str, object] = {}
    counted_bytes = size_bytes
    for name, (_, word, value) in chosen_values(terms, chosen).items():
        if value is None:
            continue
        if value.least_size_bytes is not None and size_bytes < value.least_size_bytes:
            raise DiskslaError(
                f"found {name}={word} of {terms.id} at {format_size(size_bytes)};"
                f" expected a disk of at least {format_size(value.least_size_bytes)}"
            )
        counted_bytes = max(counted_bytes, value.as_size_bytes or 0)
        fields = msgspec.structs.asdict(value)
        changes |= dict.fromkeys(value.without)
        changes |= {key: fields[key] for key in _CHANGED if fields[key] is not None}
    return msgspec.structs.replace(terms, **changes), counted_bytes


def client_of(terms: Terms, size_bytes: int) -> ClientLimits | None:
    """Return what one client of a file storage of this size may get; None if it is not stated.

    The options of `terms` are applied.
    """
    client = terms.client
    if client is None or (client.below_bytes is not None and size_bytes >= client.below_bytes):
        return None
    return client


def _value(
    terms: Terms, name: str, option: Option | OptionOfValue, chosen: Mapping[str, str]
) -> str:
    value = chosen.get(name, option.default)
    if value not in option.values and value != option.default:
        known = dict.fromkeys((option.default, *option.values))
        hint = " (any that is not listed)" if option.default == _OTHER else ""
        close = "" if hint else close_match(value, known)
        raise DiskslaError(
            f"found {name}={value} of {terms.id}{close};"
            f" expected one of: {', '.join(known).replace(_OTHER, _OTHER + hint, 1)}"
        )
    return value
