"""Options for the log of a process that runs until it is stopped."""

import argparse


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
