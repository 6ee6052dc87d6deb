"""`disksla catalog`: list all known terms, with their sources."""

import argparse

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from disksla.commands._console import to_json
from disksla.limits import Terms
from disksla.limits.catalog import load_catalog


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print all that is known: laws, conditions, caps, former names, examples, sources",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    rows = load_catalog().rows
    if arguments.json:
        print(to_json(rows))
    else:
        Console().print(_table(rows))
    return 0


def _table(rows: tuple[Terms, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("title")
    table.add_column("budget", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    for terms in rows:
        newest = max(source.date for source in terms.sources)
        table.add_row(terms.id, terms.title, terms.budget or "-", str(newest))
    return table
