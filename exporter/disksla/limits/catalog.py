"""Reads the catalogue: the files of this package, and those of the operator in `catalog.d/`.

A file has a row for each type of disk. Quantities have their usual units (32GiB, 15MiB/s, 0.5ms)
and become bytes, bytes per second and seconds.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from disksla.errors import DiskslaError
from disksla.limits.examples import check_examples
from disksla.limits.terms import Catalog, Terms
from disksla.schema import Overrides
from disksla.schema.yaml_file import parse_document, read_file

_PACKAGE: Overrides = {}
"""Tests check the examples of the package; the daemon need not do it at every start."""
_OPERATOR: Overrides = {Terms: check_examples}


class _CatalogFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of one file."""

    terms: tuple[Terms, ...] = ()
    common: Any = None
    """Anchors, for aliases and merge keys in the rows."""


def load_catalog(directory: Path | None = None) -> Catalog:
    """Return all terms of this package, and those of the operator's files in `directory`.

    Raise one DiskslaError that lists every problem of these files, a line each.
    """
    loader = _package().copy()
    for path in operator_files(directory) if directory is not None else ():
        loader.add_file(path)
    return loader.catalog()


def catalog_with(operators: Mapping[str, str]) -> Catalog:
    """Return all terms of this package, and those of the contents of operator's files by path.

    Raise DiskslaError as `load_catalog` does.
    """
    loader = _package().copy()
    for name, content in operators.items():
        loader.add(content.encode(), name, _OPERATOR)
    return loader.catalog()


def operator_files(directory: Path) -> list[Path]:
    """Return the files `*.yml` of a directory by name; none if there is no such directory."""
    try:
        paths = sorted(directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DiskslaError(f"cannot read {directory}: {error.strerror}") from error
    return [path for path in paths if path.suffix == ".yml" and not path.name.startswith(".")]


def parse_catalog(data: bytes, name: str) -> Catalog:
    """Return the terms of one operator's file. Raise DiskslaError as `load_catalog` does."""
    loader = _Loader()
    loader.add(data, name, _OPERATOR)
    return loader.catalog()


@cache
def _package() -> "_Loader":
    """Return a loader that read the files of this package; they do not change while it runs."""
    loader = _Loader()
    for path in sorted(Path(__file__).with_name("providers").glob("*.yaml")):
        loader.add(path.read_bytes(), str(path), _PACKAGE)
    return loader


class _Loader:
    """Collects the rows of several files, and their problems."""

    def __init__(self) -> None:
        self._rows: list[Terms] = []
        self._places: dict[str, str] = {}
        self._problems: list[str] = []

    def copy(self) -> "_Loader":
        """Return a loader that has read the same files."""
        other = _Loader()
        other._rows += self._rows
        other._places |= self._places
        other._problems += self._problems
        return other

    def catalog(self) -> Catalog:
        """Return the rows. Raise DiskslaError if there were problems."""
        if self._problems:
            raise DiskslaError("\n".join(self._problems))
        return Catalog(self._rows)

    def add_file(self, path: Path) -> None:
        try:
            self.add(read_file(path), str(path), _OPERATOR)
        except DiskslaError as error:
            self._problems.append(str(error))

    def add(self, data: bytes, name: str, overrides: Overrides) -> None:
        document = parse_document(data, name)
        content, problems = document.read(_CatalogFile, overrides)
        for path, row_name in _names(content.terms if content is not None else ()):
            place = document.place(path)
            first = self._places.setdefault(row_name, place)
            if first is not place:
                text = f"found '{row_name}', which exists in {first}; expected another id"
                problems.append(document.problem(path, text))
        self._problems += document.lines(problems)
        self._rows += content.terms if content is not None else ()


def _names(rows: tuple[Terms, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the names of the rows, each with its path in the file."""
    for index, row in enumerate(rows):
        for name in row.names:
            yield ("terms", index, *_path_of(row, name)), name


def _path_of(row: Terms, name: str) -> tuple[str | int, ...]:
    """Return the place of a name in its row."""
    if name == row.id:
        return ("id",)
    if name in row.aliases:
        return "aliases", row.aliases.index(name)
    return "api_names", row.api_names.index(name.partition(".")[2])
