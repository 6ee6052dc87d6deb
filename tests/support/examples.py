"""How many examples a property is tried on: a few in `make test`, many at night."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

Value = TypeVar("Value")

USUAL = 100
_AT_NIGHT = 1000


def scaled(examples: int) -> settings:
    """Return settings for a property that `make cover` tries on `examples` examples.

    The profile decides (conftest.py): that of `make test` has 10 examples, not 100, and tries a
    tenth.
    """
    return settings(max_examples=max(1, examples * settings().max_examples // USUAL))


def halved() -> settings:
    """Return settings for a property that computes much: half of the examples, but all at night.

    `make cover` tries it on 50 examples, `make nightly` on 1,000 as any other.
    """
    examples = settings().max_examples
    return settings(max_examples=examples if examples >= _AT_NIGHT else examples // 2)


def some(values: Sequence[Value], number: int) -> Sequence[Value]:
    """Return those of many values that a place is tried with: at night all, else every fourth.

    The places of a document have numbers, so that each value is tried at some of them.
    """
    return values if settings().max_examples >= _AT_NIGHT else values[number % 4 :: 4]
