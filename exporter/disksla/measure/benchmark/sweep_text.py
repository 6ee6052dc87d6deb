"""Output of `disksla sweep`: the announcement, the tables and the JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.table import Table

from disksla.base.console import SafeConsole
from disksla.base.units import format_bandwidth, format_count, format_duration, format_size
from disksla.measure.benchmark.sweep_journal import SweepHeader
from disksla.measure.benchmark.sweep_matrix import SweepRow
from disksla.promise.catalogue import Limits


def announcement(header: SweepHeader, limits: Limits, finished: int) -> Iterator[str]:
    """Yield what a sweep will do and cost, as sentences."""
    plan, disk = header.plan, header.disk
    cells = len(plan.cells())
    seconds = (cells - finished) * plan.cell_s
    where = (
        f"a scratch file of {format_size(header.file_bytes or 0)} in {header.directory}"
        if header.directory
        else "the device itself (read only)"
    )
    left = f" Cells left to measure: {cells - finished}." if finished else ""
    yield (
        f"{disk.name}, {format_size(disk.size_bytes)}: {cells} cells of"
        f" {format_duration(plan.runtime_s)} each on {where}.{left}"
    )
    writing = ", plus the time to write the file" if header.directory else ""
    yield f"This takes about {format_duration(seconds)}{writing}."
    if plan.skipped_cells:
        yield (
            f"{plan.skipped_cells} cells with writes are skipped: a device is never written."
            " To measure them on a scratch file, use --file DIR."
        )
    yield from cost_warnings(limits, seconds)


def print_table(header: SweepHeader, rows: tuple[SweepRow, ...]) -> None:
    """Print a table for each number of workers, with the columns of the article."""
    console = SafeConsole()
    for workers in header.plan.workers:
        of_workers = [row for row in rows if row.cell.workers == workers]
        title = f"{header.disk.name}, {workers} worker{'' if workers == 1 else 's'}"
        console.print(title, style="bold")
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for heading in ("size", "workload", "avg. response", "IOPS", "bandwidth"):
            table.add_column(heading, justify="left" if heading == "workload" else "right")
        for row in of_workers:
            cell, latency_s = row.cell, row.mean_latency_s
            table.add_row(
                format_size(cell.request_bytes),
                cell.mixture,
                "-" if latency_s is None else format_duration(latency_s),
                format_count(row.iops),
                format_bandwidth(row.bytes_per_second),
            )
        console.print(table)
        console.print()


def document(header: SweepHeader, rows: tuple[SweepRow, ...]) -> dict[str, Any]:
    """Return a sweep for JSON, in base units."""
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


def cost_warnings(limits: Limits, seconds: float) -> Iterator[str]:
    """Yield what running at full speed for so long costs, as sentences; none without limits."""
    rates = limits.rates
    iops = max(rates.read_iops or 0.0, rates.write_iops or 0.0)
    bandwidth = max(rates.read_bytes_per_second or 0.0, rates.write_bytes_per_second or 0.0)
    used = [
        *([f"{format_count(iops)} IOPS"] if iops else []),
        *([format_bandwidth(bandwidth)] if bandwidth else []),
    ]
    if used:
        yield (
            f"The sweep uses the whole limit of the disk ({', '.join(used)}) for"
            f" {format_duration(seconds)}; other programs that use the disk will slow down."
        )
    for bucket in limits.buckets:
        empty_s = bucket.seconds
        refill = format_duration(bucket.capacity / bucket.fill_per_second)
        if empty_s <= seconds:
            yield (
                f"The burst credits are used up after {format_duration(empty_s)} at most: cells"
                f" before that show the burst rate, cells after it the baseline. A full refill"
                f" takes {refill}."
            )
        else:
            yield (
                f"The sweep uses up to {seconds / empty_s:.0%} of the burst credits; a full refill"
                f" takes {refill}."
            )
