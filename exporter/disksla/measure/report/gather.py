"""What is asked of a server for a report, disk by disk."""

from collections.abc import Iterable, Mapping

from disksla.clouds.http_client import Exchanges
from disksla.measure.prometheus import (
    FACTS,
    MOST_POINTS,
    CounterName,
    DiskName,
    Period,
    Series,
    Server,
    read_increases,
    read_steps,
    selector,
)
from disksla.measure.report.disk_report import DiskSeries
from disksla.measure.report.evidence import EVIDENCE, OF_DAEMON, VERIFICATION

_BEFORE_S = 300
"""The last scrape before the period is searched for in this time."""
_STEP_S, _HOUR_S = 300, 3600


def read_history(
    server: Server, name: DiskName, mount_points: tuple[str, ...], period: Period
) -> Exchanges[DiskSeries]:
    """Return what the server has of a disk. Raise ExchangeError."""
    labels = dict(name.labels)
    of_host = {key: value for key, value in labels.items() if key != "device"}
    start_s, end_s = period.start_timestamp_s, period.end_timestamp_s
    steps = yield from read_increases(
        server, (*CounterName, *FACTS), labels, start_s - _BEFORE_S, end_s
    )
    evidence = yield from _read_steps(server, EVIDENCE, labels, period, _STEP_S)
    verification = yield from _read_steps(server, VERIFICATION, labels, period, _HOUR_S)
    daemon = yield from _read_steps(server, OF_DAEMON, of_host, period, _STEP_S)
    return DiskSeries(
        name, mount_points, steps, evidence, verification=verification, daemon=daemon
    )


def _read_steps(
    server: Server, names: Iterable[str], labels: Mapping[str, str], period: Period, step_s: int
) -> Exchanges[list[Series]]:
    """Return values at equal steps, which are longer for a period of more than a month."""
    longer_s = -(-period.seconds // (MOST_POINTS - 1))
    return (
        yield from read_steps(
            server,
            selector(names, labels),
            period.start_timestamp_s,
            period.end_timestamp_s,
            max(step_s, longer_s),
        )
    )
