"""What may be in one place of a file, by the types of the fields of records.

The records are the schema. The type of a field is one of:

- `Annotated[T, FieldType(...)]`: one value, which the field type parses from text;
- `Literal["a", "b"]`: one of these words;
- a `msgspec.Struct`, possibly generic: a mapping;
- `tuple[X, ...]`: a list;
- `Mapping[str, X]`: a mapping with arbitrary keys;
- `Any`: anything, which is not read;
- a union of these: the shape of the text selects the type, and a tag selects among Structs.

A field of the plain type `str` is set by the program, and is no key.
"""

import difflib
import functools
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

_LONGEST_TEXT = 500
LONGEST_SHOWN = 60  # characters of a text that messages quote


class FieldType(msgspec.Struct, frozen=True):
    """How the text of one value is parsed."""

    expected: str  # what is valid, for messages: 'a duration such as 100ms'
    parse: Callable[[str], Any]  # raises ValueError with what was found and what was expected
    longest: int = _LONGEST_TEXT  # most characters that are parsed
    is_secret: bool = False  # whether messages must not quote the text


def choice(*words: str, expected: str = "") -> FieldType:
    """Return the field type of one of a few words."""
    expected = expected or f"one of: {', '.join(words)}"

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"found '{text}'{close_match(text, words)}; expected {expected}")
        return text

    return FieldType(expected, parse)


def close_match(word: str, words: Collection[str]) -> str:
    """Return ' (did you mean `x`?)' for the closest of `words`; empty if none is close."""
    word = word[:LONGEST_SHOWN].replace("throughput", "bandwidth")  # as providers say
    near = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


class _Field(NamedTuple):
    name: str
    key: str
    required: bool
    shape: "Shape"


class RecordPlan:
    """What the reader needs to know of a record type, computed once."""

    def __init__(self, kind: Any) -> None:
        """Read the fields of a record type, which may be generic."""
        self.type: type[msgspec.Struct] = typing.get_origin(kind) or kind
        config = self.type.__struct_config__
        self.tag = str(config.tag)
        self.tag_field = config.tag_field
        self.fields = tuple(
            _Field(field.name, field.encode_name, field.required, shape_of(field.type))
            for field in msgspec.structs.fields(kind)
            if field.type is not str
        )
        keys = [field.key for field in self.fields]
        self.keys = keys if self.tag_field is None else [self.tag_field, *keys]


class Shape:
    """What may be in one place."""

    def __init__(self, kind: Any) -> None:
        """Read the type of a field."""
        is_union = typing.get_origin(kind) in {typing.Union, types.UnionType}
        parts = typing.get_args(kind) if is_union else (kind,)
        self.is_any = Any in parts
        self.leaf: FieldType | None = None
        self.item: Shape | None = None
        self.entry: Shape | None = None
        self._records = []
        for part in parts:
            match typing.get_origin(part):
                case origin if origin is Annotated:
                    self.leaf = part.__metadata__[0]
                case origin if origin is Literal:
                    self.leaf = choice(*typing.get_args(part))
                case origin if origin is tuple:
                    self.item = shape_of(typing.get_args(part)[0])
                case origin if origin is Mapping:
                    self.entry = shape_of(typing.get_args(part)[1])
                case _ if part not in {Any, types.NoneType}:
                    self._records.append(part)

    @functools.cached_property
    def records(self) -> dict[str, RecordPlan]:
        """Plans of the record types by tag."""
        plans = map(RecordPlan, self._records)
        return {plan.tag: plan for plan in plans}

    @functools.cached_property
    def expected(self) -> str:
        """What is valid here, for messages."""
        words = []
        if self.leaf is not None:
            words.append(self.leaf.expected)
        if self.item is not None:
            words.append(f"a list, each item {self.item.expected}")
        if self.entry is not None:
            words.append(f"a mapping of names, each to {self.entry.expected}")
        plans = list(self.records.values())
        if len(plans) == 1:
            words.append(f"a mapping of {', '.join(plans[0].keys)}")
        elif plans:
            words.append(f"a mapping with `{plans[0].tag_field}`")
        return ", or ".join(words)

    @functools.cached_property
    def has_secrets(self) -> bool:
        """Whether a text that is found here may be a secret."""
        return (
            (self.leaf is not None and self.leaf.is_secret)
            or (self.entry is not None and self.entry.has_secrets)
            or any(
                field.shape.has_secrets for plan in self.records.values() for field in plan.fields
            )
        )


shape_of = functools.cache(Shape)  # returns the shape of the type of a field
