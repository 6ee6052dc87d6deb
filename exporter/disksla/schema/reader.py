"""Reading nested text, such as a configuration file, into typed records, naming every problem.

The records are the schema. A field is one of:

- `Annotated[T, Door(...)]`: one value, which the door makes of its text;
- a `msgspec.Struct`: a mapping;
- `tuple[X, ...]`: a list;
- `Mapping[str, X]`: a mapping whose keys are names that the writer chose;
- a union of these: the shape of what was written decides, and between Structs their tag.

A value is text until its door is reached, so nothing depends on how a file format guesses types
(in YAML 1.1 `serial: 0123` is the number 83 and `10:30` is 630). What is left empty is absent.
"""

import contextlib
import difflib
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar, assert_never

import msgspec

from disksla.errors import DiskslaError
from disksla.text import escape_control

MAX_PROBLEMS = 100
"""Enough for a person; and what bounds the work that a hostile file can cause."""

_LONGEST_TEXT = 500
_LONGEST_SHOWN = 60

Record = TypeVar("Record", bound=msgspec.Struct)

Overrides = Mapping[object, Callable[[Any], Any]]
"""What only the caller knows: how to parse in place of a door's own way, or a check of a record.

Both raise ValueError with what was found and what would be right.
"""


class FieldType(msgspec.Struct, frozen=True):
    """Where a text becomes a value."""

    expected: str
    """What may be written, such as 'a duration such as 100ms'."""
    parse: Callable[[str], Any]
    """Raises ValueError with what was found and what would be right."""
    longest: int = _LONGEST_TEXT
    """Characters of the longest text that is looked at."""
    is_secret: bool = False
    """Whether no problem may quote what was found."""


class Node(msgspec.Struct, frozen=True):
    """What was written at one place: a text, nothing, a mapping or a list."""

    line: int
    """Counted from 1; for a value in a mapping, the line of its key."""
    value: "str | dict[str, Node] | list[Node] | None"


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    line: int
    path: str
    """Keys from the top, such as `disks[0].match`; empty at the top."""
    text: str
    """What was found, and what would be right."""

    def as_line(self) -> str:
        """Give one line of text, whatever characters the problem quotes."""
        text = f"{self.line}: {self.path}{': ' if self.path else ''}{self.text}"
        return escape_control(text).replace("\n", r"\n")


class _FieldError(DiskslaError):
    """A value could not be read, and its problem stands in the list."""


class _TooManyProblemsError(DiskslaError):
    """So many problems are listed that more would not help."""


def read_record(
    node: Node, record: type[Record], rules: Overrides | None = None
) -> tuple[Record | None, tuple[Problem, ...]]:
    """Give the record that is written at `node`, or None and every problem in order of lines."""
    reader = _Reader(rules or {})
    value: Record | None = None
    with contextlib.suppress(_FieldError, _TooManyProblemsError):
        value = reader.value(record, node, "")
    return value, tuple(sorted(reader.problems, key=lambda problem: problem.line))


def keys_of(record: type[msgspec.Struct]) -> list[str]:
    """Give the keys that a mapping may have, its tag first."""
    tag = record.__struct_config__.tag_field
    keys = [field.encode_name for field in msgspec.structs.fields(record)]
    return keys if tag is None else [tag, *keys]


