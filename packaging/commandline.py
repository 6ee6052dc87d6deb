"""Read the commands and arguments of argparse, for the man page and the completions."""

import argparse
from collections.abc import Iterator, Mapping


def commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parser of each command, by name."""
    [subparsers] = [
        action
        for action in parser._actions  # noqa: SLF001 -- argparse has no public way
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    return subparsers.choices


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the positional arguments and options of one command, in the order of its help."""
    for action in parser._actions:  # noqa: SLF001 -- as above
        if not isinstance(action, argparse._HelpAction):  # noqa: SLF001
            yield action


def placeholder(action: argparse.Action) -> str:
    """Return the placeholder of the value in help; empty for a flag."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "|".join(action.choices)
    name = action.metavar or action.dest
    return name if isinstance(name, str) else " ".join(name)


def explanation(action: argparse.Action) -> str:
    """Return the help of an argument, including its default."""
    return (action.help or "") % vars(action)
