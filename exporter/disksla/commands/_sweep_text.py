"""How a sweep is put before people and programs: its announcement, table and JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.table import Table

from disksla.benchmark import SweepHeader, SweepRow
from disksla.benchmark.sweep_cost import cost_warnings
from disksla.benchmark.sweep_matrix import total_s
from disksla.commands._console import SafeConsole
from disksla.limits import Limits
from disksla.units import format_bandwidth, format_count, format_duration, format_size


def announcement(header: SweepHeader, limits: Limits, finished: int) -> Iterator[str]:
    """Say, in sentences and before it begins, what a sweep does and takes."""
    plan, disk = header.plan, header.disk
    cells = len(plan.cells())
    seconds = total_s(plan, finished)
    where = (
        f"a file of our own in {header.directory} ({format_size(header.file_bytes or 0)})"
        if header.directory
        else "the device itself, which is only read"
    )
    left = f" {cells - finished} of them are left." if finished else ""
    yield (
        f"{disk.name}, {format_size(disk.size_bytes)}: {cells} cells of"
        f" {format_duration(plan.runtime_s)} each on {where}.{left}"
    )
    writing = ", after the file was written" if header.directory else ""
    yield f"That takes about {format_duration(seconds)}{writing}."
    if plan.left_out:
        yield (
            f"{plan.left_out} cells with writes are left out: a device is never written."
            " With --file DIR they are measured too, on a file of our own."
        )
    yield from cost_warnings(limits, seconds)


def print_table(header: SweepHeader, rows: tuple[SweepRow, ...]) -> None:
    """Print the rows in the columns of the article, a table for each number of workers."""
    console = SafeConsole()
    for workers in header.plan.workers:
        of_these = [row for row in rows if row.cell.workers == workers]
        title = f"{header.disk.name}, {workers} worker{'' if workers == 1 else 's'}"
        console.print(title, style="bold")
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for heading in ("size", "workload", "avg. response", "IOPS", "bandwidth"):
            table.add_column(heading, justify="left" if heading == "workload" else "right")
        for row in of_these:
            cell, latency_s = row.cell, row.mean_latency_s
            table.add_row(
                format_size(cell.request_bytes),
                f"{1 - cell.random_share:.0%} seq, {cell.read_share:.0%} read",
                "-" if latency_s is None else format_duration(latency_s),
                format_count(row.iops),
                format_bandwidth(row.bytes_per_second),
            )
        console.print(table)
        console.print()


def document(header: SweepHeader, rows: tuple[SweepRow, ...]) -> dict[str, Any]:
    """Give a sweep for JSON, in base units."""
    return {
        "device": header.disk.name,
        "identity": header.disk,
        "directory": header.directory,
        "file_bytes": header.file_bytes,
        "plan": header.plan,
        "started_at_seconds": header.started_at_s,
        "cells": [
            {
                **msgspec.structs.asdict(row.cell),
                "mean_latency_seconds": row.mean_latency_s,
                "iops": row.iops,
                "bytes_per_second": row.bytes_per_second,
            }
            for row in rows
        ],
    }
