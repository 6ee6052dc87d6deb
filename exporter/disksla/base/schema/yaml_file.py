"""Reads YAML files into typed records; a bad file is one error that lists every problem.

One dialect for all files: plain scalars stay text, anchors, aliases and merge keys (`<<`) work as
in YAML 1.1, and tags are errors. Every value keeps the line where it was written.
"""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import yaml

from disksla.base.errors import DiskslaError
from disksla.base.schema.reader import (
    MAX_PROBLEMS,
    Node,
    Overrides,
    Problem,
    Record,
    found_text,
    node_at,
    path_text,
    read_record,
)
from disksla.base.units import MIB

MAX_FILE_BYTES = MIB

_DEEPEST_NESTING = 20
MOST_VALUES = 100_000
"""Keys and values of one file, those that aliases and merge keys repeat counted each time. It
bounds the work: without it, a file of 1 MiB could have billions."""
_MERGE_KEY = "<<"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser, where PyYAML was built with it, is ten times as fast."""


def open_file(path: Path, *, follow_link: bool = True) -> BinaryIO:
    """Open a regular file without waiting: a reload must not block on a FIFO.

    Raise OSError, or ValueError for anything but a regular file, or for a link if `follow_link` is
    false.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags if follow_link else flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_link:
            raise ValueError("is a link, and links are not followed in this directory") from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("is not a regular file")


