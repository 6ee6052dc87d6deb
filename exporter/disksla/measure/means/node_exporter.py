"""Intervals of disks from the counters of node_exporter, as Prometheus has them.

Its metrics are those of /proc/diskstats, in seconds and bytes
(https://github.com/prometheus/node_exporter, collector/diskstats_linux.go).
"""

from collections.abc import Mapping

from disksla.clouds.http_client import Exchanges
from disksla.kernel.disks import Disk
from disksla.measure.means.mean import LONGEST_S, MOST_INFLIGHT, NOT_DISKS, Mean
from disksla.measure.prometheus import (
    CHUNK_S,
    DiskName,
    Period,
    Selection,
    Server,
    Step,
    find_series,
    is_selected,
    read_increases,
    selector,
    within,
)
from disksla.verdict.interval import Interval

_READS = "node_disk_reads_completed_total"
_WRITES = "node_disk_writes_completed_total"
_READ_BYTES = "node_disk_read_bytes_total"
_WRITTEN_BYTES = "node_disk_written_bytes_total"
_READ_TIME = "node_disk_read_time_seconds_total"
_WRITE_TIME = "node_disk_write_time_seconds_total"
_WEIGHTED_TIME = "node_disk_io_time_weighted_seconds_total"
_FLUSHES = "node_disk_flush_requests_total"
_FLUSH_TIME = "node_disk_flush_requests_time_seconds_total"
_NOW = "node_disk_io_now"
_METRICS = (
    *(_READS, _WRITES, _READ_BYTES, _WRITTEN_BYTES, _READ_TIME, _WRITE_TIME),
    *(_WEIGHTED_TIME, _FLUSHES, _FLUSH_TIME, _NOW),
)
_INFO = "node_disk_info"
_BEFORE_S = round(LONGEST_S)
"""The last scrape before a time is searched for in so many seconds."""


def find_node_disks(
    server: Server, selection: Selection, period: Period
) -> Exchanges[list[tuple[DiskName, Disk]]]:
    """Return the selected disks that have samples in the period, by name. Raise ExchangeError.

    Since version 1.4, node_exporter says what udev knows of a disk: serial, WWN and model.
    """
    times = period.start_timestamp_s, period.end_timestamp_s
    infos = yield from find_series(server, selector([_INFO], {}, selection.matchers), *times)
    counters = yield from find_series(server, selector([_WRITES], {}, selection.matchers), *times)
    by_disk = {_place(info): info for info in infos}
    found = []
    for labels in counters:
        info = by_disk.get(_place(labels), {})
        disk = Disk(
            labels.get("device", ""),
            0,
            0,
            size_bytes=0,
            serial=info.get("serial") or None,
            wwn=info.get("wwn") or None,
            model=info.get("model") or None,
        )
        own = tuple(sorted((name, text) for name, text in labels.items() if name != "__name__"))
        name = DiskName(own, disk.serial or "")
        is_named = is_selected(name, (), selection.patterns)
        if is_named and (selection.patterns or not disk.name.startswith(NOT_DISKS)):
            found.append((name, disk))
    return sorted(found, key=lambda each: each[0])


def _place(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in ("job", "instance", "device"))


def read_means(server: Server, name: DiskName, period: Period) -> Exchanges[list[Mean]]:
    """Return the intervals of a disk in a period. Raise ExchangeError.

    Time in which the counters were reset is left out, and so are intervals that are too long.
    """
    means: list[Mean] = []
    end_s = period.end_timestamp_s
    for start_s in range(period.start_timestamp_s, end_s, CHUNK_S - _BEFORE_S):
        until_s = min(start_s + CHUNK_S - _BEFORE_S, end_s)
        before_s = start_s - _BEFORE_S
        labels = dict(name.labels)
        steps = yield from read_increases(
            server, _METRICS, labels, start_s=before_s, end_s=until_s, needed=_WRITES
        )
        means += [
            _mean(step)
            for step in within(steps, start_s, until_s)
            if not step.is_reset and step.seconds <= LONGEST_S
        ]
    return means


def _mean(step: Step) -> Mean:
    return Mean(
        Interval(
            reads=round(step.of(_READS)),
            writes=round(step.of(_WRITES)),
            read_bytes=round(step.of(_READ_BYTES)),
            written_bytes=round(step.of(_WRITTEN_BYTES)),
            end_s=step.end_s,
            seconds=step.seconds,
            read_ms=_ms(step, _READ_TIME),
            write_ms=_ms(step, _WRITE_TIME),
            inflight=round(step.gauges.get(_NOW, MOST_INFLIGHT)),
            flushes=round(step.of(_FLUSHES)),
            flush_ms=_ms(step, _FLUSH_TIME),
        ),
        step.of(_WEIGHTED_TIME) / step.seconds,
    )


def _ms(step: Step, name: str) -> int:
    return round(1000 * step.of(name))
