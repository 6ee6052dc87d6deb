"""Reports of `verify` and `judge`: table, JSON and HTML page."""

import argparse
import os
from pathlib import Path

from disksla.base.console import write_file
from disksla.base.errors import DiskslaError
from disksla.measure.verification import VerificationReport
from disksla.measure.verification.report import encode_report
from disksla.measure.verification.report_page import report_html, report_page
from disksla.tell.printed_page import print_parts


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and --html."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="also write the report to FILE as an HTML page with charts",
    )


def check_report_files(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError, before anything is measured, if the page cannot be written."""
    path = arguments.html
    if path is None:
        return
    is_file = not path.is_dir() and not path.is_block_device()
    if not is_file or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DiskslaError(f"cannot write {path}; choose a file in a writable directory")


def write_report(arguments: argparse.Namespace, report: VerificationReport) -> None:
    """Print the report, and write it to the file of --html."""
    if arguments.json:
        print(encode_report(report).decode(), end="")
    else:
        print_parts(report_page(report))
    if arguments.html is not None:
        write_file(arguments.html, report_html(report).encode())
