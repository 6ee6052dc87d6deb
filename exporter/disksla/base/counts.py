"""Records that are added field by field, by `+`; many of them by `total`."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add, sub
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import astuple


class Summable(msgspec.Struct, frozen=True, gc=False):
    """A record of numbers. What is not known is None, and so is a sum with it."""

    def __add__(self, other: Self) -> Self:
        """Return the sum."""
        return self._each(add, other)

    def __sub__(self, other: Self) -> Self:
        """Return the difference."""
        return self._each(sub, other)

    def __mul__(self, factor: float) -> Self:
        """Return so many times as much."""
        return type(self)(*(None if own is None else own * factor for own in astuple(self)))

    def _each(self, combine: Callable[[Any, Any], Any], other: Self) -> Self:
        """Return the record of both; what is None in one is None."""
        try:
            return type(self)(*map(combine, astuple(self), astuple(other)))
        except TypeError:
            pairs = zip(astuple(self), astuple(other), strict=True)
            return type(self)(*(None if None in pair else combine(*pair) for pair in pairs))


class Counts(Summable, frozen=True, gc=False):
    """Requests and bytes; a request counts in part where a part of a time is meant."""

    reads: float = 0.0
    writes: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0

    @property
    def requests(self) -> float:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> float:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes


Added = TypeVar("Added", bound=Summable)


def total(parts: Iterable[Added], nothing: Added | None = None) -> Added:
    """Return the sum of records; `nothing` is that of none."""
    return reduce(add, parts) if nothing is None else reduce(add, parts, nothing)
