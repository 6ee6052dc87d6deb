"""`disksla catalog`: list the terms of the catalogue."""

import argparse

from rich.box import SIMPLE_HEAD
from rich.table import Table

from disksla.commands._console import SafeConsole, to_json
from disksla.commands._options import add_config_file
from disksla.config.settings_file import catalog_directory
from disksla.limits import Terms
from disksla.limits.catalog import load_catalog

CONFIG_FILE_HELP = (
    "YAML configuration; catalog.d/ beside it is read too (default: catalog.d/ in /etc/disksla)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and --config.file."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a JSON list with all rules, conditions, former names, examples and sources",
    )
    add_config_file(parser, CONFIG_FILE_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    rows = load_catalog(catalog_directory(arguments.config_file)).rows
    if arguments.json:
        print(to_json(rows))
    else:
        SafeConsole().print(_table(rows))
    return 0


def _table(rows: tuple[Terms, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("title")
    table.add_column("budget", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    for terms in rows:
        newest = max((str(source.date) for source in terms.sources), default="-")
        table.add_row(terms.id, terms.title, terms.budget or "-", newest)
    return table
