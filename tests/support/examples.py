"""How many examples a property is tried on, a few in `make test`, many at night; damaged texts."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

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


@st.composite
def damaged_text(draw: st.DrawFn, texts: Sequence[str]) -> str:
    """Return one of the texts, of which a part is removed or replaced."""
    text = draw(st.sampled_from(texts))
    begin = draw(st.integers(0, len(text)))
    end = draw(st.integers(begin, min(len(text), begin + 200)))
    return text[:begin] + draw(st.text(max_size=20)) + text[end:]


@st.composite
def damaged_json(draw: st.DrawFn, texts: Sequence[str], values: st.SearchStrategy[Any]) -> str:
    """Return one of the documents, in which one value is replaced."""
    document: Any = json.loads(draw(st.sampled_from(texts)))
    at = document
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            at[key] = draw(values)
            return json.dumps(document, indent=1)
        at = inner
