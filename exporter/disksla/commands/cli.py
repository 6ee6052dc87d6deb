"""The command line: arguments in, exit status out (0 yes, 1 no, 2 could not)."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Collection, Sequence

from disksla import REVISION, VERSION
from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import error_lines
from disksla.base.text import escape_control

COULD_NOT = 2

COMMANDS = {
    "serve": "run the exporter: sample all disks and serve metrics",
    "once": "sample for a short time and print the metrics",
    "top": "show live what each disk does and what throttles it, worst first",
    "discover": "list the disks of this host with their terms and limits",
    "detect": "ask the cloud for the types and provisioned values of the disks",
    "ebs-statistics": "read what AWS counts of its disks, and pass it to the daemon",
    "open-events": "open performance events of the kernel, and pass them to the daemon",
    "explain": "show the limits of a disk and what throttled it lately",
    "watch": "sample for half a minute without an installation, and say what the disks did",
    "check": "check disks for Nagios, Icinga or CI: one line and an exit status",
    "advise": "say which limits would have been enough for a load",
    "limits": "compute the limits of a disk type for a size",
    "catalog": "list the disk types of all providers, with their sources",
    "probe": "measure the latency of a disk once, at a low rate",
    "doctor": "check everything that must be right on this machine, and name the fixes",
    "check-config": "validate a configuration file and list all its problems",
    "record": "record what is read from the kernel to a file, tick by tick",
    "replay": "run a recording through the pipeline of the exporter",
    "verify": "run the acceptance test of the provider on a disk",
    "judge": "compare results of fio or DiskSpd with the terms of a disk",
    "sweep": "measure a disk under all kinds of load",
    "identify": "measure whether a disk is an HDD, an SSD or another medium",
    "report": "write proof for the provider: compliance of disks in a period, from Prometheus",
}


def build_parser(chosen: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of all commands, in which only `chosen` ones have their options.

    The module of a command is imported only if the command is chosen, so that it starts sooner.
    """
    parser = argparse.ArgumentParser(
        prog="disksla",
        description="Explain why a cloud disk is slow: sample it every 100 ms and compare with"
        " what it was sold as.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"disksla {VERSION} (commit {REVISION})"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, caption in COMMANDS.items():
        description = f"{caption[0].upper()}{caption[1:]}."
        subparser = subparsers.add_parser(
            name, help=caption, description=description, allow_abbrev=False
        )
        if name in chosen:
            module = importlib.import_module(f"disksla.commands.{name.replace('-', '_')}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run, parser=subparser)
    parser.set_defaults(parsers=subparsers.choices)
    return parser


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments. Print a usage error of the command, and exit, if they are invalid."""
    chosen = [word for word in words if word in COMMANDS]
    parser = build_parser(chosen)
    if chosen and words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}:
        parser.get_default("parsers")[chosen[0]].error(
            f"found {words[0]} before the command; expected it after it: disksla {chosen[0]}"
            f" {words[0]} ..."
        )
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = parse_arguments(words)
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except DiskslaError as error:
        message = error_lines(f"disksla: {escape_control(str(error))}")
        print(message, file=sys.stderr)
        return COULD_NOT
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status
