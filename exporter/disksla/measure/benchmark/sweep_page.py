"""What `disksla sweep` says: before it starts, and then as a page and as JSON."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from disksla.base.package_files import file_beside
from disksla.base.units import MIB, format_bandwidth, format_count, format_duration, format_size
from disksla.measure.benchmark.sweep_matrix import (
    RANDOM_SHARES,
    READ_SHARES,
    SweepHeader,
    SweepRow,
)
from disksla.promise.catalogue import Limits
from disksla.tell.page import (
    DataTable,
    Heading,
    HtmlPage,
    Line,
    PagePart,
    Section,
    Styled,
    html_of,
)

LEVELS = 8
_STEPS = "".join(f".l{level} {{ --level: {level}; }}\n" for level in range(LEVELS))
_SHEET = HtmlPage("\n" + file_beside(__file__, "sweep.css") + _STEPS)
_COLOURS = (
    "Rows are request sizes; columns are the share of random requests. Darker blue means more IOPS"
    " or bandwidth, darker orange a longer response time. Colours are on a logarithmic scale, the"
    " same in all maps of a kind."
)


def announcement(header: SweepHeader, limits: Limits, finished: int) -> Iterator[str]:
    """Yield what a sweep will do and cost, as sentences."""
    plan, disk = header.plan, header.disk
    cells = len(plan.cells())
    seconds = (cells - finished) * plan.cell_s
    where = "" if header.directory else " (read only)"
    left = f" Cells left to measure: {cells - finished}." if finished else ""
    yield (
        f"{disk.name}, {format_size(disk.size_bytes)}: {cells} cells of"
        f" {format_duration(plan.runtime_s)} each on {header.where}{where}.{left}"
    )
    writing = ", plus the time to write the file" if header.directory else ""
    yield f"This takes about {format_duration(seconds)}{writing}."
    if plan.skipped_cells:
        yield (
            f"{plan.skipped_cells} cells with writes are skipped: a device is never written."
            " To measure them on a scratch file, use --file DIR."
        )
    yield from cost_warnings(limits, seconds)


def _milliseconds(row: SweepRow) -> float | None:
    return None if row.mean_latency_s is None else 1000 * row.mean_latency_s


class _Measure(NamedTuple):
    """The quantity that one kind of map shows."""

    kind: str
    title: str
    value: Callable[[SweepRow], float | None]
    """In the unit of the title."""
    deep_level: int
    """Step of the colour from which white text is easier to read than dark text."""


_MEASURES = (
    _Measure("iops", "IOPS", lambda row: row.iops, 5),
    _Measure("latency", "Response time, ms", _milliseconds, 6),
    _Measure("bandwidth", "Bandwidth, MiB/s", lambda row: row.bytes_per_second / MIB, 5),
)


def sweep_html(header: SweepHeader, rows: Sequence[SweepRow], started: str) -> str:
    """Return the page as HTML; `started` is the date as text."""
    body = html_of(sweep_page(header, rows, started))
    return _SHEET.page(f"Sweep of {header.disk.name}", f"<main>\n{body}\n</main>")


def sweep_page(header: SweepHeader, rows: Sequence[SweepRow], started: str) -> Iterator[PagePart]:
    """Yield the parts of the page: for each number of workers a table, or maps in HTML."""
    disk, plan = header.disk, header.plan
    facts = (format_size(disk.size_bytes), disk.model, disk.serial)
    where = f"{header.where}{'' if header.directory else ', read only'}"
    yield Heading(f"Sweep of {disk.name}", level=1)
    yield Line(
        f"{', '.join(fact for fact in facts if fact)}; {where}; {len(rows)} of"
        f" {len(plan.cells())} cells, {format_duration(plan.runtime_s)} each; started {started};"
        f" disksla {header.disksla}",
        "soft",
    )
    yield Section((Line(_COLOURS, "soft"),), where="page")
    for workers in plan.workers:
        of_workers = [row for row in rows if row.cell.workers == workers]
        yield Heading(f"{workers} worker{'' if workers == 1 else 's'}")
        if not of_workers:
            yield Line("No cell was measured yet.", "soft")
        yield Section((_table(of_workers),), where="terminal")
        yield Section([*_maps(of_workers, rows)], where="page")


def _table(rows: Iterable[SweepRow]) -> DataTable:
    """Return a table with the columns of the article."""
    return DataTable(
        ("size", "workload", "avg. response", "IOPS", "bandwidth"),
        [
            (
                format_size(row.cell.request_bytes),
                row.cell.mixture,
                "-" if row.mean_latency_s is None else format_duration(row.mean_latency_s),
                format_count(row.iops),
                format_bandwidth(row.bytes_per_second),
            )
            for row in rows
        ],
        ("size", "avg. response", "IOPS", "bandwidth"),
    )


def _maps(rows: Sequence[SweepRow], all_rows: Sequence[SweepRow]) -> Iterator[Section]:
    """Yield the maps of one number of workers; with writes, each measure starts a line."""
    measured = {row.cell.read_share for row in rows}
    read_shares = [share for share in READ_SHARES if share in measured]
    lines = [[_map(each, share, rows, all_rows) for share in read_shares] for each in _MEASURES]
    if len(read_shares) == 1:
        lines = [list(chain.from_iterable(lines))]
    for maps in filter(None, lines):
        yield Section(maps, style="maps")


def _map(
    measure: _Measure, read_share: float, rows: Iterable[SweepRow], all_rows: Iterable[SweepRow]
) -> DataTable:
    """Return one map; its colours have the scale of all maps of the kind."""
    found = {
        (row.cell.request_bytes, row.cell.random_share): measure.value(row)
        for row in rows
        if row.cell.read_share == read_share
    }
    values = [value for row in all_rows if (value := measure.value(row))]
    scale = (min(values), max(values)) if values else (1.0, 1.0)
    mixture = {0.0: "writes only", 1.0: "reads only"}.get(read_share, f"{read_share:.0%} reads")
    return DataTable(
        ("random", *(f"{share:.0%}" for share in RANDOM_SHARES)),
        [
            (
                format_size(size),
                *(_cell(found.get((size, share)), measure, scale) for share in RANDOM_SHARES),
            )
            for size in sorted({size for size, _ in found})
        ],
        style=measure.kind,
        caption=(f"{measure.title} ", Styled(mixture, tag="small")),
    )


def _cell(value: float | None, measure: _Measure, scale: tuple[float, float]) -> Styled:
    if value is None:
        return Styled("–", "none")  # noqa: RUF001 -- en dash: no value
    level = _level(value, *scale)
    deep = " deep" if level >= measure.deep_level else ""
    return Styled(format_count(value), f"l{level}{deep}")


def _level(value: float, lowest: float, highest: float) -> int:
    """Return the step of the colour, 0 to LEVELS - 1, on a logarithmic scale."""
    if value <= lowest:
        return 0
    above, span = (math.log(end) - math.log(lowest) for end in (value, highest))
    return min(LEVELS - 1, int(LEVELS * above / span))


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
