"""`disksla watch 30s`: sample without an installation, and say what was seen."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from disksla.base.console import SafeConsole
from disksla.base.units import format_duration
from disksla.commands import record
from disksla.commands._context import add_context_arguments, read_all
from disksla.commands._options import duration_s
from disksla.commands._recent import FollowedStates, from_recording, from_sample, print_recent
from disksla.commands.replay import replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "duration_s",
        type=duration_s,
        nargs="?",
        default="30s",
        metavar="TIME",
        help="how long to sample; the last five minutes are described (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="record it to this file, to attach to a question; it must not exist; compressed if"
        " the name ends in .gz",
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sample all disks, and print what they did, and how to send what was seen."""
    if arguments.output is None:
        recent = from_sample(arguments, read_all(arguments))
    else:
        named: Mapping[str, object] = {"file": arguments.output}
        record.run(argparse.Namespace(**vars(arguments), **named))
        recent = from_recording(FollowedStates(replay(arguments.output, None)))
    print_recent(recent, list(recent.disks))
    SafeConsole().print(f"\n{_offer(arguments.output, arguments.duration_s)}")
    return 0


def _offer(file: Path | None, seconds: float) -> str:
    """Return how to send what was seen."""
    if file is None:
        return (
            "To ask somebody else, do it again while the disk is slow, with --output"
            " watch.jsonl.gz, and attach that file."
        )
    return (
        f"Attach {file} to your question. It has the counters of all disks for"
        f" {format_duration(seconds)}, their names, serials and mount points, and the"
        " configuration, but no data of any disk."
        f" disksla explain --recording {file.name} says the same on any machine."
    )
