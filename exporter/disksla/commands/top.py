"""`disksla top`: what all disks do, live, those with problems first."""

import argparse
import itertools
import logging
import os
import shutil
import signal
import sys
import time

import msgspec

from disksla.base.console import SafeConsole
from disksla.base.errors import DiskslaError
from disksla.base.text import escape_control
from disksla.commands._context import add_context_arguments, prepare_sampler, stop_on_signal
from disksla.commands._daemon import access_of, add_remote_url, disks_of_daemon
from disksla.commands._option_table import add_options
from disksla.commands._options import duration_s, roots_of
from disksla.serve.metrics.render import read_build_info
from disksla.tell.api import DisksDocument
from disksla.tell.top import Look, block, in_ascii
from disksla.tell.top.sources import AskedDaemon, DiskSource, OwnSampler
from disksla.tell.top.terminal import TopTerminal

_LEAST_INTERVAL_S = 0.1
_BATCH_WIDTH = 160
"""Columns of text that is not for a terminal, unless COLUMNS is set."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_remote_url(parser)
    add_options(
        parser,
        """
--interval TIME  time between two updates (default: %(default)s)
-b, --batch      print blocks of plain text, as without a terminal
-n, --count N    print this many blocks, as with --batch (default: until Ctrl-C)
--json           print one JSON object per update instead of a block
""",
        {"--interval": {"type": duration_s, "default": "1s"}, "--count": {"type": _count}},
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the disks until the user quits, or print them."""
    if arguments.interval < _LEAST_INTERVAL_S:
        raise DiskslaError(f"--interval: found '{arguments.interval:g}s'; expected 100ms or more")
    console = SafeConsole()
    is_batch = arguments.batch or arguments.json or arguments.count is not None
    is_live = sys.stdin.isatty() and console.is_terminal and not console.is_dumb_terminal
    source = _source(arguments)
    try:
        if is_live and not is_batch:
            return _show(console, source, arguments.interval)
        _print(source, arguments)
    finally:
        source.close()
    return 0


def _source(arguments: argparse.Namespace) -> DiskSource:
    """Return the daemon if it answers, otherwise our own sampler."""
    if disks_of_daemon(arguments, "sampling instead") is not None:
        return AskedDaemon(arguments.url, access_of(arguments))
    logging.getLogger("disksla").addHandler(logging.NullHandler())  # problems are shown
    sampler = prepare_sampler(arguments)
    return OwnSampler(sampler, roots_of(arguments), os.uname().nodename, read_build_info().version)


def _show(console: SafeConsole, source: DiskSource, interval_s: float) -> int:
    """Show the disks live; return the exit status, which is 0 after Ctrl-C as well."""
    has_colours = console.color_system is not None and not console.no_color
    look = _look(source)._replace(has_blocks=_has_blocks(), has_colours=has_colours)
    with stop_on_signal() as stopped:
        TopTerminal(console, source, look).show(interval_s, lambda: stopped.by is not None)
    return 0 if stopped.by in {None, signal.SIGINT} else 128 + (stopped.by or 0)


def _has_blocks() -> bool:
    """Return whether the terminal has characters beyond ASCII; the console of Linux lacks blocks.

    The locale decides, because Python writes UTF-8 in the locale C as well.
    """
    variables = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, variables), "").lower().replace("-", "")
    is_utf_8 = "utf8" in locale and sys.stdout.encoding.lower() == "utf-8"
    return is_utf_8 and os.environ.get("TERM") != "linux"


def _look(source: DiskSource) -> Look:
    utc_offset_s = time.localtime().tm_gmtoff
    return Look(source.title, has_blocks=False, has_colours=False, utc_offset_s=utc_offset_s)


def _print(source: DiskSource, arguments: argparse.Namespace) -> None:
    """Print blocks, or JSON objects, until there are enough of them."""
    interval_s = arguments.interval
    if isinstance(source, OwnSampler):
        time.sleep(interval_s)
    due_s = time.monotonic()
    for printed in itertools.count():
        if printed == arguments.count:
            return
        if printed:
            due_s = max(due_s + interval_s, time.monotonic())
            time.sleep(max(0.0, due_s - time.monotonic()))
        document = _next(source, interval_s)
        sys.stdout.write(
            msgspec.json.encode(document).decode() + "\n"
            if arguments.json
            else _block(document, source)
        )
        sys.stdout.flush()


def _next(source: DiskSource, interval_s: float) -> DisksDocument:
    """Return the next answer; wait for it, and say so, if there is none."""
    has_said_so = False
    while True:
        document = source.read()
        if document is not None:
            return document
        if not has_said_so:
            reason = f": {source.reason}" if isinstance(source, AskedDaemon) else ""
            line = escape_control(f"disksla: no answer{reason}; waiting for the next")
            print(line.replace("\n", " "), file=sys.stderr)
            has_said_so = True
        time.sleep(interval_s)


def _block(document: DisksDocument, source: DiskSource) -> str:
    if sys.stdout.encoding.lower() != "utf-8":
        document = in_ascii(document)
    width = shutil.get_terminal_size((_BATCH_WIDTH, 0)).columns
    return block(document, width, _look(source)._replace(problem=source.problem)) + "\n"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"found '{text}'; expected a number above zero")
    return int(text)
