"""Scrapes of one disk in a period, from the series of a Prometheus server."""

from collections import defaultdict
from collections.abc import Iterable

from disksla.advice import Scrape, Work
from disksla.detection.http import carry_out
from disksla.errors import DiskslaError
from disksla.report import Period, Selection, Server, find_disks
from disksla.report.gather import CHUNK_S
from disksla.report.query import Series, read_samples, selector

_WITHIN_S = 600.0
_LIMITED = ("throttled", "below", "stalled")
_VERDICT_SECONDS = "disksla_verdict_seconds_total"
_COUNTERS = {
    "reads": "disksla_reads_completed_total",
    "writes": "disksla_writes_completed_total",
    "read_bytes": "disksla_read_bytes_total",
    "written_bytes": "disksla_written_bytes_total",
}
_OPTIONAL = {
    "flushes": "disksla_flushes_completed_total",
    "data_writes": "disksla_data_writes_total",
}
_PEAKS = (
    "disksla_peak_read_iops",
    "disksla_peak_write_iops",
    "disksla_peak_read_bytes_per_second",
    "disksla_peak_written_bytes_per_second",
)


def read_scrapes(server: Server, name: str, period: Period) -> tuple[str, list[Scrape]]:
    """Return the title of the one disk of a name, and its scrapes. Raise DiskslaError."""
    found = carry_out(find_disks(server, Selection(patterns=(name,)), period), _WITHIN_S)
    if len(found) != 1:
        titles = ", ".join(disk.title for disk, _ in found) or "none"
        raise DiskslaError(f"advise failed: found {titles} for '{name}'; expected one disk")
    [(disk, _)] = found
    names = (*_COUNTERS.values(), *_OPTIONAL.values(), *_PEAKS, _VERDICT_SECONDS)
    matching = selector(names, dict(disk.labels))
    samples: list[Series] = []
    start_s, end_s = period.start_timestamp_s, period.end_timestamp_s
    for chunk_s in range(start_s, end_s, CHUNK_S):
        chunk_end_s = min(chunk_s + CHUNK_S, end_s)
        samples += carry_out(read_samples(server, matching, chunk_s, chunk_end_s), _WITHIN_S)
    return disk.title, scrapes_of(samples)


def scrapes_of(samples: Iterable[Series]) -> list[Scrape]:
    """Return the scrapes that have all counters, in order of time."""
    values: defaultdict[float, dict[tuple[str, str], float]] = defaultdict(dict)
    for series in samples:
        key = series.name, series.metric.get("verdict", "")
        for timestamp_s, value in series.samples():
            values[timestamp_s][key] = value
    return [
        _scrape(timestamp_s, values[timestamp_s])
        for timestamp_s in sorted(values)
        if all((name, "") in values[timestamp_s] for name in _COUNTERS.values())
    ]


def _scrape(timestamp_s: float, values: dict[tuple[str, str], float]) -> Scrape:
    counters = {field: values[name, ""] for field, name in _COUNTERS.items()}
    seconds = [values.get((_VERDICT_SECONDS, verdict), 0.0) for verdict in _LIMITED]
    rates = [values.get((name, "")) for name in _PEAKS]
    peak = [rate for rate in rates if rate is not None]
    return Scrape(
        timestamp_s,
        **counters,
        flushes=values.get((_OPTIONAL["flushes"], ""), 0.0),
        data_writes=values.get((_OPTIONAL["data_writes"], "")),
        throttled_s=seconds[0],
        limited_s=sum(seconds),
        peak=Work(*peak) if len(peak) == len(_PEAKS) else None,
    )
