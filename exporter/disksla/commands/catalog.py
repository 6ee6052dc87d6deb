"""`disksla catalog`: list the terms of the catalogue."""

import argparse

from rich.box import SIMPLE_HEAD
from rich.table import Table

from disksla.base.console import SafeConsole, to_json
from disksla.base.errors import DiskslaError
from disksla.commands._options import add_config_file
from disksla.promise.catalogue import Terms
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.settings_file import catalog_directory

_DATE = "2026-11-22"
CONFIG_FILE_HELP = (
    "YAML configuration; catalog.d/ beside it is read too (default: catalog.d/ in /etc/disksla)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add PROVIDER, --json and --config.file."""
    parser.add_argument(
        "provider", metavar="PROVIDER", nargs="?", help="only the types of a provider, such as aws"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a JSON list with all rules, conditions, former names, examples and sources",
    )
    add_config_file(parser, CONFIG_FILE_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Print the catalogue."""
    rows = _of(arguments.provider, load_catalog(catalog_directory(arguments.config_file)).rows)
    if arguments.json:
        print(to_json(rows))
    else:
        console = SafeConsole()
        console.print(_table(rows, console.width))
    return 0


def _of(provider: str | None, rows: tuple[Terms, ...]) -> tuple[Terms, ...]:
    """Return the rows of a provider, or all. Raise DiskslaError if the provider is unknown."""
    providers = sorted({row.provider for row in rows})
    if provider is not None and provider not in providers:
        raise DiskslaError(f"unknown provider '{provider}'; expected {', '.join(providers)}")
    return tuple(row for row in rows if provider in {None, row.provider})


def _table(rows: tuple[Terms, ...], width: int) -> Table:
    """Return a table that fits in a width: long titles are cut."""
    id_width = max((len(row.id) for row in rows), default=0)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("id", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    left = width - id_width - len(_DATE) - 4
    table.add_column("title", no_wrap=True, overflow="ellipsis", max_width=max(10, left))
    for terms in rows:
        newest = max((str(source.date) for source in terms.sources), default="-")
        table.add_row(terms.id, newest, terms.title)
    return table
