"""Options for the log of a process that runs until it is stopped."""

import argparse
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


def add_path(parser: argparse.ArgumentParser, option: str, default: Path, what: str) -> None:
    """Add --path.OPTION."""
    parser.add_argument(
        f"--path.{option}",
        dest=f"path_{option.replace('-', '_')}",
        type=Path,
        default=default,
        metavar="DIR",
        help=f"{what} (default: %(default)s)",
    )
