"""Reports of `verify` and `judge`: table, JSON, HTML page and JUnit XML."""

import argparse
import os
from pathlib import Path

from disksla.console import write_file
from disksla.errors import DiskslaError
from disksla.verification import VerificationReport
from disksla.verification.report import encode_report
from disksla.verification.report_html import report_html
from disksla.verification.report_junit import report_junit
from disksla.verification.report_text import print_report


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --html and --junit."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    for option, what in (
        ("--html", "an HTML page with charts"),
        ("--junit", "JUnit XML, for build servers"),
    ):
        parser.add_argument(
            option, type=Path, metavar="FILE", help=f"also write the report to FILE as {what}"
        )


def check_report_files(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError, before anything is measured, if a report cannot be written."""
    for path in (arguments.html, arguments.junit):
        if path is None:
            continue
        is_file = not path.is_dir() and not path.is_block_device()
        if not is_file or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise DiskslaError(f"cannot write {path}; choose a file in a writable directory")


def write_report(arguments: argparse.Namespace, report: VerificationReport) -> None:
    """Print the report, and write it to the files of --html and --junit."""
    if arguments.json:
        print(encode_report(report).decode(), end="")
    else:
        print_report(report)
    if arguments.html is not None:
        write_file(arguments.html, report_html(report).encode())
    if arguments.junit is not None:
        write_file(arguments.junit, report_junit(report))
