"""Reads the catalogue: the files of this package, and those of the operator in `catalog.d/`.

A file has a row for each type of disk. Quantities have their usual units (32GiB, 15MiB/s, 0.5ms)
and become bytes, bytes per second and seconds.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.schema import Overrides
from disksla.base.schema.yaml_file import parse_document, read_file
from disksla.promise.catalogue.examples import check_examples
from disksla.promise.catalogue.terms import Catalog, Terms

_OPERATOR: Overrides = {Terms: check_examples}


class _CatalogFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    terms: tuple[Terms, ...] = ()
    common: Any = None  # anchors, for aliases and merge keys in the rows


def load_catalog(directory: Path | None = None) -> Catalog:
    """Return all terms of this package, and those of the operator's files in `directory`.

    Raise one DiskslaError that lists every problem of these files, a line each.
    """
    loader = _Loader(*_package())
    for path in operator_files(directory) if directory is not None else ():
        loader.add_file(path)
    return loader.catalog()


def catalog_with(operators: Mapping[str, str]) -> Catalog:
    """Return all terms of this package, and those of the contents of operator's files by path.

    Raise DiskslaError as `load_catalog` does.
    """
    loader = _Loader(*_package())
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
    loader = _Loader((), {})
    loader.add(data, name, _OPERATOR)
    return loader.catalog()


@cache
def _package() -> tuple[tuple[Terms, ...], Mapping[str, str]]:
    """Return the rows of this package, and where each name is; they do not change."""
    loader = _Loader((), {})
    for path in sorted(Path(__file__).with_name("providers").glob("*.yaml")):
        loader.add(path.read_bytes(), str(path), {})  # tests check the examples
    return loader.catalog().rows, loader.places


class _Loader:
    """Collects the rows of several files, and their problems."""

    def __init__(self, rows: tuple[Terms, ...], places: Mapping[str, str]) -> None:
        """Begin with the rows of other files, and the places of their names."""
        self.places = dict(places)
        self._rows = list(rows)
        self._problems: list[str] = []

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
        content, found = document.read(_CatalogFile, overrides)
        problems = [*found]
        rows = content.terms if content is not None else ()
        for path, row_name in _names(rows):
            place = document.place(path)
            first = self.places.setdefault(row_name, place)
            if first is not place:
                text = f"found '{row_name}', which exists in {first}; expected another id"
                problems.append(document.problem(path, text))
        self._problems += document.lines(problems)
        self._rows += rows


def _names(rows: tuple[Terms, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the names of the rows, each with its path in the file."""
    for index, row in enumerate(rows):
        for name in row.names:
            yield ("terms", index, *_path_of(row, name)), name


def _path_of(row: Terms, name: str) -> tuple[str | int, ...]:
    if name == row.id:
        return ("id",)
    if name in row.aliases:
        return "aliases", row.aliases.index(name)
    return "api_names", row.api_names.index(name.partition(".")[2])
