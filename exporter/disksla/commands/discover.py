"""`disksla discover`: list the disks, what was recognised, and their limits."""

import argparse
from collections import defaultdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from disksla.commands.json_text import json_text
from disksla.commands.machine import Machine, add_machine_arguments, read_machine
from disksla.commands.promise_words import limits_document
from disksla.commands.terminal import Terminal
from disksla.core.disk import Disk
from disksla.core.units import format_bandwidth, format_count, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and where to look."""
    parser.add_argument(
        "--json", action="store_true", help="print a list of all devices, in base units"
    )
    add_machine_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the disks of this machine."""
    machine = read_machine(arguments)
    if arguments.json:
        print(json_text([_document(machine, disk) for disk in machine.disks]))
    else:
        _print(machine)
    return 0


def _document(machine: Machine, disk: Disk) -> dict[str, Any]:
    why_unwatched = machine.why_unwatched(disk)
    assignment = None if why_unwatched else machine.assignment(disk)
    return {
        "device": disk.name,
        "identity": {
            field: getattr(disk, field) for field in disk.__struct_fields__ if field != "name"
        },
        "watched": assignment is not None,
        "terms": assignment.terms if assignment else None,
        "provider": assignment.provider if assignment else None,
        "reason": assignment.reason if assignment else why_unwatched,
        "limits": limits_document(assignment.limits) if assignment else None,
    }


def _print(machine: Machine) -> None:
    console = Terminal()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("disk", no_wrap=True)
    table.add_column("size", no_wrap=True)
    table.add_column("model, serial", overflow="fold")
    table.add_column("terms, mounts", overflow="fold")
    table.add_column("reads", no_wrap=True, justify="right")
    table.add_column("writes", no_wrap=True, justify="right")
    unwatched: defaultdict[str, list[str]] = defaultdict(list)
    for disk in machine.disks:
        if why := machine.why_unwatched(disk):
            unwatched[why].append(disk.name)
        else:
            table.add_row(*_row(machine, disk))
    if table.row_count:
        console.print(table)
    else:
        console.print("No disk is watched.")
    if unwatched:
        groups = "; ".join(f"{', '.join(names)} ({why})" for why, names in unwatched.items())
        console.print(Text(f"\nNot watched: {groups}", style="dim"))


def _row(machine: Machine, disk: Disk) -> list[Text]:
    assignment = machine.assignment(disk)
    rates = assignment.limits.rates
    return [
        Text(disk.name),
        Text(format_size(disk.size_bytes)),
        _lines(disk.model, disk.serial),
        _lines(assignment.terms, ", ".join(disk.mount_points)),
        _promise(rates.read_iops, rates.read_bytes_per_second),
        _promise(rates.write_iops, rates.write_bytes_per_second),
    ]


def _promise(iops: float | None, bytes_per_second: float | None) -> Text:
    return _lines(
        None if iops is None else f"{format_count(iops)} IOPS",
        None if bytes_per_second is None else format_bandwidth(bytes_per_second),
    )


def _lines(*values: str | None) -> Text:
    return Text("\n".join(value for value in values if value) or "-")
