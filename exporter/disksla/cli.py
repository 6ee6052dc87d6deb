"""The command line: arguments in, exit status out (0 yes, 1 no, 2 could not)."""

import argparse
import importlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Collection, Sequence

from disksla.errors import DiskslaError
from disksla.system.log import error_lines
from disksla.text import escape_control

COULD_NOT = 2

COMMANDS = {
    "serve": "watch the disks of this machine and serve what is seen",
    "once": "sample for a moment and print the metrics",
    "discover": "list the disks, what was recognised, and their limits",
    "explain": "say which terms a disk is held against, why, and how it does",
    "limits": "work out what terms promise for a size",
    "catalog": "list all known terms, with their sources",
    "probe": "measure the latency of a disk once, gently",
    "check-config": "name every problem of a configuration file",
    "record": "write what the machine says, tick by tick, to a file",
    "replay": "send a recording through the same reckoning",
    "verify": "test a disk as its provider does, and say whether the promise is kept",
    "judge": "hold a result of fio or DiskSpd that was made elsewhere against terms",
    "sweep": "measure the workload matrix of a disk",
    "identify": "say what medium a disk really is, by how it seeks",
}


def build_parser(chosen: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Give the parser of all commands; only `chosen` ones bring their options and their modules.

    The daemon must not carry what other commands need (tables, progress bars), so a command's
    module is loaded when the command is asked for.
    """
    parser = argparse.ArgumentParser(
        prog="disksla",
        description="Say why a cloud disk is slow: watch it and hold it against its terms.",
        allow_abbrev=False,
    )
    version = importlib.metadata.version("disksla-exporter")
    parser.add_argument("--version", action="version", version=f"disksla {version}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, caption in COMMANDS.items():
        description = f"{caption[0].upper()}{caption[1:]}."
        subparser = subparsers.add_parser(
            name, help=caption, description=description, allow_abbrev=False
        )
        if name in chosen:
            module = importlib.import_module(f"disksla.commands.{name.replace('-', '_')}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names and give its exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = build_parser([word for word in words if word in COMMANDS]).parse_args(words)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except DiskslaError as error:
        told = error_lines(f"disksla: {escape_control(str(error))}")
        print(told, file=sys.stderr)  # noqa: T201 -- that is what a person sees
        return COULD_NOT
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status
