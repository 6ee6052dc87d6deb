"""Reads nested text into typed records and collects every problem with its place.

The records are the schema, as `shape` reads it. A value stays text until its field type parses it,
so nothing depends on how a file format guesses types (in YAML 1.1 `serial: 0123` is the number 83
and `10:30` is 630). A key without a value is absent.
"""

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar, assert_never

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.schema.shape import (
    LONGEST_SHOWN,
    FieldType,
    RecordPlan,
    Shape,
    close_match,
    shape_of,
)
from disksla.base.text import escape_control

MAX_PROBLEMS = 100
"""Enough for one round of corrections; bounds the work that a hostile file can cause."""
MOST_ITEMS = 5_000  # items of a list

Record = TypeVar("Record", bound=msgspec.Struct)

Overrides = Mapping[object, Callable[[Any], Any]]
"""What the caller adds to the schema: by `FieldType`, a parser that replaces its own; by record
type, a check of the finished record.

Both raise ValueError with what was found and what was expected. A check may raise
`InvalidFieldsError` to name places within the record.
"""


class Node(msgspec.Struct, frozen=True, gc=False):
    """What the file has in one place: a text, nothing, a mapping or a list."""

    line: int
    """Where the value was written, counted from 1. For a value in a mapping, the line of its key;
    for an alias, the line of the anchor."""
    value: "str | dict[str, Node] | list[Node] | None"
    key_line: int | None = None  # line of the key, where the value is an alias


class Problem(msgspec.Struct, frozen=True):
    """One problem and its place."""

    line: int
    path: str  # keys from the top, such as `disks[0].match`; empty at the top
    text: str  # what was found, and what was expected

    def as_line(self) -> str:
        """Return one line of printable text."""
        text = f"{self.line}: {self.path}{': ' if self.path else ''}{self.text}"
        return escape_control(text).replace("\n", r"\n")


class InvalidFieldsError(DiskslaError, ValueError):
    """A check of a record failed at places within the record."""

    def __init__(self, problems: Mapping[tuple[str | int, ...], str]) -> None:
        """Store the text of each problem by its path: keys and indices, from the record."""
        super().__init__("; ".join(problems.values()))
        self.problems = problems


class _TooManyProblemsError(DiskslaError):
    """The list of problems is full."""


def read_record(
    node: Node,
    record: type[Record],
    overrides: Overrides | None = None,
    *,
    known: Sequence[Problem] = (),
    spared: Collection[str] = (),
) -> tuple[Record | None, tuple[Problem, ...]]:
    """Return the record at `node`, or None, and every problem in order of lines.

    `known` are problems that were found before. An invalid item of the lists `spared` at the top
    is None, and makes nothing else invalid.
    """
    of_items = [item for each in known if (item := _ITEM.match(each.path)) and item[1] in spared]
    reader = _Reader(overrides or {}, spared, {(item[1], int(item[2])) for item in of_items})
    value: Record | None = None
    with contextlib.suppress(_TooManyProblemsError):
        value = reader.value(shape_of(record), node)
    if value is _FAILED or len(of_items) < len(known):
        value = None
    return value, tuple(sorted((*known, *reader.problems), key=lambda problem: problem.line))


_ITEM = re.compile(r"(\w+)\[(\d+)\]")
"""Start of the path of a problem in an item of a list at the top."""


_SECRET = frozenset(":$")


