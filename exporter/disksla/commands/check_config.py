"""`disksla check-config`: name every problem of configuration files."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from disksla.commands._options import add_web_config_file
from disksla.config.settings_file import read_settings
from disksla.errors import DiskslaError
from disksla.limits.catalog import load_catalog
from disksla.web import WebConfig, describe
from disksla.web.config_file import read_web_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add FILE and --web.config.file."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", help="YAML configuration to check"
    )
    add_web_config_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what a good file says in one line, or each problem of a bad one on stderr."""
    checks: list[tuple[Path | None, Callable[[Path], str]]] = [
        (arguments.file, _settings_in_words),
        (arguments.web_config_file, _web_config_in_words),
    ]
    given = [(path, in_words) for path, in_words in checks if path is not None]
    if not given:
        raise DiskslaError("nothing to check: expected FILE, or --web.config.file FILE, or both")
    status = 0
    for path, in_words in given:
        try:
            print(f"{path}: good: {in_words(path)}")
        except DiskslaError as problems:  # a line each, for editors that jump to FILE:LINE
            print(problems, file=sys.stderr)
            status = 2
    return status


def _settings_in_words(path: Path) -> str:
    settings = read_settings(path, load_catalog())
    disks = _counted(len(settings.disks), "disk")
    probes = _counted(len(settings.probes), "probe")
    return f"{disks}, {probes}"


def _web_config_in_words(path: Path) -> str:
    file = read_web_file(path)
    if file.problem is not None:
        raise DiskslaError(file.problem)
    return describe(file.config or WebConfig())


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
