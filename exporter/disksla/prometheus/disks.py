"""Which disks a server has."""

from collections.abc import Sequence
from typing import NamedTuple

from disksla.exchange import Exchanges
from disksla.prometheus.period import Period
from disksla.prometheus.query import Server, find_series, selector
from disksla.prometheus.selection import DiskName, disk_name, is_selected


class Selection(NamedTuple):
    """Which disks of a server are asked about."""

    matchers: str = ""
    """Label matchers without braces."""
    patterns: tuple[str, ...] = ()


Found = Sequence[tuple[DiskName, tuple[str, ...]]]
"""Disks with their mount points."""


def find_disks(server: Server, selection: Selection, period: Period) -> Exchanges[Found]:
    """Return the selected disks that have samples in the period. Raise ExchangeError."""
    infos = yield from _labels(server, "disksla_disk_info", selection, period)
    mounts = yield from _labels(server, "disksla_mount_info", selection, period)
    mount_points: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for mount in mounts:
        path = mount.pop("mountpoint", "")
        mount_points.setdefault(disk_name(mount).labels, set()).add(path)
    names = sorted({disk_name(info) for info in infos})
    found = [(name, tuple(sorted(mount_points.get(name.labels, ())))) for name in names]
    return [each for each in found if is_selected(*each, selection.patterns)]


def _labels(
    server: Server, metric: str, selection: Selection, period: Period
) -> Exchanges[list[dict[str, str]]]:
    matching = selector([metric], {}, selection.matchers)
    return (
        yield from find_series(server, matching, period.start_timestamp_s, period.end_timestamp_s)
    )
