"""`disksla doctor`: check everything that must be right on this machine."""

import argparse

from disksla import VERSION
from disksla.base.console import to_json
from disksla.commands._daemon import add_url
from disksla.commands._option_table import add_options
from disksla.commands._options import add_config_file, add_paths, add_web_config_file, roots_of
from disksla.commands.doctor_checks import CheckResult, counts, examine, in_groups, worst
from disksla.commands.doctor_checks.gather_facts import gather
from disksla.promise.configuration.settings_file import file_in_force
from disksla.tell.page import FactList, Heading, Line, Piece, Styled, Words
from disksla.tell.printed_page import print_parts

_STYLES = {"ok": "good", "note": "note", "wrong": "bad"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --url, the configuration files and --path.*."""
    add_options(parser, "--json  print the results as JSON, for other programs")
    add_url(parser)
    add_config_file(parser)
    add_web_config_file(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the result of each check. Return 0 if nothing is wrong, else 1."""
    config_file = file_in_force(arguments.config_file)
    facts = gather(roots_of(arguments), config_file, arguments.web_config_file, arguments.url)
    results = list(examine(facts))
    if arguments.json:
        print(to_json({"version": VERSION, "status": worst(results), "checks": results}))
    else:
        print_results(results)
    return 1 if worst(results) == "wrong" else 0


def print_results(results: list[CheckResult]) -> None:
    """Print the results in groups, the worst last.

    A fix is on one line, however long, so that it can be copied.
    """
    found = counts(results)
    notes = f"{found['note']} note{'' if found['note'] == 1 else 's'}"
    summary = f"{found['ok']} ok, {notes}, {found['wrong']} wrong"
    for name, group in in_groups(results):
        facts = FactList([_fact(result) for result in group])
        print_parts([Heading(name), facts])
        print()
    print_parts([Line(Styled(summary, _STYLES[worst(results)]))])


def _fact(result: CheckResult) -> tuple[Piece, Words]:
    subject = f"{result.subject}: " if result.subject else ""
    lines: list[Piece] = [f"{subject}{result.found}"]
    if result.expected:
        lines.append(Styled(f"expected {result.expected}", "soft"))
    if result.fix:
        lines.append(Styled(f"fix: {result.fix}", "copied"))
    return Styled(f"  {result.status:4}", _STYLES[result.status]), tuple(lines)
