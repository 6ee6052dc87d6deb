"""Which charts a disk has: what they show, in which unit, and beside which limits."""

from collections.abc import Callable, Iterator, Sequence

from disksla.base.text import escape_html
from disksla.promise.catalogue import Limits
from disksla.serve.pages.charts import Chart, ChartPeriod, Values, figure, verdict_strip
from disksla.state.history import Slot, columns_of
from disksla.tell.explanation import read_and_write
from disksla.verdict.throttling import LimitKind


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
