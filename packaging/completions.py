"""Generate shell completion: `python packaging/completions.py bash|zsh|fish`.

shtab generates it from the parser. This module adds which values are files, devices or terms.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping

import shtab

from commandline import arguments, commands, placeholder
from disksla.commands.cli import build_parser
from disksla.promise.catalogue.catalog import load_catalog

SHELLS = ("bash", "zsh", "fish")

DEVICES = {
    "bash": "_disksla_devices",
    "zsh": "{_values device /sys/class/block/*(:t)}",
    "fish": "(ls /sys/class/block)",
}
DEVICES_OF_BASH = """\
_disksla_devices() {
  compgen -W "$(ls /sys/class/block 2>/dev/null)" -- "$1"
}
"""
KINDS: Mapping[str, Mapping[str, object]] = {
    "DEVICE": DEVICES,
    "NAME": DEVICES,
    "DIR": shtab.DIRECTORY,
    "FILE": shtab.FILE,
    "RESULT": shtab.FILE,
}
"""Completion of a value, by its placeholder in help."""


def script(parser: argparse.ArgumentParser, shell: str, terms: Iterable[str]) -> str:
    """Return the completion script for a shell of SHELLS; `terms` are the ids of all terms."""
    ids = tuple(terms)
    for command in commands(parser).values():
        for action in arguments(command):
            name = placeholder(action)
            if name in {"TERMS", "ID"}:
                action.choices = ids
            elif name in KINDS:
                # shtab reads this attribute, which argparse does not declare.
                vars(action)["complete"] = KINDS[name]
    return str(shtab.complete(parser, shell, preamble=DEVICES_OF_BASH if shell == "bash" else ""))


if __name__ == "__main__":
    [_, shell] = sys.argv
    ids = [terms.id for terms in load_catalog().rows]
    sys.stdout.write(script(build_parser(), shell, ids))
