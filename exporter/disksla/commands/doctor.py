"""`disksla doctor`: check everything that must be right on this machine."""

import argparse
import textwrap

from rich.text import Text

from disksla import VERSION
from disksla.base.console import SafeConsole, to_json
from disksla.base.text import escape_control
from disksla.commands._daemon import add_url
from disksla.commands._options import add_config_file, add_paths, add_web_config_file, roots_of
from disksla.commands.doctor_checks import CheckResult, counts, examine, in_groups, worst
from disksla.commands.doctor_checks.gather_facts import Places, gather
from disksla.promise.configuration.settings_file import file_in_force

_STYLES = {"ok": "green", "note": "yellow", "wrong": "bold red"}
_INDENT = 9
"""Columns before the text of a result."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --url, the configuration files and --path.*."""
    parser.add_argument(
        "--json", action="store_true", help="print the results as JSON, for other programs"
    )
    add_url(parser)
    add_config_file(parser)
    add_web_config_file(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the result of each check. Return 0 if nothing is wrong, else 1."""
    config_file = file_in_force(arguments.config_file)
    places = Places(roots_of(arguments), config_file, arguments.web_config_file, arguments.url)
    results = list(examine(gather(places)))
    if arguments.json:
        print(to_json({"version": VERSION, "status": worst(results), "checks": results}))
    else:
        print_results(results)
    return 1 if worst(results) == "wrong" else 0


def print_results(results: list[CheckResult]) -> None:
    """Print the results in groups, the worst last.

    A fix is on one line, however long, so that it can be copied.
    """
    console = SafeConsole()
    for name, group in in_groups(results):
        console.print(name, style="bold")
        for result in group:
            _print_result(console, result)
        console.print()
    found = counts(results)
    notes = f"{found['note']} note{'' if found['note'] == 1 else 's'}"
    summary = f"{found['ok']} ok, {notes}, {found['wrong']} wrong"
    console.print(summary, style=_STYLES[worst(results)])


def _print_result(console: SafeConsole, result: CheckResult) -> None:
    subject = f"{result.subject}: " if result.subject else ""
    first, *rest = _wrapped(f"{subject}{result.found}", console.width)
    label = f"  {result.status:{_INDENT - 2}}"
    console.print(Text.assemble((label, _STYLES[result.status]), first))
    for line in rest:
        console.print(" " * _INDENT + line)
    if result.expected:
        for line in _wrapped(f"expected {result.expected}", console.width):
            console.print(" " * _INDENT + line, style="dim")
    if result.fix:
        console.print(f"{' ' * _INDENT}fix: {result.fix}", soft_wrap=True)


def _wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text beside the status; escaped first, so that they fit."""
    columns = max(_INDENT, width - _INDENT)
    return textwrap.wrap(escape_control(text), columns, break_on_hyphens=False) or [""]
