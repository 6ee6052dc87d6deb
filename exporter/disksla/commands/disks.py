"""`disksla disks`: list the disks of this host with their terms and limits."""

import argparse
import sys
import time
from collections import defaultdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from disksla.base.console import SafeConsole, to_json
from disksla.base.operating_system import provider_of
from disksla.base.operating_system.machine import Roots, read_dmi
from disksla.base.text import escape_control
from disksla.base.units import format_bandwidth, format_count, format_size
from disksla.commands._context import HostContext, add_context_arguments, read_context
from disksla.commands._option_table import add_options
from disksla.commands._options import roots_of
from disksla.kernel.disks import Disk
from disksla.kernel.nfs import FileStorage
from disksla.kernel.nfs.nfs_files import read_file_storages
from disksla.promise.configuration import in_order, unused_entries
from disksla.tell.limits_text import limits_document


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json, --config.file and --path.*."""
    add_options(parser, "--json  print all block devices as JSON, in base units")
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the disks of this host."""
    host = read_context(arguments)
    if arguments.json:
        print(to_json([known_document(host, disk) for disk in in_order(host.disks)]))
    else:
        _print(host)
        _print_file_storages(host, roots_of(arguments))
    return 0


def known_document(host: HostContext, disk: Disk) -> dict[str, Any]:
    """Return identity, terms and limits of a disk for JSON, in base units."""
    exclusion = host.why_not_monitored(disk)
    assignment = None if exclusion else host.assignment(disk)
    return {
        "device": disk.name,
        "identity": {
            field: getattr(disk, field) for field in disk.__struct_fields__ if field != "name"
        },
        "monitored": assignment is not None,
        "terms": assignment.terms if assignment else None,
        "provider": assignment.provider if assignment else None,
        "reason": assignment.reason if assignment else exclusion,
        "terms_source": assignment.source if assignment else None,
        "said_by": (assignment.origin or None) if assignment else None,
        "as_of": assignment.as_of_timestamp_s if assignment else None,
        "limits": limits_document(assignment.limits) if assignment else None,
    }


def _print(host: HostContext) -> None:
    console = SafeConsole()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("disk", overflow="fold", max_width=28)
    table.add_column("size", no_wrap=True)
    table.add_column("model, serial, volume", overflow="fold")
    table.add_column("terms, mounts", overflow="fold")
    table.add_column("read limit", no_wrap=True, justify="right")
    table.add_column("write limit", no_wrap=True, justify="right")
    excluded: defaultdict[str, list[str]] = defaultdict(list)
    for disk in in_order(host.disks):
        if reason := host.why_not_monitored(disk):
            excluded[reason].append(disk.name)
        else:
            table.add_row(*_row(host, disk))
    if table.row_count:
        console.print(table)
    else:
        console.print("No disk is monitored.")
    if excluded:
        groups = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in excluded.items())
        console.print(Text(f"\nNot monitored: {groups}", style="dim"))
    for entry in unused_entries(host.disks, host.settings, host.configuration.terms_files):
        console.print(Text(f"\n{entry.describe()}", style="dim"))


def _row(host: HostContext, disk: Disk) -> list[Text]:
    assignment = host.assignment(disk)
    rates = assignment.limits.rates
    return [
        Text(disk.name),
        Text(disk.size_text),
        _cell(disk.model, *_identity(disk)),
        _cell(assignment.title, assignment.said_by(time.time()), ", ".join(disk.mount_points)),
        _limit_cell(rates.read_iops, rates.read_bytes_per_second),
        _limit_cell(rates.write_iops, rates.write_bytes_per_second),
    ]


def _identity(disk: Disk) -> tuple[str | None, ...]:
    """Return the serial number and the volume; the volume alone if it has the serial number."""
    if disk.is_local:
        return disk.serial, "local disk"
    if disk.volume is None:
        return (disk.serial,)
    volume = f"volume {disk.volume}"
    is_in_volume = (disk.serial or "").removeprefix("vol") in disk.volume
    return (volume,) if is_in_volume else (disk.serial, volume)


def _limit_cell(iops: float | None, bytes_per_second: float | None) -> Text:
    return _cell(
        None if iops is None else f"{format_count(iops)} IOPS",
        None if bytes_per_second is None else format_bandwidth(bytes_per_second),
    )


def _cell(*values: str | None) -> Text:
    return Text("\n".join(value for value in values if value) or "-")


def _print_file_storages(host: HostContext, roots: Roots) -> None:
    """Print which network file storages are mounted, and what is said of them."""
    try:
        storages, problems = read_file_storages(roots, provider_of(read_dmi(roots)))
    except OSError:  # said of the list of devices, too
        return
    console = SafeConsole()
    if storages:
        console.print()
    for storage in storages:
        console.print(Text(f"{storage.mount_point}: {_storage_text(host, storage)}"))
    for problem in problems:
        print(f"disksla: {escape_control(problem)}", file=sys.stderr)


def _storage_text(host: HostContext, storage: FileStorage) -> str:
    """Return what a file storage is, and its terms by the first entry for its mount point."""
    of_files = (entry for file in host.configuration.terms_files for _, entry in file.entries())
    for entry in (*host.settings.disks, *of_files):
        if entry.match.given() == {"mountpoint": storage.mount_point}:
            row = host.catalog.find(entry.terms) if isinstance(entry.terms, str) else None
            size_bytes = entry.size_bytes(binary_gb=row is not None and row.binary_gb)
            options = (f"{name}={value}" for name, value in entry.options.items())
            size = None if size_bytes is None else format_size(size_bytes)
            words = (storage.describe(), row and row.id, *options, size)
            return ", ".join(word for word in words if word)
    return f"{storage.describe()}, terms are not known"
