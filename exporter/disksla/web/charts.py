"""Charts of the history of a disk, as SVG without scripts.

Colours are classes of the page, so that they follow its theme. Each chart has a text for screen
readers.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from disksla.history import COLUMNS, Slot, joined
from disksla.text import escape_html
from disksla.units import format_bandwidth, format_count, format_duration, format_percent
from disksla.verdict import SHOWN, SHOWN_WORDS, Shown

_WIDTH, _HEIGHT = 240, 48
_STRIP_HEIGHT = 14
_COLUMN = _WIDTH / COLUMNS


def verdict_strip(columns: Sequence[Slot | None], period: str) -> str:
    """Return a strip of the shares of all verdicts over time."""
    parts, x = [], 0.0
    for shares, equal in groupby(map(_shares, columns)):
        width = len(list(equal)) * _COLUMN
        top = float(_STRIP_HEIGHT)
        for verdict, share in shares:
            height = _STRIP_HEIGHT * share
            top -= height
            parts.append(
                f'<rect class="{verdict}" x="{x:g}" y="{top:.2f}"'
                f' width="{width:g}" height="{height:.2f}"/>'
            )
        x += width
    whole = joined([column for column in columns if column is not None])
    words = ", ".join(
        f"{SHOWN_WORDS[shown]} {format_duration(seconds)}"
        for shown, seconds in whole.shown_s.items()
        if seconds >= 1
    )
    label = f"The last {period}: {words or 'none yet'}"
    return _svg(label, _STRIP_HEIGHT, "".join(parts))


def _shares(column: Slot | None) -> tuple[tuple[Shown, float], ...]:
    """Return the share of each verdict that a column has; nothing without a column."""
    if column is None:
        return ()
    whole_s = sum(column.verdict_s)
    return tuple(
        (shown, seconds / whole_s) for shown, seconds in column.shown_s.items() if seconds
    )


def line_charts(
    columns: Sequence[Slot | None],
    period: str,
    iops_limit: float | None = None,
    bandwidth_limit: float | None = None,
) -> str:
    """Return charts of IOPS, throughput, latency and queue depth; of credits where there are any.

    A limit is a dashed line; None without one, or where reads and writes have their own.
    """
    charts = [
        _chart(
            "IOPS",
            [c and c.least_iops for c in columns],
            format_count,
            period,
            iops_limit,
            most=[c and c.iops for c in columns],
        ),
        _chart(
            "Throughput",
            [c and c.bytes_per_second for c in columns],
            format_bandwidth,
            period,
            bandwidth_limit,
        ),
        _chart("Latency", [c and c.latency_s for c in columns], format_duration, period),
        _chart("Queue depth", [c and c.queue_depth for c in columns], format_count, period),
    ]
    left = [c and c.credits_ratio for c in columns]
    if any(ratio is not None for ratio in left):
        charts.append(_chart("Burst credits", left, format_percent, period, top=1.0))
    return f'<div class="charts">{"".join(charts)}</div>'


def _chart(
    title: str,
    values: Sequence[float | None],
    format_value: Callable[[float], str],
    period: str,
    limit: float | None = None,
    top: float | None = None,
    most: Sequence[float | None] = (),
) -> str:
    """Return an area chart with its last and its highest value in words.

    Values that are not certain are between `values` and `most`, which has a lighter area.
    """
    known = [value for value in values if value is not None]
    at_most = [value for value in most or values if value is not None]
    highest = max(at_most, default=0.0)
    scale = (top or max(highest, limit or 0.0)) * 1.05 or 1.0
    now = _between(known[-1], at_most[-1], format_value) if known else "none yet"
    peak = f"max {format_value(highest)}" if known and top is None else ""
    dashed = ""
    if limit is not None:
        height = _y(limit, scale)
        dashed = f'<line class="limit" x1="0" x2="{_WIDTH}" y1="{height}" y2="{height}"/>'
    words = [f"{title} of the last {period}"]
    if known:
        words.append(f"now {now}")
        words.append(f"at most {format_value(highest)}")
    if limit is not None:
        words.append(f"limit {format_value(limit)}")
    base = f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>'
    doubt = "".join(_areas(most, scale)) if at_most != known else ""
    content = f"{base}{doubt}{''.join(_areas(values, scale))}{dashed}"
    return (
        f"<figure><figcaption><span>{escape_html(title)}</span><b>{now}</b><span>{peak}</span>"
        f"</figcaption>{_svg(', '.join(words), _HEIGHT, content)}</figure>"
    )


def _between(least: float, most: float, format_value: Callable[[float], str]) -> str:
    lower, upper = format_value(least), format_value(most)
    return lower if lower == upper else f"{lower} to {upper}"


def _areas(values: Sequence[float | None], scale: float) -> list[str]:
    """Return the area under each run of values without a gap."""
    areas, run, x = [], [], 0.0
    for y, equal in groupby(None if value is None else _y(value, scale) for value in values):
        width = len(list(equal)) * _COLUMN
        if y is not None:
            run += [f"{x:g},{y}", f"{x + width:g},{y}"]
        elif run:
            areas.append(_area(run))
            run = []
        x += width
    return [*areas, _area(run)] if run else areas


def _area(run: Sequence[str]) -> str:
    first, last = run[0].partition(",")[0], run[-1].partition(",")[0]
    points = " ".join(run)
    return (
        f'<polygon class="area" points="{first},{_HEIGHT} {points} {last},{_HEIGHT}"/>'
        f'<polyline class="peak" points="{points}"/>'
    )


def _y(value: float, scale: float) -> str:
    return f"{_HEIGHT * (1 - value / scale):.2f}"


def verdict_key() -> str:
    """Return what the colours of a strip mean."""
    items = "".join(
        f'<span><svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{shown}" width="1"'
        f' height="1"/></svg> {SHOWN_WORDS[shown]}</span>'
        for shown in SHOWN
    )
    return f'<p class="key soft">{items}</p>'


def _svg(label: str, height: int, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape_html(label)}" viewBox="0 0 {_WIDTH} {height}"'
        f' height="{height}" preserveAspectRatio="none">{content}</svg>'
    )
