"""Reading the configuration file: YAML in, settings or a list of problems out."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import yaml
from apscheduler.triggers.cron import CronTrigger

from disksla.core.doors import CATALOGUE_ID, CRONTAB
from disksla.core.form import MOST_PROBLEMS, Node, Problem, Record, Rules, joined, read_form
from disksla.core.matching import provision_of
from disksla.core.promise import derive_limits
from disksla.core.refusal import Refusal
from disksla.core.settings import DiskEntry, Settings
from disksla.core.terms import Catalog
from disksla.core.units import MIB, TIB

LARGEST_FILE_BYTES = MIB

_DEEPEST_NESTING = 20
_LARGEST_DISK_BYTES = 1024 * TIB
"""Bounds of provisioning widen with the size: what is refused at this size is refused at all."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_settings(path: Path | None, catalog: Catalog) -> Settings:
    """Give the settings that a file states, or the defaults where there is no file.

    Raises one Refusal that names every problem, a line each, as `FILE:LINE: KEY: what was found;
    what would be right`.
    """
    if path is None:
        return Settings()
    try:
        with opened(path) as file:
            data = bounded_content(file)
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Refusal(f"{path} {error}; expected a configuration file") from error
    return parse_settings(data, str(path), catalog)


def opened(path: Path) -> BinaryIO:
    """Open a regular file: a reload must not wait for whoever would write to a pipe.

    Raises OSError, or ValueError for anything else than a file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("is no regular file")


def bounded_content(file: BinaryIO) -> bytes:
    """Read a file whole; raises ValueError where it is too large to be what was meant."""
    data = file.read(LARGEST_FILE_BYTES + 1)
    if len(data) > LARGEST_FILE_BYTES:
        raise ValueError("is larger than 1 MiB")
    return data


def parse_settings(data: bytes, name: str, catalog: Catalog) -> Settings:
    """Give the settings that the content of a file states; `name` stands before each problem."""
    return parse_record(data, name, Settings, _rules(catalog))


def parse_record(data: bytes, name: str, record: type[Record], rules: Rules) -> Record:
    """Give the record that YAML states; raises Refusal as `read_settings` does."""
    try:
        builder = _Builder(_text_of(data))
        value, problems = read_form(builder.document(), record, rules)
    except _BadDocument as bad:
        raise Refusal(f"{name}:{bad.problem.as_line()}") from bad
    all_problems = sorted([*builder.duplicates, *problems], key=lambda problem: problem.line)
    if value is None or all_problems:
        lines = [f"{name}:{problem.as_line()}" for problem in all_problems[:MOST_PROBLEMS]]
        if len(all_problems) >= MOST_PROBLEMS:
            lines.append(f"{name}: no more than {MOST_PROBLEMS} problems are listed")
        raise Refusal("\n".join(lines))
    return value


def _rules(catalog: Catalog) -> Rules:
    """Give what only others know: ids of the catalogue and what they need, and times of jobs."""

    def known(text: str) -> str:
        try:
            return catalog[CATALOGUE_ID.parse(text)].id
        except Refusal as refusal:
            raise ValueError(str(refusal)) from refusal

    def derivable(entry: DiskEntry) -> None:
        if isinstance(entry.terms, str):
            size_bytes = entry.size_bytes or _LARGEST_DISK_BYTES
            try:
                derive_limits(catalog[entry.terms], size_bytes, provision_of(entry))
            except Refusal as refusal:
                raise ValueError(str(refusal)) from refusal

    return {CATALOGUE_ID: known, DiskEntry: derivable, CRONTAB: _schedulable}


def _schedulable(text: str) -> str:
    """Give a crontab line that whoever runs the jobs understands."""
    line: str = CRONTAB.parse(text)
    try:
        CronTrigger.from_crontab(line, timezone="UTC")
    except ValueError as error:
        raise ValueError(f"found '{text}' ({error}); expected {CRONTAB.expected}") from error
    return line


class _BadDocument(Exception):  # noqa: N818 -- what is wrong is the text, not this program
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
        raise _BadDocument(line, found) from error


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
            raise _BadDocument(_line(after), "a second document; expected one only")
        return Node(1, {}) if node.value is None else node

    def node(self, event: Any, path: str, depth: int) -> Node:
        line = _line(event)
        if depth > _DEEPEST_NESTING:
            raise _BadDocument(line, f"nested more than {_DEEPEST_NESTING} deep")
        if isinstance(event, yaml.AliasEvent):
            return self.aliased(str(event.anchor), line)
        if event.tag is not None:
            raise _BadDocument(line, f"tag '{event.tag}'; expected plain values without tags")
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
                raise _BadDocument(key.line, "a key that is no text; expected a name")
            place = joined(path, key.value)
            value = self.node(next(self.events), place, depth + 1)
            if key.value in entries:
                text = f"given twice, first in line {entries[key.value].line}; expected it once"
                self.duplicates.append(Problem(key.line, place, text))
            entries.setdefault(key.value, msgspec.structs.replace(value, line=key.line))
        return entries

    def aliased(self, anchor: str, line: int) -> Node:
        if anchor not in self.anchors:
            raise _BadDocument(line, f"alias '*{anchor}' to what is not above it")
        return msgspec.structs.replace(self.anchors[anchor], line=line)


def _events(text: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _BadDocument(line, _syntax_problem(error, text, line)) from error
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        found = f"character #x{error.character:02x}; expected printable text"
        raise _BadDocument(line, found) from error


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, line: int) -> str:
    lines = text.splitlines()
    if line <= len(lines) and "\t" in lines[line - 1][: -len(lines[line - 1].lstrip()) or None]:
        return "indented with a tab; expected spaces"
    context = f"{error.context}, " if error.context else ""
    return f"not YAML: {context}{error.problem}"


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
