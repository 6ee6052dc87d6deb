"""What `verify` and `judge` leave behind: a table, JSON, a page, XML for build servers."""

import argparse
import os
from pathlib import Path

from rich.table import Table

from disksla.commands._console import SafeConsole
from disksla.errors import DiskslaError
from disksla.verification import SuiteTestResult, VerificationReport
from disksla.verification.report import VERDICT_WORDS, MeasuredLevel, encode_report
from disksla.verification.report_html import report_html
from disksla.verification.report_junit import report_junit
from disksla.verification.wording import format_amount, format_percent, format_subject

_LEVELS: dict[MeasuredLevel, str] = {"base": "base", "burst": "burst", "burst_then_base": "both"}
_STYLES = {"pass": "green", "fail": "bold red", "unmeasured": "yellow"}


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --html and --junit."""
    parser.add_argument("--json", action="store_true", help="print the account as JSON")
    for option, what in (
        ("--html", "one page with charts, for a browser or for paper"),
        ("--junit", "JUnit XML, for build servers"),
    ):
        parser.add_argument(option, type=Path, metavar="FILE", help=f"write it as {what}")


def check_report_files(arguments: argparse.Namespace) -> None:
    """Refuse, before anybody waits, reports that could not be written in the end."""
    for path in (arguments.html, arguments.junit):
        if path is None:
            continue
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise DiskslaError(
                f"{path} cannot be written; expected a file in a directory of yours"
            )


def write_report(arguments: argparse.Namespace, verification: VerificationReport) -> None:
    """Print the account and write the files that were asked for."""
    if arguments.json:
        print(encode_report(verification).decode(), end="")
    else:
        _print(verification)
    if arguments.html is not None:
        _write(arguments.html, report_html(verification).encode())
    if arguments.junit is not None:
        _write(arguments.junit, report_junit(verification))


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise DiskslaError(f"{path} cannot be written: {error.strerror}") from error


def _print(verification: VerificationReport) -> None:
    console = SafeConsole()
    console.print(_table(verification))
    console.print()
    for reason in dict.fromkeys(result.reason for result in verification.tests if result.reason):
        tests = ", ".join(result.test for result in verification.tests if result.reason == reason)
        console.print(f"{tests}: {reason}")
    for violation in verification.violations:
        console.print(f"condition violated: {violation.message}", style="yellow")
    for words in verification.unjudged:
        console.print(f"not judged: {words}", style="yellow")
    style = {"kept": "bold green", "broken": "bold red"}.get(verification.verdict, "bold yellow")
    subject = format_subject(verification)
    console.print(f"{subject}: {VERDICT_WORDS[verification.verdict]}", style=style)


def _table(verification: VerificationReport) -> Table:
    has_levels = any(result.level for result in verification.tests)
    table = Table(box=None, pad_edge=False, padding=(0, 1 if has_levels else 2, 0, 0))
    table.add_column("test", no_wrap=True)
    for heading in ("required", "measured", "ratio", "needed"):
        table.add_column(heading, justify="right", no_wrap=True)
    if has_levels:
        table.add_column("level", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for result in verification.tests:
        table.add_row(*_cells(result, has_levels=has_levels), style=_STYLES.get(result.verdict))
    return table


def _cells(result: SuiteTestResult, *, has_levels: bool) -> list[str]:
    needed = "-" if result.required_ratio is None else f"{result.required_ratio:.0%}"
    level = [_LEVELS[result.level] if result.level else "-"] if has_levels else []
    return [
        result.test,
        format_amount(result.unit, result.required),
        format_amount(result.unit, result.measured),
        format_percent(result.ratio),
        needed,
        *level,
        result.verdict,
    ]
