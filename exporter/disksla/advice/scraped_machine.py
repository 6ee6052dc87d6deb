"""The disks of one machine, and their scrapes in a period, from a Prometheus server."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from disksla.advice.scrapes import ScrapedCounters
from disksla.errors import DiskslaError
from disksla.exchange.transport import carry_out
from disksla.limits import Work
from disksla.prometheus import (
    CHUNK_S,
    FACTS,
    DiskName,
    Facts,
    Period,
    Selection,
    Series,
    Server,
    facts_of,
    find_disks,
    read_samples,
    read_steps,
    selector,
)
from disksla.verdict import LIMITED_VERDICTS, MACHINE_LIMITS

_WITHIN_S = 600.0
_MOST_STEPS, _LEAST_STEP_S = 1000, 60
_DISK_INFO, _MACHINE_INFO = "disksla_disk_info", "disksla_machine_info"
_VERDICT_SECONDS = "disksla_verdict_seconds_total"
_THROTTLED = "disksla_throttled_seconds_total"
_COUNTERS = {
    "reads": "disksla_reads_completed_total",
    "writes": "disksla_writes_completed_total",
    "read_bytes": "disksla_read_bytes_total",
    "written_bytes": "disksla_written_bytes_total",
}
_OPTIONAL = {
    "flushes": "disksla_flushes_completed_total",
    "data_writes": "disksla_data_writes_total",
    "wait_s": "disksla_throttle_wait_seconds_total",
}
_PEAKS = (
    "disksla_peak_read_iops",
    "disksla_peak_write_iops",
    "disksla_peak_read_bytes_per_second",
    "disksla_peak_written_bytes_per_second",
)


class ScrapedMachine(NamedTuple):
    """The disks of one machine, as they were described last."""

    name: DiskName
    """The disk in question."""
    disks: Mapping[str, Facts]
    """By device; that of the disk in question is among them."""
    machine: str
    """Machine type, or the number of vCPUs, whose limits are monitored; empty if not known."""

    @property
    def facts(self) -> Facts:
        """What is known of the disk in question."""
        return self.disks[self.name.device]

    def title(self, device: str) -> str:
        """Return the instance with a device."""
        return f"{self.name.instance} {device}".strip()


def find_machine_of_disk(server: Server, name: str, period: Period) -> ScrapedMachine:
    """Return the one disk of a name, with the others of its machine. Raise DiskslaError."""
    found = carry_out(find_disks(server, Selection(patterns=(name,)), period), _WITHIN_S)
    if len(found) != 1:
        titles = ", ".join(disk.title for disk, _ in found) or "none"
        raise DiskslaError(f"advise failed: found {titles} for '{name}'; expected one disk")
    [(disk, _)] = found
    matching = selector((*FACTS, _MACHINE_INFO), _of_host(disk))
    step_s = max(_LEAST_STEP_S, -(-period.seconds // _MOST_STEPS))
    asked = read_steps(server, matching, period.start_timestamp_s, period.end_timestamp_s, step_s)
    series = carry_out(asked, _WITHIN_S)
    disks = facts_by_device(series)
    return ScrapedMachine(disk, {disk.device: Facts(), **disks}, machine_of(series))


def read_scrapes(
    server: Server, machine: ScrapedMachine, device: str, period: Period
) -> list[ScrapedCounters]:
    """Return the scrapes of a disk of the machine. Raise DiskslaError."""
    names = (*_COUNTERS.values(), *_OPTIONAL.values(), *_PEAKS, _VERDICT_SECONDS, _THROTTLED)
    matching = selector(names, _of_host(machine.name) | {"device": device})
    samples: list[Series] = []
    start_s, end_s = period.start_timestamp_s, period.end_timestamp_s
    for chunk_s in range(start_s, end_s, CHUNK_S):
        chunk_end_s = min(chunk_s + CHUNK_S, end_s)
        samples += carry_out(read_samples(server, matching, chunk_s, chunk_end_s), _WITHIN_S)
    return scrapes_of(samples)


def _of_host(disk: DiskName) -> dict[str, str]:
    return {name: value for name, value in disk.labels if name != "device"}


def facts_by_device(series: Iterable[Series]) -> dict[str, Facts]:
    """Return the last facts of each disk that has an info."""
    infos: dict[str, Mapping[str, str]] = {}
    gauges: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in _by_age(series):
        device = each.metric.get("device", "")
        if each.name == _DISK_INFO:
            infos[device] = each.metric
        else:
            gauges[device].update((each.name, value) for _, value in each.samples())
    return {device: facts_of(info, gauges[device]) for device, info in infos.items()}


def machine_of(series: Iterable[Series]) -> str:
    """Return the machine whose limits were monitored last; empty if none is named."""
    names = (each.metric.get("machine", "") for each in _by_age(series))
    return next((name for name in reversed(list(names)) if name), "")


def _by_age(series: Iterable[Series]) -> list[Series]:
    """Return series with samples, the latest one last."""
    return sorted((each for each in series if each.values), key=lambda each: each.values[-1][0])


def scrapes_of(samples: Iterable[Series]) -> list[ScrapedCounters]:
    """Return the scrapes that have all counters, in order of time."""
    values: defaultdict[float, dict[tuple[str, str], float]] = defaultdict(dict)
    for series in samples:
        key = series.name, series.metric.get("verdict", series.metric.get("limit", ""))
        for timestamp_s, value in series.samples():
            values[timestamp_s][key] = value
    return [
        _scrape(timestamp_s, values[timestamp_s])
        for timestamp_s in sorted(values)
        if all((name, "") in values[timestamp_s] for name in _COUNTERS.values())
    ]


def _scrape(timestamp_s: float, values: dict[tuple[str, str], float]) -> ScrapedCounters:
    counters = {field: values[name, ""] for field, name in _COUNTERS.items()}
    seconds = {
        verdict: values.get((_VERDICT_SECONDS, verdict), 0.0) for verdict in LIMITED_VERDICTS
    }
    rates = [values.get((name, "")) for name in _PEAKS]
    peak = [rate for rate in rates if rate is not None]
    return ScrapedCounters(
        timestamp_s,
        **counters,
        flushes=values.get((_OPTIONAL["flushes"], ""), 0.0),
        data_writes=values.get((_OPTIONAL["data_writes"], "")),
        throttled_s=seconds["throttled"],
        limited_s=sum(seconds.values()),
        wait_s=values.get((_OPTIONAL["wait_s"], ""), 0.0),
        machine_s=sum(values.get((_THROTTLED, limit), 0.0) for limit in MACHINE_LIMITS.values()),
        peak=Work(*peak) if len(peak) == len(_PEAKS) else None,
    )
