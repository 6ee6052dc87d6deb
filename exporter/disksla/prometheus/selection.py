"""Which disks are asked about: patterns of their names, and label matchers."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from disksla.errors import DiskslaError
from disksla.exchange import Exchanges
from disksla.prometheus.period import Period
from disksla.prometheus.query import Server, find_series, selector

_INFO_LABELS = frozenset(
    (
        *("__name__", "serial", "wwn", "model", "provider", "terms", "budget", "latency_kind"),
        *("rotational", "terms_source", "machine_type"),
    )
)
"""Labels that `disksla_disk_info` itself has; all others are those of the target."""


class DiskName(msgspec.Struct, frozen=True, order=True):
    """A disk, as series name it: the labels of its target, with the device, and its serial."""

    labels: tuple[tuple[str, str], ...]
    """Sorted by name."""
    serial: str

    @property
    def device(self) -> str:
        """The kernel name."""
        return dict(self.labels).get("device", "")

    @property
    def instance(self) -> str:
        """The address of the daemon, or the name that Prometheus has for it."""
        return dict(self.labels).get("instance", "")

    @property
    def title(self) -> str:
        """Instance and device."""
        return f"{self.instance} {self.device}".strip()


def disk_name(info: Mapping[str, str]) -> DiskName:
    """Return the name of a disk by the labels of its `disksla_disk_info`."""
    labels = sorted((name, value) for name, value in info.items() if name not in _INFO_LABELS)
    return DiskName(tuple(labels), info.get("serial", ""))


def parse_matchers(text: str) -> str:
    """Return label matchers without braces. Raise DiskslaError if the braces are missing."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise DiskslaError(
            f"found --match '{text}'; expected matchers such as {{team=\"orders\"}}"
        )
    return inner[1:-1].strip().rstrip(",")


def is_selected(name: DiskName, mount_points: Iterable[str], patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches a disk; without patterns, all disks are selected.

    A pattern is INSTANCE:DEVICE, with or without the port of the instance, a serial or a mount
    point, with the wildcards of a shell.
    """
    host = name.instance.rpartition(":")[0] or name.instance
    names = (f"{name.instance}:{name.device}", f"{host}:{name.device}", name.serial, *mount_points)
    wanted = list(patterns)
    return not wanted or any(
        fnmatchcase(each, pattern) for pattern in wanted for each in names if each
    )


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
