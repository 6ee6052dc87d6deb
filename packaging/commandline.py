"""The command line as data: what the man page and the completions are made from."""

import argparse
from collections.abc import Iterator, Mapping


def commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Give the parser of each command."""
    [chooser] = [
        action
        for action in parser._actions  # noqa: SLF001 -- argparse has no other way to be asked
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    return chooser.choices


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Give the positional arguments and options of one command, in the order of its help."""
    for action in parser._actions:  # noqa: SLF001 -- as above
        if not isinstance(action, argparse._HelpAction):  # noqa: SLF001
            yield action


def placeholder(action: argparse.Action) -> str:
    """Give what stands for the value in help; empty for a switch."""
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "|".join(action.choices)
    name = action.metavar or action.dest
    return name if isinstance(name, str) else " ".join(name)


def explanation(action: argparse.Action) -> str:
    """Give the help of an argument, its default filled in."""
    return (action.help or "") % vars(action)
