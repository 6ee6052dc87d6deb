"""A sweep as a self-contained HTML page of heat maps, for screens, phones and print."""

import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

from disksla.base.package_files import file_beside
from disksla.base.text import escape_html
from disksla.base.units import MIB, format_count, format_duration, format_size
from disksla.measure.benchmark.sweep_journal import SweepHeader
from disksla.measure.benchmark.sweep_matrix import RANDOM_SHARES, READ_SHARES, SweepRow
from disksla.tell.html_page import HtmlPage

LEVELS = 8
_STEPS = "".join(f"td.l{level} {{ --level: {level}; }}\n" for level in range(LEVELS))
_SHEET = HtmlPage("\n" + file_beside(__file__, "sweep.css") + _STEPS)


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


def sweep_html(header: SweepHeader, rows: tuple[SweepRow, ...], started: str) -> str:
    """Return the page as HTML; `started` is the date as text."""
    disk = header.disk
    facts = (format_size(disk.size_bytes), disk.model, disk.serial)
    where = (
        f"a file of {format_size(header.file_bytes or 0)} in {header.directory}"
        if header.directory
        else "the device itself, read only"
    )
    sections = "\n".join(_section(workers, rows) for workers in header.plan.workers)
    body = f"""<h1>Sweep of {escape_html(disk.name)}</h1>
<p class="soft">{escape_html(", ".join(fact for fact in facts if fact))}; {escape_html(where)};
{len(rows)} of {len(header.plan.cells())} cells, {format_duration(header.plan.runtime_s)} each;
started {escape_html(started)}; disksla {escape_html(header.disksla)}</p>
<p class="soft">Rows are request sizes; columns are the share of random requests. Darker blue means
more IOPS or bandwidth, darker orange a longer response time. Colours are on a logarithmic scale,
which is the same in all maps of a kind.</p>
{sections}"""
    return _SHEET.page(f"Sweep of {disk.name}", f"<main>\n{body}\n</main>")


def _section(workers: int, rows: tuple[SweepRow, ...]) -> str:
    """Return the maps of one number of workers; with writes, each measure starts a line."""
    title = f"{workers} worker{'' if workers == 1 else 's'}"
    of_workers = [row for row in rows if row.cell.workers == workers]
    if not of_workers:
        return f'<h2>{title}</h2>\n<p class="soft">No cell was measured yet.</p>'
    measured = {row.cell.read_share for row in of_workers}
    read_shares = [share for share in READ_SHARES if share in measured]
    lines = [[_map(each, share, of_workers, rows) for share in read_shares] for each in _MEASURES]
    if len(read_shares) == 1:
        lines = [list(chain.from_iterable(lines))]
    body = "\n".join('<div class="maps">\n' + "\n".join(maps) + "\n</div>" for maps in lines)
    return f"<h2>{title}</h2>\n{body}"


def _map(
    measure: _Measure, read_share: float, rows: Iterable[SweepRow], all_rows: tuple[SweepRow, ...]
) -> str:
    """Return one map; its colours have the scale of all maps of the kind."""
    found = {
        (row.cell.request_bytes, row.cell.random_share): measure.value(row)
        for row in rows
        if row.cell.read_share == read_share
    }
    values = [value for row in all_rows if (value := measure.value(row))]
    scale = (min(values), max(values)) if values else (1.0, 1.0)
    heads = "".join(f'<th scope="col">{share:.0%}</th>' for share in RANDOM_SHARES)
    lines = "\n".join(
        f'<tr><th scope="row">{format_size(size)}</th>'
        + "".join(_cell(found.get((size, share)), measure, scale) for share in RANDOM_SHARES)
        + "</tr>"
        for size in sorted({size for size, _ in found})
    )
    mixture = {0.0: "writes only", 1.0: "reads only"}.get(read_share, f"{read_share:.0%} reads")
    return f"""<table class="{measure.kind}">
<caption>{measure.title} <small>{mixture}</small></caption>
<thead><tr><th scope="col">random</th>{heads}</tr></thead>
<tbody>
{lines}
</tbody>
</table>"""


def _cell(value: float | None, measure: _Measure, scale: tuple[float, float]) -> str:
    if value is None:
        return '<td class="none">–</td>'  # noqa: RUF001 -- en dash: no value
    level = _level(value, *scale)
    deep = " deep" if level >= measure.deep_level else ""
    return f'<td class="l{level}{deep}">{format_count(value)}</td>'


def _level(value: float, lowest: float, highest: float) -> int:
    """Return the step of the colour, 0 to LEVELS - 1, on a logarithmic scale."""
    if value <= lowest:
        return 0
    above, span = (math.log(end) - math.log(lowest) for end in (value, highest))
    return min(LEVELS - 1, int(LEVELS * above / span))
