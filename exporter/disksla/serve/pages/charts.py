"""Charts of the history of a disk, as SVG that needs no script.

Colours are classes of the page, so that they follow its theme. Each chart has a text for screen
readers. The numbers of a path are the values of its columns: the script of the page reads them
there to show those of a moment.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal, NamedTuple

from disksla.base.text import escape_html
from disksla.base.units import (
    KIB,
    MIB,
    format_bandwidth,
    format_count,
    format_duration,
    format_percent,
)
from disksla.promise.catalogue import Limits
from disksla.state.history import COLUMNS, History, Slot, columns_of, total_slot
from disksla.tell.explanation import SHOWN, SHOWN_TEXT, Shown, read_and_write, seconds_of
from disksla.tell.page import Drawing
from disksla.verdict.throttling import LimitKind

_STRIP_HEIGHT = 14
_TOP, _HEIGHT = 13, 64
"""Pixels above the highest value of a scale, for its label, and below it."""
_LABEL_HEIGHT = 11.0
_STROKE = 'vector-effect="non-scaling-stroke"'
_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
Unit = Literal["count", "bandwidth", "duration", "percent"]
_FORMATS: Mapping[Unit, Callable[[float], str]] = {
    "count": format_count,
    "bandwidth": format_bandwidth,
    "duration": format_duration,
    "percent": format_percent,
}
Values = Sequence[float | None]


class Chart(NamedTuple):
    """What a chart shows, column by column."""

    title: str
    unit: Unit
    whole: Values
    """The values that its words are about."""
    most: Values = ()
    """What they are at most, where they are not certain."""
    areas: Mapping[str, Values] = {}
    lines: Mapping[str, Values] = {}
    """By the class of each."""
    limits: Mapping[str, float] = {}
    top: float | None = None
    """The highest value of the scale; None if it follows from the values."""


class ChartPeriod(NamedTuple):
    """The time that charts show."""

    title: str
    seconds: float
    monotonic_s: float
    """When it ends: a multiple of the time of a column, so that a column keeps its time."""
    end_s: float
    """The same since 1970."""

    @property
    def column_s(self) -> float:
        """Time of one column."""
        return self.seconds / COLUMNS


def period_until(title: str, seconds: float, history: History) -> ChartPeriod:
    """Return the period of whole columns up to the one of the last slot."""
    now_s = history.at_s or 0.0
    column_s = seconds / COLUMNS
    monotonic_s = math.ceil(now_s / column_s) * column_s
    return ChartPeriod(
        title, seconds, monotonic_s, round(history.realtime_s + monotonic_s - now_s)
    )


def verdict_strip(slots: Sequence[Slot], period: ChartPeriod) -> str:
    """Return a strip of the shares of all verdicts over time."""
    columns = columns_of(slots, period.monotonic_s, period.column_s)
    parts, x = [], 0
    for shares, equal in groupby(map(_shares, columns)):
        width = len(list(equal))
        top = float(_STRIP_HEIGHT)
        for verdict, share in shares:
            height = _STRIP_HEIGHT * share
            top -= height
            parts.append(
                f'<rect class="{verdict}" x="{x}" y="{top:.2f}"'
                f' width="{width}" height="{height:.2f}"/>'
            )
        x += width
    whole = total_slot([column for column in columns if column is not None])
    words = ", ".join(
        f"{SHOWN_TEXT[shown].words} {format_duration(seconds)}"
        for shown, seconds in seconds_of(whole).shown.items()
        if seconds >= 1
    )
    return (
        f'<svg class="strip" role="img" height="{_STRIP_HEIGHT}" preserveAspectRatio="none"'
        f' aria-label="The last {period.title}: {words or "none yet"}"'
        f' viewBox="0 0 {COLUMNS} {_STRIP_HEIGHT}">{"".join(parts)}</svg>{_times(period)}'
    )


def _shares(column: Slot | None) -> tuple[tuple[Shown, float], ...]:
    """Return the share of each verdict that a column has; nothing without a column."""
    if column is None:
        return ()
    whole_s = sum(column.verdict_s)
    shown_s = seconds_of(column).shown
    return tuple((shown, seconds / whole_s) for shown, seconds in shown_s.items() if seconds)


def _times(period: ChartPeriod) -> str:
    """Return when a period begins and ends; the script of the page makes it local time."""
    begin, end = (
        datetime.fromtimestamp(at_s, UTC) for at_s in (period.end_s - period.seconds, period.end_s)
    )
    return (
        f'<p class="times"><time datetime="{begin:%Y-%m-%dT%H:%M:%SZ}">{begin:%H:%M:%S}</time>'
        f' <time datetime="{end:%Y-%m-%dT%H:%M:%SZ}">{end:%H:%M:%S} UTC</time></p>'
    )


def figure(chart: Chart, period: ChartPeriod) -> str:
    """Return a chart with its last values in words.

    Values that are not certain are between `whole` and `most`, which has a lighter area.
    """
    written = _FORMATS[chart.unit]
    known, at_most = _known(chart.whole), _known(chart.most or chart.whole)
    drawn = [at_most, *map(_known, chart.lines.values()), list(chart.limits.values())]
    highest = max((value for values in drawn for value in values), default=0.0)
    scale = chart.top or _scale(highest, chart.unit)
    now = _between(known[-1], at_most[-1], written) if known else "none yet"
    words = [f"{chart.title} of the last {period.title}"]
    if known:
        words += [f"now {now}", f"at most {written(max(at_most))}"]
    words += [f"{name} {written(rate)}" for name, rate in chart.limits.items()]
    paths = [
        f'<path class="{name}" {_STROKE} d="{_path(values)}"/>'
        for name, values in (*chart.areas.items(), *chart.lines.items())
        if values
    ]
    return (
        f'<figure data-unit="{chart.unit}">'
        f"<figcaption>{chart.title} <b>{now}</b>{_caption(chart, written)}</figcaption>"
        f'<svg role="img" aria-label="{", ".join(words)}" height="{_TOP + _HEIGHT}">'
        f"{_scale_label(chart, scale)}"
        f'<svg class="plot" y="{_TOP}" height="{_HEIGHT}" preserveAspectRatio="none"'
        f' viewBox="0 {-scale:g} {COLUMNS} {scale:g}">'
        f'<path class="axis" {_STROKE} d="M0 0H{COLUMNS}M0 {-scale:g}H{COLUMNS}"/>'
        f'<g transform="scale(1 -1)">{"".join(paths)}</g></svg>'
        f"{''.join(_limit_lines(chart.limits, scale, written))}</svg>{_times(period)}</figure>"
    )


def _scale_label(chart: Chart, scale: float) -> str:
    """Return the highest value of a scale; nothing where the label of a limit is in its place."""
    if _pixels_from_top(max(chart.limits.values(), default=0.0), scale) < _LABEL_HEIGHT:
        return ""
    return f'<text y="10">{_FORMATS[chart.unit](scale)}</text>'


def _pixels_from_top(value: float, scale: float) -> float:
    return _HEIGHT * (1 - value / scale)


def _known(values: Values) -> list[float]:
    return [value for value in values if value is not None]


def _scale(highest: float, unit: Unit) -> float:
    """Return a round number, in the unit in which it is written, that is not below another."""
    if highest <= 0:
        return 1.0
    unit_size = 1
    if unit == "bandwidth":
        unit_size = MIB if highest > 1000 * KIB else KIB if highest > 1000 else 1  # noqa: PLR2004
    number = highest / unit_size
    power = 10.0 ** math.floor(math.log10(number))
    step = next((each for each in _STEPS if each * power >= number), _STEPS[-1])
    return step * power * unit_size or 1.0  # what is too small for a scale is at its bottom


def _caption(chart: Chart, written: Callable[[float], str]) -> str:
    """Return the last value of each line that has a name."""
    last = {name: _known(values)[-1:] for name, values in chart.lines.items() if name != "line"}
    return "".join(
        f'<span class="{name}">{name} {written(value)}</span>'
        for name, values in last.items()
        for value in values
    )


def _between(least: float, most: float, written: Callable[[float], str]) -> str:
    lower, upper = written(least), written(most)
    return lower if lower == upper else f"{lower} to {upper}"


def _path(values: Values) -> str:
    """Return steps from column to column, from the axis and back to it for each run of values."""
    parts, x, is_open = [], 0, False
    for text, equal in groupby(None if value is None else f"{value:.4g}" for value in values):
        if text is not None:
            parts.append(f"{'' if is_open else f'M{x} 0'}V{text}")
        elif is_open:
            parts.append("V0")
        x += len(list(equal))
        is_open = text is not None
        if is_open:
            parts.append(f"H{x}")
    return "".join([*parts, "V0"] if is_open else parts)


def _limit_lines(
    limits: Mapping[str, float], scale: float, written: Callable[[float], str]
) -> Iterator[str]:
    """Yield a dashed line for each limit, with its name above it, or below it if that is taken."""
    taken = -_LABEL_HEIGHT
    for name, rate in sorted(limits.items(), key=lambda each: -each[1]):
        y = _TOP + _pixels_from_top(rate, scale)
        label = y - 3 if y - taken >= 2 * _LABEL_HEIGHT else y + _LABEL_HEIGHT - 1
        taken = max(y, label)
        yield (
            f'<line class="limit" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="name" paint-order="stroke" x="100%" y="{label:.1f}">'
            f"{name} {written(rate)}</text>"
        )


def verdict_key() -> Drawing:
    """Return what the colours of a strip mean."""
    items = "".join(
        f'<span><svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{shown}" width="1"'
        f' height="1"/></svg> {SHOWN_TEXT[shown].words}</span>'
        for shown in SHOWN
    )
    return Drawing(f'<p class="key soft">{items}</p>')


def history_charts(slots: Sequence[Slot], period: ChartPeriod, limits: Limits, device: str) -> str:
    """Return the strip of verdicts, and charts of IOPS, throughput, latency and queue depth.

    Burst credits have one where there are any.
    """
    columns = columns_of(slots, period.monotonic_s, period.column_s)
    charts = "".join(figure(chart, period) for chart in _charts(columns, limits))
    label = f"History of {device}; arrow keys read the values of a moment"
    return (
        f'<div class="charts" role="group" aria-label="{escape_html(label)}"'
        f' data-end="{period.end_s:.0f}" data-column="{period.column_s:g}">'
        f"{verdict_strip(slots, period)}<div>{charts}</div></div>"
    )


def _charts(columns: Sequence[Slot | None], limits: Limits) -> Iterator[Chart]:
    """Yield the charts of a disk."""

    def each(value: Callable[[Slot], float | None]) -> Values:
        return [None if column is None else value(column) for column in columns]

    iops = Chart(
        "IOPS",
        "count",
        each(lambda c: c.least_iops),
        each(lambda c: c.iops),
        lines={
            "reads": each(lambda c: c.totals.reads / c.seconds),
            "writes": each(lambda c: c.totals.least_writes / c.seconds),
        },
    )
    yield _beside_limits(iops, limits, "iops")
    throughput = Chart(
        "Throughput",
        "bandwidth",
        each(lambda c: c.bytes_per_second),
        lines={
            "reads": each(lambda c: c.totals.read_bytes / c.seconds),
            "writes": each(lambda c: c.totals.written_bytes / c.seconds),
        },
    )
    yield _beside_limits(throughput, limits, "bandwidth")
    yield Chart(
        "Latency",
        "duration",
        each(lambda c: c.latency_s),
        lines={
            "reads": each(lambda c: _mean(c.totals.read_s, c.totals.reads)),
            "writes": each(lambda c: _mean(c.totals.write_s, c.totals.writes)),
        },
        limits=_promised_latency(limits),
    )
    depth = each(lambda c: c.queue_depth)
    yield Chart("Queue depth", "count", depth, areas={"total": depth}, lines={"line": depth})
    left = each(lambda c: c.credits_ratio)
    if any(ratio is not None for ratio in left):
        yield Chart(
            "Burst credits", "percent", left, areas={"total": left}, lines={"line": left}, top=1.0
        )


def _beside_limits(chart: Chart, limits: Limits, kind: LimitKind) -> Chart:
    """Return a chart with limits, and with the sum as an area if reads and writes share them."""
    budget = limits.budget
    budget_kind = budget and (budget.iops if kind == "iops" else budget.bandwidth)
    if budget_kind == "separate":
        return chart._replace(limits=dict(_limits(limits, kind, "of each")))
    doubt = chart.most if chart.most != chart.whole else ()
    return chart._replace(
        areas={"doubt": doubt, "total": chart.whole}, limits=dict(_limits(limits, kind))
    )


def _limits(limits: Limits, kind: LimitKind, note: str = "") -> Iterator[tuple[str, float]]:
    """Yield the limits of a kind, by name; the note is of those that are not of the sum."""
    rates = [("limit", limits.rates)]
    if limits.burst is not None:
        rates = [("baseline", limits.rates), ("burst", limits.burst.rates)]
    for name, each in rates:
        read, write = read_and_write(each, kind)
        if read is not None and read == write:
            yield f"{name} {note}".rstrip(), read
            continue
        for direction, rate in (("reads", read), ("writes", write)):
            if rate is not None:
                yield f"{name} of {direction}", rate


def _promised_latency(limits: Limits) -> dict[str, float]:
    name: str = limits.latency_kind or "promised"
    read, write = limits.latency_of("read"), limits.latency_of("write")
    found = {name: read}
    if read != write:
        found = {f"{name} of reads": read, f"{name} of writes": write}
    return {name: latency_s for name, latency_s in found.items() if latency_s is not None}


def _mean(seconds: float, requests: float) -> float | None:
    return seconds / requests if requests else None
