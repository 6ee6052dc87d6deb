"""Options for the log of a process that runs until it is stopped."""

import argparse
from collections.abc import Mapping
from pathlib import Path


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add --log.level and --log.format."""
    parser.add_argument(
        "--log.level",
        dest="log_level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="minimum severity of log lines (default: %(default)s)",
    )
    parser.add_argument(
        "--log.format",
        dest="log_format",
        choices=("logfmt", "json"),
        default="logfmt",
        help="format of log lines (default: %(default)s); in the systemd journal, lines begin with"
        " their severity and have no time",
    )


def add_paths_of(parser: argparse.ArgumentParser, defaults: Mapping[str, Path]) -> None:
    """Add --path.OPTION for each option, in a group at the end of the help."""
    group = parser.add_argument_group("paths of the host, such as inside a container")
    for option, default in defaults.items():
        group.add_argument(
            f"--path.{option}",
            dest=f"path_{option.replace('-', '_')}",
            type=Path,
            default=default,
            metavar="DIR",
            help="(default: %(default)s)",
        )