def read_bounded(file: BinaryIO, most_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole file. Raise ValueError if it is larger than any file of its kind."""
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"is larger than {most_bytes // MIB} MiB")
    return data


def read_file(path: Path, *, follow_link: bool = True) -> bytes:
    """Read a whole file. Raise DiskslaError if that fails, or it is no file for the reader."""
    return _read(path, partial(open_file, follow_link=follow_link), MAX_FILE_BYTES)


def read_named(path: Path, most_bytes: int) -> bytes:
    """Read a whole file that the command line names, which may be a pipe.

    Raise DiskslaError if that fails, or it is larger.
    """
    return _read(path, lambda path: path.open("rb"), most_bytes)


def _read(path: Path, open_it: Callable[[Path], BinaryIO], most_bytes: int) -> bytes:
    try:
        with open_it(path) as file:
            return read_bounded(file, most_bytes)
    except OSError as error:
        raise DiskslaError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DiskslaError(f"cannot read {path}: it {error}") from error


class Document(msgspec.Struct, frozen=True):
    """The content of a file as nodes, with the problems that were found in building them."""

    name: str
    root: Node
    problems: tuple[Problem, ...]

    def read(
        self, record: type[Record], overrides: Overrides, spared: Collection[str] = ()
    ) -> tuple[Record | None, tuple[Problem, ...]]:
        """Return the record at the top, or None, and every problem, as `read_record` does."""
        # What is no mapping is no file for disksla: keys in it are not quoted either.
        own = self.problems if isinstance(self.root.value, dict) else ()
        return read_record(self.root, record, overrides, known=own, spared=spared)

    def place(self, path: Sequence[str | int]) -> str:
        """Return FILE:LINE of the value at a path."""
        return f"{self.name}:{node_at(self.root, path).line}"

    def problem(self, path: Sequence[str | int], text: str) -> Problem:
        """Return a problem of the value at a path."""
        return Problem(node_at(self.root, path).line, path_text(path), text)

    def lines(self, problems: Sequence[Problem]) -> list[str]:
        """Return a line for each problem, and one more if there may be others."""
        lines = [f"{self.name}:{problem.as_line()}" for problem in problems[:MAX_PROBLEMS]]
        if len(problems) >= MAX_PROBLEMS:
            lines.append(f"{self.name}: only the first {MAX_PROBLEMS} problems are listed")
        return lines


def parse_record(data: bytes, name: str, record: type[Record], overrides: Overrides) -> Record:
    """Return the record in the content of the file `name`.

    Raise one DiskslaError that lists every problem, a line each, as
    `FILE:LINE: PLACE: found X; expected Y`.
    """
    document = parse_document(data, name)
    value, problems = document.read(record, overrides)
    if value is None:
        raise DiskslaError("\n".join(document.lines(problems)))
    return value


def parse_document(data: bytes, name: str) -> Document:
    """Return the document in the content of the file `name`.

    Raise DiskslaError, as `parse_record` does, for anything but one YAML document.
    """
    try:
        builder = _Builder(_decode(data))
        root = builder.document()
    except _SyntaxError as error:
        raise DiskslaError(f"{name}:{error.problem.as_line()}") from error
    return Document(name, root, tuple(builder.problems))


class _SyntaxError(DiskslaError):
    """The content is not YAML, or not of the supported kind."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(line, text)
        self.problem = Problem(line, "", text)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        found = f"found byte 0x{data[error.start]:02x}, which is not UTF-8; expected text in UTF-8"
        raise _SyntaxError(line, found) from error


class _Builder:
    """Builds nodes from the parser's events, so that every value keeps its line.

    An alias is the node of its anchor, not a copy.
    """

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._next: Callable[[], Any] = _events(text).__next__
        self._anchors: dict[str, tuple[Node, int]] = {}
        """Nodes by anchor, each with how many keys and values it has."""
        self._values = 0  # how many keys and values there are so far, with what aliases repeat
        self._path: list[str | int] = []
        self._is_mapping = False
        """Whether the document is a mapping. Of any other, nothing is quoted: it may be a secret
        to which a link leads."""

    def document(self) -> Node:
        """Return the node at the top; of an empty file, an empty mapping."""
        self._next()  # the start of the stream
        root = Node(1, None)
        if isinstance(event := self._next(), yaml.DocumentStartEvent):
            top = self._next()
            self._is_mapping = isinstance(top, yaml.MappingStartEvent) and top.tag is None
            root = self.node(top)
            self._next()  # the end of the document
            event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _SyntaxError(_line(event), "found a second document; expected one")
        return root if root.value is not None else Node(1, {})

    def node(self, event: Any) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                name = event.anchor if self._is_mapping else "NAME"
                raise _SyntaxError(line, f"found alias '*{name}'; expected '&{name}' above it")
            node, values = self._anchors[event.anchor]
            self.count(values, line)
            return node
        if event.tag is not None:
            found = f"tag '{event.tag}'" if self._is_mapping else "a tag"
            raise _SyntaxError(line, f"found {found}; expected a value without a tag")
        before = self._values
        self.count(1, line)
        node = Node(line, self.content(event))
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, self._values - before)
        return node

    def count(self, values: int, line: int) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            found = f"found more than {MOST_VALUES} keys and values, with what aliases repeat"
            raise _SyntaxError(line, f"{found}; expected fewer")

    def content(self, event: Any) -> str | dict[str, Node] | list[Node] | None:
        if isinstance(event, yaml.ScalarEvent):
            is_empty = event.implicit[0] and event.value in {"", "~", "null"}
            return None if is_empty else str(event.value)
        if len(self._path) > _DEEPEST_NESTING:
            text = f"found more than {_DEEPEST_NESTING} levels of nesting; expected fewer"
            raise _SyntaxError(_line(event), text)
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping()
        items: list[Node] = []
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            items.append(self.node_at(len(items), item))
        return items

    def node_at(self, key: str | int, event: Any) -> Node:
        self._path.append(key)
        node = self.node(event)
        self._path.pop()
        return node

    def mapping(self) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        merge_lines: list[int] = []
        merged: list[dict[str, Node]] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if _is_merge_key(event):
                merge_lines.append(_line(event))
                merged += self.merge_sources(_line(event))
            else:
                self.add_entry(entries, event)
        for line in merge_lines[1:]:
            self.duplicate(line, _MERGE_KEY, merge_lines[0])
        for source in merged:
            for key, node in source.items():
                entries.setdefault(key, node)
        return entries

    def add_entry(self, entries: dict[str, Node], event: Any) -> None:
        is_scalar = isinstance(event, yaml.ScalarEvent | yaml.AliasEvent)
        key = self.node(event) if is_scalar else Node(_line(event), None)
        if not isinstance(key.value, str):
            raise _SyntaxError(_line(event), "found a key that is not text; expected a name")
        line = _line(event)
        event = self._next()
        value = self.node_at(key.value, event)
        if isinstance(event, yaml.AliasEvent):
            value = Node(value.line, value.value, key_line=line)
        elif value.line != line:
            value = Node(line, value.value)
        if key.value in entries:
            first = entries[key.value]
            self.duplicate(line, key.value, first.key_line or first.line)
        entries.setdefault(key.value, value)

    def duplicate(self, line: int, key: str, first_line: int) -> None:
        text = f"duplicate key, first in line {first_line}; expected it once"
        self.problems.append(Problem(line, path_text([*self._path, key]), text))

    def merge_sources(self, line: int) -> list[dict[str, Node]]:
        """Return the mappings after a merge key: a mapping, or a list, in order of precedence.

        Problems do not quote a text, because it may be a secret.
        """
        node = self.node_at(_MERGE_KEY, self._next())
        nodes = node.value if isinstance(node.value, list) else [node]
        for each in nodes:
            if not isinstance(each.value, dict):
                found = found_text(each, is_secret=True)
                text = f"{found}; expected a mapping to merge, or a list of mappings"
                self.problems.append(Problem(line, path_text([*self._path, _MERGE_KEY]), text))
        return [each.value for each in nodes if isinstance(each.value, dict)]


def _events(text: str) -> Iterator[Any]:
    """Yield the events of the parser. Raise _SyntaxError for what is not YAML."""
    try:
        loader = _LOADER(text)
        while True:
            yield loader.get_event()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _SyntaxError(line, _syntax_problem(error, text, line)) from error
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        found = f"found character #x{error.character:02x}; expected printable text"
        raise _SyntaxError(line, found) from error


def _is_merge_key(event: Any) -> bool:
    """Return whether an event is a plain `<<`; in quotes it is an ordinary key."""
    is_scalar = isinstance(event, yaml.ScalarEvent) and event.tag is None
    return is_scalar and event.value == _MERGE_KEY and event.implicit[0]


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    lines = text.splitlines()
    if line <= len(lines) and "\t" in lines[line - 1][: -len(lines[line - 1].lstrip()) or None]:
        return "found a tab in the indentation; expected spaces"
    context = f"{error.context}, " if error.context else ""
    return f"not valid YAML: {context}{error.problem}"


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
