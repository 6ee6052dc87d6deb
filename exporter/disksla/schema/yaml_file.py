"""Reading the configuration file: YAML in, settings or a list of problems out."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import yaml

from disksla.errors import DiskslaError
from disksla.schema.reader import (
    MAX_PROBLEMS,
    Node,
    Overrides,
    Problem,
    Record,
    join_path,
    read_record,
)
from disksla.units import MIB

MAX_FILE_BYTES = MIB

_DEEPEST_NESTING = 20
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file: a reload must not wait for whoever would write to a pipe.

    Raises OSError, or ValueError for anything else than a file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("is no regular file")


def read_bounded(file: BinaryIO) -> bytes:
    """Read a file whole; raises ValueError where it is too large to be what was meant."""
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("is larger than 1 MiB")
    return data


def parse_record(data: bytes, name: str, record: type[Record], rules: Overrides) -> Record:
    """Give the record that YAML states; raises Refusal as `read_settings` does."""
    try:
        builder = _Builder(_text_of(data))
        value, problems = read_record(builder.document(), record, rules)
    except _DocumentError as bad:
        raise DiskslaError(f"{name}:{bad.problem.as_line()}") from bad
    all_problems = sorted([*builder.duplicates, *problems], key=lambda problem: problem.line)
    if value is None or all_problems:
        lines = [f"{name}:{problem.as_line()}" for problem in all_problems[:MAX_PROBLEMS]]
        if len(all_problems) >= MAX_PROBLEMS:
            lines.append(f"{name}: no more than {MAX_PROBLEMS} problems are listed")
        raise DiskslaError("\n".join(lines))
    return value


class _DocumentError(DiskslaError):
    """The text is not the YAML that is understood here."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(line, text)
        self.problem = Problem(line, "", text)


def _text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        found = f"byte 0x{data[error.start]:02x} is not UTF-8; expected a text in UTF-8"
        raise _DocumentError(line, found) from error


class _Builder:
    """Makes nodes of the events of the parser, so that every value keeps its line.

    An alias gives the node it names, not a copy: a file stays as large as it is written.
    """

    def __init__(self, text: str) -> None:
        self.events = _events(text)
        self.anchors: dict[str, Node] = {}
        self.duplicates: list[Problem] = []

    def document(self) -> Node:
        """Give the top-level mapping, which is empty for an empty file."""
        next(self.events)  # the start of the stream
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return Node(1, {})
        node = self.node(next(self.events), "", 0)
        next(self.events)  # the end of the document
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _DocumentError(_line(after), "a second document; expected one only")
        return Node(1, {}) if node.value is None else node

    def node(self, event: Any, path: str, depth: int) -> Node:
        line = _line(event)
        if depth > _DEEPEST_NESTING:
            raise _DocumentError(line, f"nested more than {_DEEPEST_NESTING} deep")
        if isinstance(event, yaml.AliasEvent):
            return self.aliased(str(event.anchor), line)
        if event.tag is not None:
            raise _DocumentError(line, f"tag '{event.tag}'; expected plain values without tags")
        node = Node(line, self.content(event, path, depth))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def content(
        self, event: Any, path: str, depth: int
    ) -> str | dict[str, Node] | list[Node] | None:
        match event:
            case yaml.MappingStartEvent():
                return self.mapping(path, depth)
            case yaml.SequenceStartEvent():
                items: list[Node] = []
                while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                    items.append(self.node(item, f"{path}[{len(items)}]", depth + 1))
                return items
            case _:
                empty = event.implicit[0] and event.value in {"", "~", "null"}
                return None if empty else str(event.value)

    def mapping(self, path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, path, depth + 1)
            if not isinstance(key.value, str):
                raise _DocumentError(key.line, "a key that is no text; expected a name")
            place = join_path(path, key.value)
            value = self.node(next(self.events), place, depth + 1)
            if key.value in entries:
                text = f"given twice, first in line {entries[key.value].line}; expected it once"
                self.duplicates.append(Problem(key.line, place, text))
            entries.setdefault(key.value, msgspec.structs.replace(value, line=key.line))
        return entries

    def aliased(self, anchor: str, line: int) -> Node:
        if anchor not in self.anchors:
            raise _DocumentError(line, f"alias '*{anchor}' to what is not above it")
        return msgspec.structs.replace(self.anchors[anchor], line=line)


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _DocumentError(line, _syntax_problem(error, text, line)) from error
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        found = f"character #x{error.character:02x}; expected printable text"
        raise _DocumentError(line, found) from error


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    lines = text.splitlines()
    if line <= len(lines) and "\t" in lines[line - 1][: -len(lines[line - 1].lstrip()) or None]:
        return "indented with a tab; expected spaces"
    context = f"{error.context}, " if error.context else ""
    return f"not YAML: {context}{error.problem}"


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