def path_text(path: Iterable[str | int]) -> str:
    """Return keys and indices as `a[0].b`; a very long key is cut.

    No key of ours has a colon or a dollar sign, but a line of /etc/shadow is one that has both: it
    is not shown.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part[:LONGEST_SHOWN] if _SECRET.isdisjoint(part) else "(a key)"
            text += f"{'.' if text else ''}{shown}"
    return text


_FAILED: Any = object()
"""What the reader returns for an invalid value, after its problems have been listed."""


class _Reader:
    """One reading: walks nodes and shapes together and collects the problems.

    What aliases and merge keys repeat is read once, so the work grows with the size of the file,
    and each of its problems is listed once.
    """

    def __init__(
        self, overrides: Overrides, spared: Collection[str], invalid: Collection[tuple[str, int]]
    ) -> None:
        self.overrides = overrides
        self.spared = spared
        self.invalid = invalid
        """Items of spared lists that are known to be invalid, by key and index."""
        self.problems: list[Problem] = []
        self.path: list[str | int] = []
        self._listed: dict[tuple[int, str], Node] = {}
        self._results: dict[tuple[int, int], Any] = {}

    def fail(self, node: Node, text: str, *path: str | int, line: int | None = None) -> Any:
        """List a problem at a path from the current one, once; return _FAILED."""
        if (id(node), text) not in self._listed:
            self._listed[id(node), text] = node  # keeps the node, so that its id stays its own
            place = path_text([*self.path, *path])
            if len(self.problems) < MAX_PROBLEMS:
                self.problems.append(Problem(line or node.line, place, text))
            if len(self.problems) >= MAX_PROBLEMS:
                raise _TooManyProblemsError
        return _FAILED

    def value(self, shape: Shape, node: Node) -> Any:
        """Return the value of a node, or _FAILED."""
        written = node.value
        if isinstance(written, str) and shape.leaf is not None:
            return self.leaf(shape.leaf, written, node)
        if shape.is_any:
            return None
        if isinstance(written, dict | list):
            place = (id(written), id(shape))
            if place not in self._results:
                self._results[place] = self.container(shape, node)
            return self._results[place]
        return self.unexpected(shape, node)

    def value_at(self, key: str | int, shape: Shape, node: Node) -> Any:
        """Return the value of a node at a key or index of the current path, or _FAILED."""
        self.path.append(key)
        try:
            return self.value(shape, node)
        finally:
            self.path.pop()

    def container(self, shape: Shape, node: Node) -> Any:
        match node.value:
            case list() as items if shape.item is not None:
                if len(items) > MOST_ITEMS:
                    found = f"found {len(items)} items; expected at most {MOST_ITEMS}"
                    return self.fail(node, found)
                if len(self.path) == 1 and self.path[0] in self.spared:
                    return tuple(
                        self.valid_or_none(index, shape.item, item)
                        for index, item in enumerate(items)
                    )
                values = [
                    self.value_at(index, shape.item, item) for index, item in enumerate(items)
                ]
                return _FAILED if _has_failed(values) else tuple(values)
            case dict() as entries if shape.entry is not None:
                by_key = {
                    key: self.value_at(key, shape.entry, entry) for key, entry in entries.items()
                }
                return _FAILED if _has_failed(by_key.values()) else by_key
            case dict() as entries if shape.records:
                return self.record(shape.records, node, entries)
            case _:
                return self.unexpected(shape, node)

    def valid_or_none(self, index: int, shape: Shape, node: Node) -> Any:
        """Return the value of an item of a spared list; None if it is invalid."""
        value = _FAILED
        # When the list of problems is full, the first one in an item ends the item.
        with contextlib.suppress(_TooManyProblemsError):
            value = self.value_at(index, shape, node)
        is_invalid = value is _FAILED or (self.path[0], index) in self.invalid
        return None if is_invalid else value

    def unexpected(self, shape: Shape, node: Node) -> Any:
        # A file that is a text is no file for disksla: it may be a secret to which a link leads.
        found = found_text(node, is_secret=shape.has_secrets or not self.path)
        return self.fail(node, f"{found}; expected {shape.expected}")

    def leaf(self, field_type: FieldType, text: str, node: Node) -> Any:
        if len(text) > field_type.longest:
            expected = f"at most {field_type.longest}, for {field_type.expected}"
            return self.fail(node, f"found {len(text)} characters; expected {expected}")
        try:
            parse: Callable[[str], Any] = self.overrides.get(field_type, field_type.parse)
            return parse(text)
        except ValueError as error:
            return self.fail(node, str(error))

    def record(self, plans: Mapping[str, RecordPlan], node: Node, entries: dict[str, Node]) -> Any:
        """Return the record that the entries are tagged as, or _FAILED."""
        plan = self.tagged(plans, node, entries)
        if plan is None:
            self.untagged(plans, entries)
            return _FAILED
        is_valid = self.has_known_keys(plan, plans, entries)
        values: dict[str, Any] = {}
        for field in plan.fields:
            entry = entries.get(field.key)
            if entry is None and field.required:
                text = f"missing; expected {field.shape.expected}"
                self.fail(Node(node.line, None), text, field.key)
                is_valid = False
            elif entry is not None and (entry.value is not None or field.required):
                value = self.value_at(field.key, field.shape, entry)
                values[field.name] = value
                is_valid = is_valid and value is not _FAILED
        return self.checked(plan, node, values) if is_valid else _FAILED

    def untagged(self, plans: Mapping[str, RecordPlan], entries: dict[str, Node]) -> None:
        """Check the values that mean the same with every tag, and the keys that have none."""
        tag_field = next(iter(plans.values())).tag_field
        fields = [field for plan in plans.values() for field in plan.fields]
        keys = dict.fromkeys(field.key for field in fields)
        for key, node in entries.items():
            shapes = {id(field.shape): field.shape for field in fields if field.key == key}
            if len(shapes) == 1 and node.value is not None:
                (shape,) = shapes.values()
                self.value_at(key, shape, node)
            elif not shapes and key != tag_field:
                text = f"unknown key{close_match(key, keys)}; expected one of: {', '.join(keys)}"
                self.fail(node, text, key, line=node.key_line)

    def tagged(
        self, plans: Mapping[str, RecordPlan], node: Node, entries: dict[str, Node]
    ) -> RecordPlan | None:
        """Return the plan whose tag is among the entries, or None."""
        first = next(iter(plans.values()))
        if len(plans) == 1:
            return first
        key = str(first.tag_field)
        tag = entries.get(key, Node(node.line, None))
        if isinstance(tag.value, str) and tag.value in plans:
            return plans[tag.value]
        found = found_text(tag) if key in entries else "missing"
        if isinstance(tag.value, str):
            found += close_match(tag.value, plans)
        self.fail(tag, f"{found}; expected one of: {', '.join(plans)}", key)
        return None

    def has_known_keys(
        self, plan: RecordPlan, plans: Mapping[str, RecordPlan], entries: dict[str, Node]
    ) -> bool:
        """Check the keys; a problem names the tags with which an unknown key is valid."""
        is_valid = True
        for key, node in entries.items():
            if key in plan.keys:
                continue
            tags = [other.tag for other in plans.values() if key in other.keys]
            if tags:
                valid = " or ".join(tags)
                found = f"not valid with `{plan.tag_field}: {plan.tag}`, only with {valid}"
            else:
                found = f"unknown key{close_match(key, plan.keys)}"
            text = f"{found}; expected one of: {', '.join(plan.keys)}"
            self.fail(node, text, key, line=node.key_line)
            is_valid = False
        return is_valid

    def checked(self, plan: RecordPlan, node: Node, values: dict[str, Any]) -> Any:
        """Return the record after its own checks and that of the caller, or _FAILED."""
        try:
            record = plan.type(**values)
            check = self.overrides.get(plan.type)
            if check is not None:
                check(record)
        except InvalidFieldsError as error:
            for path, text in error.problems.items():
                self.fail(node_at(node, path), text, *path)
        except ValueError as error:
            self.fail(node, str(error))
        else:
            return record
        return _FAILED


def _has_failed(values: Iterable[Any]) -> bool:
    return any(value is _FAILED for value in values)


def node_at(node: Node, path: Iterable[str | int]) -> Node:
    """Return the node at a path, or the last one on the way there."""
    for part in path:
        match node.value, part:
            case dict() as entries, str() as key if key in entries:
                node = entries[key]
            case list() as items, int() as index:
                node = items[index]
            case _:
                break
    return node


def found_text(node: Node, *, is_secret: bool = False) -> str:
    """Return what was found at a node, for messages."""
    match node.value:
        case str() if is_secret:
            return "found a text"
        case str() as text:
            return f"found '{text[:LONGEST_SHOWN]}'"
        case dict():
            return "found a mapping"
        case list():
            return "found a list"
        case None:
            return "found nothing"
        case _:
            assert_never(node.value)
