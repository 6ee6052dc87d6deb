"""Strategies for records with any values, by the types of their fields."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_Record = TypeVar("_Record")
Kinds = Mapping[type, st.SearchStrategy[Any]]
"""Strategies for numbers, texts and other plain types."""
_PLAIN: Kinds = {bool: st.booleans(), NoneType: st.none(), int: st.integers(0, 2**53)}


def records(
    record: type[_Record], kinds: Kinds, fields: str = "", /, **given: st.SearchStrategy[Any]
) -> st.SearchStrategy[_Record]:
    """Return a strategy for a record with any values of these fields, or of all.

    Those that are given are as they are given; others than these have their defaults.
    """
    hints = get_type_hints(record)
    drawn = {
        name: _of(hints[name], kinds) for name in fields.split() or hints if name not in given
    }
    return st.builds(record, **drawn, **given)


def _of(kind: Any, kinds: Kinds) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type."""
    inner = get_args(kind)
    match get_origin(kind):
        case None if kind in kinds or kind in _PLAIN:
            return {**_PLAIN, **kinds}[kind]
        case None:
            return records(kind, kinds)
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin in {Union, UnionType}:
            return st.one_of(*(_of(each, kinds) for each in inner))
        case origin if origin is tuple:
            return st.lists(_of(inner[0], kinds), max_size=3).map(tuple)
        case _:
            return st.dictionaries(*(_of(each, kinds) for each in inner), max_size=2)
