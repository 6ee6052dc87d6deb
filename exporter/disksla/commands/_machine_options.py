"""Options for the machine of a disk, by its type or its vCPUs."""

import argparse
import re

from disksla.commands._options import parse_optional
from disksla.errors import DiskslaError
from disksla.limits.machine import Machine, MachineRules
from disksla.limits.machine_tables import read_machine
from disksla.limits.terms import Terms


def add_machine(parser: argparse.ArgumentParser, what_for: str) -> None:
    """Add --machine and --vcpus."""
    machine = parser.add_mutually_exclusive_group()
    machine.add_argument(
        "--machine", metavar="TYPE", help=f"machine type, such as m5.large, {what_for}"
    )
    machine.add_argument(
        "--vcpus",
        metavar="N",
        help="vCPUs of the machine, where its limits follow from them (yandex)",
    )


def chosen_machine(
    arguments: argparse.Namespace, terms: Terms, rules: MachineRules | None
) -> Machine | None:
    """Return the machine of the options; None without one. Raise DiskslaError if it is unknown."""
    name, vcpus = arguments.machine, parse_optional("--vcpus", arguments.vcpus, _vcpus)
    if name is None and vcpus is None:
        return None
    if rules is None:
        raise DiskslaError(
            "found a machine; expected none: limits of the machines of"
            f" {terms.provider_name} are not known"
        )
    return read_machine(rules, name, vcpus)


def _vcpus(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,4}", text):
        raise ValueError(f"found '{text}'; expected a whole number above zero, such as 4")
    return int(text)
