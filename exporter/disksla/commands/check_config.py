"""`disksla check-config`: check configuration files and list every problem."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import default_roots
from disksla.commands._options import add_config_file, add_web_config_file
from disksla.kernel.disks.inventory import read_disks
from disksla.promise.catalogue import Catalog
from disksla.promise.catalogue.catalog import load_catalog, operator_files
from disksla.promise.configuration import (
    DiskEntry,
    shadowed_entries,
    unused_entries,
    with_kubernetes_volumes,
)
from disksla.promise.configuration.settings_file import (
    DEFAULT_FILE,
    TermsDirectory,
    beyond_catalog,
    catalog_directory,
    file_in_force,
    read_configuration,
    terms_directories,
    with_terms_files,
)
from disksla.promise.configuration.terms_directory import read_terms_files
from disksla.serve.http_server import WebConfig, describe
from disksla.serve.http_server.config_file import read_web_file
from disksla.tell.limits_text import binary_gb_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config.file and --web.config.file."""
    add_config_file(
        parser,
        "YAML configuration to check, with the files in catalog.d/ and terms.d/ beside it"
        f" (default: {DEFAULT_FILE}, unless only the web configuration is named)",
    )
    add_web_config_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each valid file on stdout, or each problem on stderr."""
    file = arguments.config_file
    if file is None and arguments.web_config_file is None:
        file = file_in_force(None)
    checks: list[tuple[Path | None, Callable[[Path], Iterator[str]]]] = [
        (file, _check_configuration),
        (arguments.web_config_file, _check_web_config),
    ]
    given = [(path, check) for path, check in checks if path is not None]
    if not given:
        raise DiskslaError(f"nothing to check: no {DEFAULT_FILE}; expected --config.file FILE")
    status = 0
    for path, check in given:
        try:
            for line in check(path):
                print(line)
        except DiskslaError as problems:  # a line each, for editors that jump to FILE:LINE
            print(problems, file=sys.stderr)
            status = 2
    return status


def _check_configuration(path: Path) -> Iterator[str]:
    configuration = read_configuration(path)
    entries = _counted(len(configuration.settings.disks), "disk")
    probes = _counted(len(configuration.settings.probes), "probe")
    yield f"{path}: good: {entries}, {probes}"
    for note in beyond_catalog(configuration):
        yield f"{path}: note: {note}; used as it is, because providers raise their maxima"
    for index, entry in enumerate(configuration.settings.disks):
        in_gb = _size_note(entry, configuration.catalog)
        if in_gb is not None:
            yield f"{path}: note: disks[{index}]: {in_gb}"
    shadowed = shadowed_entries(configuration.settings)
    for index, earlier in shadowed.items():
        yield f"{path}: note: disks[{index}] applies to no disk: disks[{earlier}] comes first"
    directory = catalog_directory(path)
    if directory.exists():
        number = _counted(len(operator_files(directory)), "file")
        rows = _counted(len(configuration.catalog.rows) - len(load_catalog().rows), "row")
        yield f"{directory}: good: {number}, {rows}"
    terms_directory, _ = terms_directories(path, configuration.settings)
    if os.path.lexists(terms_directory.path):
        yield from _check_terms(terms_directory, configuration.catalog)
        terms, _ = read_terms_files([terms_directory])
        configuration = with_terms_files(configuration, terms)
    if path == DEFAULT_FILE:
        files = configuration.terms_files
        disks = with_kubernetes_volumes(read_disks(default_roots()).disks, files)
        for unused in unused_entries(disks, configuration.settings, files):
            yield f"{DEFAULT_FILE}: note: {unused.describe()}"
    if configuration.machine_problem is not None:
        yield f"{path}: note: {configuration.machine_problem}"


def _size_note(entry: DiskEntry, catalog: Catalog) -> str | None:
    """Return what the size of an entry is for a provider that writes GB for GiB."""
    row = catalog.find(entry.terms) if isinstance(entry.terms, str) else None
    if row is None or not row.binary_gb or not isinstance(entry.size, str):
        return None
    return binary_gb_note(row, entry.size)


def _check_terms(directory: TermsDirectory, catalog: Catalog) -> Iterator[str]:
    """Yield a line for the terms files of a directory, and a note for each unknown type."""
    files, problems = read_terms_files([directory])
    if problems:
        raise DiskslaError("\n".join(problems))
    entries = [(file, index, entry) for file in files for index, entry in file.entries()]
    counted = f"{_counted(len(files), 'file')}, {_counted(len(entries), 'disk')}"
    yield f"{directory.path}: good: {counted}"
    for file, index, entry in entries:
        if isinstance(entry.terms, str) and catalog.find(entry.terms) is None:
            yield (
                f"{file.name}: note: disks[{index}]: the catalogue has no '{entry.terms}'; its"
                " disks are monitored without limits"
            )


def _check_web_config(path: Path) -> Iterator[str]:
    file = read_web_file(path)
    if file.problem is not None:
        raise DiskslaError(file.problem)
    yield f"{path}: good: {describe(file.config or WebConfig())}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