def close_match(word: str, words: Collection[str]) -> str:
    """Give ' (did you mean `x`?)' for the nearest of `words`, or nothing if none is near."""
    near = difflib.get_close_matches(word[:_LONGEST_SHOWN], words, n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""


def join_path(path: str, key: str) -> str:
    """Give the path of what stands at `key` within `path`; a very long key is cut."""
    return f"{path}.{key[:_LONGEST_SHOWN]}" if path else key[:_LONGEST_SHOWN]


class _Reader:
    """One reading: walks nodes and record types together and collects the problems."""

    def __init__(self, rules: Overrides) -> None:
        self.rules = rules
        self.problems: list[Problem] = []

    def refuse(self, line: int, path: str, text: str) -> _FieldError:
        """Note a problem, and give what to raise if reading cannot go on here."""
        self.problems.append(Problem(line, path, text))
        if len(self.problems) >= MAX_PROBLEMS:
            raise _TooManyProblemsError
        return _FieldError()

    def value(self, kind: Any, node: Node, path: str) -> Any:
        """Read a value of type `kind`; raises _Wrong when its problems are listed."""
        choices = _choices(kind)
        written = node.value
        if isinstance(written, str):
            for choice in filter(_is_leaf, choices):
                return self.leaf(_field_type(choice), written, node.line, path)
        elif isinstance(written, list):
            for choice in filter(_is_list, choices):
                return self.listing(typing.get_args(choice)[0], written, path)
        elif isinstance(written, dict):
            for choice in filter(_is_mapping, choices):
                return self.mapping(typing.get_args(choice)[1], written, path)
            records = [choice for choice in choices if _is_record(choice)]
            if records:
                return self.record(records, written, node.line, path)
        found = _found(node, is_secret=any(map(_holds_secrets, choices)))
        raise self.refuse(node.line, path, f"{found}; expected {_expected(choices)}")

    def leaf(self, door: FieldType, text: str, line: int, path: str) -> Any:
        if len(text) > door.longest:
            raise self.refuse(
                line, path, f"found {len(text)} characters; expected {door.expected}"
            )
        try:
            parse: Callable[[str], Any] = self.rules.get(door, door.parse)
            return parse(text)
        except ValueError as error:
            raise self.refuse(line, path, str(error)) from error

    def listing(self, kind: Any, items: list[Node], path: str) -> tuple[Any, ...]:
        values = []
        for index, item in enumerate(items):
            with contextlib.suppress(_FieldError):
                values.append(self.value(kind, item, f"{path}[{index}]"))
        if len(values) < len(items):
            raise _FieldError
        return tuple(values)

    def mapping(self, kind: Any, entries: dict[str, Node], path: str) -> dict[str, Any]:
        values = {}
        for key, node in entries.items():
            with contextlib.suppress(_FieldError):
                values[key] = self.value(kind, node, join_path(path, key))
        if len(values) < len(entries):
            raise _FieldError
        return values

    def record(
        self, records: list[type[msgspec.Struct]], entries: dict[str, Node], line: int, path: str
    ) -> msgspec.Struct:
        """Read the one of `records` that the entries are tagged as."""
        record = self.tagged(records, entries, line, path)
        before = len(self.problems)
        self.unknown_keys(record, records, entries, path)
        values: dict[str, Any] = {}
        for field in msgspec.structs.fields(record):
            node = entries.get(field.encode_name, Node(line, None))
            if node.value is not None or field.required:
                with contextlib.suppress(_FieldError):
                    values[field.name] = self.value(
                        field.type, node, join_path(path, field.encode_name)
                    )
        if len(self.problems) > before:
            raise _FieldError
        try:
            value = record(**values)
            self.rules.get(record, _accept)(value)
        except ValueError as error:
            raise self.refuse(line, path, str(error)) from error
        return value

    def tagged(
        self, records: list[type[msgspec.Struct]], entries: dict[str, Node], line: int, path: str
    ) -> type[msgspec.Struct]:
        if len(records) == 1:
            return records[0]
        by_tag = {str(record.__struct_config__.tag): record for record in records}
        tag_field = str(records[0].__struct_config__.tag_field)
        node = entries.get(tag_field, Node(line, None))
        if not isinstance(node.value, str) or node.value not in by_tag:
            hint = close_match(node.value, by_tag) if isinstance(node.value, str) else ""
            text = f"{_found(node)}{hint}; expected one of: {', '.join(by_tag)}"
            raise self.refuse(node.line, join_path(path, tag_field), text)
        return by_tag[node.value]

    def unknown_keys(
        self,
        record: type[msgspec.Struct],
        siblings: list[type[msgspec.Struct]],
        entries: dict[str, Node],
        path: str,
    ) -> None:
        """Refuse keys that `record` does not have; says under which tag they would be right."""
        known = keys_of(record)
        for key, node in entries.items():
            if key in known:
                continue
            fits = [
                str(other.__struct_config__.tag) for other in siblings if key in keys_of(other)
            ]
            if fits:
                tag = f"{known[0]}: {record.__struct_config__.tag}"
                found = f"does not go with `{tag}`, only with {' or '.join(fits)}"
            else:
                found = f"unknown key{close_match(key, known)}"
            text = f"{found}; expected one of: {', '.join(known)}"
            self.refuse(node.line, join_path(path, key), text)


def _accept(_: object) -> None:
    """Check nothing: the rule of every record that has none."""


def _choices(kind: Any) -> tuple[Any, ...]:
    if typing.get_origin(kind) in {typing.Union, types.UnionType}:
        return tuple(choice for choice in typing.get_args(kind) if choice is not types.NoneType)
    return (kind,)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return typing.get_origin(kind) is Mapping


def _holds_secrets(kind: Any) -> bool:
    if _is_leaf(kind):
        return _field_type(kind).is_secret
    if _is_record(kind):
        return any(_holds_secrets(field.type) for field in msgspec.structs.fields(kind))
    return _is_mapping(kind) and _holds_secrets(typing.get_args(kind)[1])


def _is_leaf(kind: Any) -> bool:
    return typing.get_origin(kind) is Annotated


def _field_type(leaf: Any) -> FieldType:
    return typing.cast("FieldType", leaf.__metadata__[0])


def _expected(choices: tuple[Any, ...]) -> str:
    """Say in words what may be written for a field of these types."""
    words = [_field_type(choice).expected for choice in choices if _is_leaf(choice)]
    words += [
        f"a list, each item {_expected(_choices(typing.get_args(choice)[0]))}"
        for choice in choices
        if _is_list(choice)
    ]
    words += [
        f"a mapping of names, each to {_expected(_choices(typing.get_args(choice)[1]))}"
        for choice in choices
        if _is_mapping(choice)
    ]
    records = [choice for choice in choices if _is_record(choice)]
    if len(records) == 1:
        words.append(f"a mapping of {', '.join(keys_of(records[0]))}")
    elif records:
        words.append(f"a mapping with `{records[0].__struct_config__.tag_field}`")
    return ", or ".join(words)


def _found(node: Node, *, is_secret: bool = False) -> str:
    match node.value:
        case str() if is_secret:
            return "found a text"
        case str() as text:
            return f"found '{text[:_LONGEST_SHOWN]}'"
        case dict():
            return "found a mapping"
        case list():
            return "found a list"
        case None:
            return "nothing given"
        case _:
            assert_never(node.value)
