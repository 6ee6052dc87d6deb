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
from disksla.commands.command_table import COMMANDS, PURPOSES

COULD_NOT = 2


class _TopParser(argparse.ArgumentParser):
    """Lists the commands by purpose."""

    def format_help(self) -> str:
        """Return the help of `disksla --help`."""
        lines = [self.format_usage(), self.description or ""]
        for purpose, title in PURPOSES.items():
            chosen = {name: each for name, each in COMMANDS.items() if each.purpose == purpose}
            lines += ["", title, *(f"  {name:14}{each.caption}" for name, each in chosen.items())]
        return "\n".join([*lines, "", "disksla COMMAND --help has the options of a command.", ""])


def build_parser(chosen: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of all commands, in which only `chosen` ones have their options.

    The module of a command is imported only if the command is chosen, so that it starts sooner.
    """
    parser = _TopParser(
        prog="disksla",
        usage="disksla [-h] [--version] COMMAND ...",
        description="Say why a cloud disk is slow, by what it was sold as.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"disksla {VERSION} (commit {REVISION})"
    )
    subparsers = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        prog="disksla",
        parser_class=argparse.ArgumentParser,
    )
    for name, command in COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            help=command.caption if command.purpose else argparse.SUPPRESS,
            description=command.description,
            epilog=command.epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name in chosen:
            module = importlib.import_module(f"disksla.commands.{name.replace('-', '_')}")
            module.add_arguments(subparser)
            subparser.usage = _usage(subparser)
            subparser.set_defaults(run=module.run, parser=subparser)
    parser.set_defaults(parsers=subparsers.choices)
    return parser


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage with positional arguments only: the options stand below it."""
    actions = parser._get_positional_actions()  # noqa: SLF001 -- argparse has no public way
    usage = argparse.HelpFormatter(parser.prog, width=200)
    usage.add_usage(None, actions, [], prefix="")
    return usage.format_help().strip().replace(parser.prog, f"{parser.prog} [OPTION ...]", 1)


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
