"""What `verify` and `judge` leave behind: a table, JSON, a page, XML for build servers."""

import argparse
import os
from pathlib import Path

from rich.table import Table

from disksla.commands.terminal import Terminal
from disksla.core.refusal import Refusal
from disksla.core.verification import VERDICT_WORDS, JudgedLine, Level, Verification, encode
from disksla.exposition.junit import junit_xml
from disksla.exposition.verificationpage import verification_page
from disksla.exposition.verificationwords import (
    amount_words,
    percent_words,
    subject_words,
)

_LEVELS: dict[Level, str] = {"base": "base", "burst": "burst", "burst_then_base": "both"}
_STYLES = {"pass": "green", "fail": "bold red", "unmeasured": "yellow"}


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --html and --junit."""
    parser.add_argument("--json", action="store_true", help="print the account as JSON")
    for option, what in (
        ("--html", "one page with charts, for a browser or for paper"),
        ("--junit", "JUnit XML, for build servers"),
    ):
        parser.add_argument(option, type=Path, metavar="FILE", help=f"write it as {what}")


def refuse_unwritable(arguments: argparse.Namespace) -> None:
    """Refuse, before anybody waits, reports that could not be written in the end."""
    for path in (arguments.html, arguments.junit):
        if path is None:
            continue
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise Refusal(f"{path} cannot be written; expected a file in a directory of yours")


def report(arguments: argparse.Namespace, verification: Verification) -> None:
    """Print the account and write the files that were asked for."""
    if arguments.json:
        print(encode(verification).decode(), end="")
    else:
        _print(verification)
    if arguments.html is not None:
        _write(arguments.html, verification_page(verification).encode())
    if arguments.junit is not None:
        _write(arguments.junit, junit_xml(verification))


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror}") from error


def _print(verification: Verification) -> None:
    console = Terminal()
    console.print(_table(verification))
    console.print()
    for reason in dict.fromkeys(line.reason for line in verification.lines if line.reason):
        tests = ", ".join(line.test for line in verification.lines if line.reason == reason)
        console.print(f"{tests}: {reason}")
    for violation in verification.violations:
        console.print(f"condition violated: {violation.words}", style="yellow")
    for words in verification.unjudged:
        console.print(f"not judged: {words}", style="yellow")
    style = {"kept": "bold green", "broken": "bold red"}.get(verification.verdict, "bold yellow")
    subject = subject_words(verification)
    console.print(f"{subject}: {VERDICT_WORDS[verification.verdict]}", style=style)


def _table(verification: Verification) -> Table:
    has_levels = any(line.level for line in verification.lines)
    table = Table(box=None, pad_edge=False, padding=(0, 1 if has_levels else 2, 0, 0))
    table.add_column("test", no_wrap=True)
    for heading in ("required", "measured", "ratio", "needed"):
        table.add_column(heading, justify="right", no_wrap=True)
    if has_levels:
        table.add_column("level", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for line in verification.lines:
        table.add_row(*_cells(line, has_levels=has_levels), style=_STYLES.get(line.verdict))
    return table


def _cells(line: JudgedLine, *, has_levels: bool) -> list[str]:
    needed = "-" if line.required_ratio is None else f"{line.required_ratio:.0%}"
    level = [_LEVELS[line.level] if line.level else "-"] if has_levels else []
    return [
        line.test,
        amount_words(line.unit, line.required),
        amount_words(line.unit, line.measured),
        percent_words(line.ratio),
        needed,
        *level,
        line.verdict,
    ]
