"""`disksla discover`: list the disks, what was recognised, and their limits."""

import argparse
from collections import defaultdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from disksla.commands._console import SafeConsole, to_json
from disksla.commands._context import HostContext, add_context_arguments, read_context
from disksla.commands._limits_text import limits_document
from disksla.disks import Disk
from disksla.units import format_bandwidth, format_count, format_size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and where to look."""
    parser.add_argument(
        "--json", action="store_true", help="print a list of all devices, in base units"
    )
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the disks of this machine."""
    host = read_context(arguments)
    if arguments.json:
        print(to_json([_document(host, disk) for disk in host.disks]))
    else:
        _print(host)
    return 0


def _document(host: HostContext, disk: Disk) -> dict[str, Any]:
    why_unwatched = host.why_unwatched(disk)
    assignment = None if why_unwatched else host.assignment(disk)
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


def _print(host: HostContext) -> None:
    console = SafeConsole()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("disk", no_wrap=True)
    table.add_column("size", no_wrap=True)
    table.add_column("model, serial", overflow="fold")
    table.add_column("terms, mounts", overflow="fold")
    table.add_column("reads", no_wrap=True, justify="right")
    table.add_column("writes", no_wrap=True, justify="right")
    unwatched: defaultdict[str, list[str]] = defaultdict(list)
    for disk in host.disks:
        if why := host.why_unwatched(disk):
            unwatched[why].append(disk.name)
        else:
            table.add_row(*_row(host, disk))
    if table.row_count:
        console.print(table)
    else:
        console.print("No disk is watched.")
    if unwatched:
        groups = "; ".join(f"{', '.join(names)} ({why})" for why, names in unwatched.items())
        console.print(Text(f"\nNot watched: {groups}", style="dim"))


def _row(host: HostContext, disk: Disk) -> list[Text]:
    assignment = host.assignment(disk)
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
