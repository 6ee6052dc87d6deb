"""`disksla check-config`: name every problem of a configuration file."""

import argparse
import sys
from pathlib import Path

from disksla.catalog import load_catalog
from disksla.core.refusal import Refusal
from disksla.runtime.configuration import read_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add FILE."""
    parser.add_argument("file", metavar="FILE", type=Path, help="YAML configuration to check")


def run(arguments: argparse.Namespace) -> int:
    """Print what a good file says in one line, or each problem of a bad one on stderr."""
    try:
        settings = read_settings(arguments.file, load_catalog())
    except Refusal as problems:  # a line each, for editors that jump to FILE:LINE
        print(problems, file=sys.stderr)
        return 2
    disks = _counted(len(settings.disks), "disk")
    probes = _counted(len(settings.probes), "probe")
    print(f"{arguments.file}: good: {disks}, {probes}")
    return 0


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
