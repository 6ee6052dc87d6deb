"""Which disks are asked about: patterns of their names, and label matchers."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.clouds.http_client import Exchanges
from disksla.measure.prometheus.period import Period
from disksla.measure.prometheus.query import Server, find_series, selector
from disksla.measure.prometheus.step import INFO, MOUNT_INFO, CounterName

_VERDICT = "verdict"
_Labels = tuple[tuple[str, str], ...]


class DiskName(msgspec.Struct, frozen=True, order=True):
    """A disk, as series name it: the labels of its target, with the device, and its serial."""

    labels: _Labels
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
    """Return the selected disks that have samples in the period. Raise ExchangeError.

    The labels of a disk are those of a counter that each disk has, so that it does not matter
    which labels `disksla_disk_info` has besides, in this version of the daemon or in another.
    """
    infos = yield from _series(server, INFO, {}, selection.matchers, period)
    mounts = yield from _series(server, MOUNT_INFO, {}, selection.matchers, period)
    counters = yield from _series(
        server, CounterName.VERDICT_SECONDS, {_VERDICT: "idle"}, "", period
    )
    disks = {_sorted(each, each.keys() - {_VERDICT}) for each in counters}
    label_names = sorted({tuple(name for name, _ in each) for each in disks}, key=len)

    def labels_of(info: Mapping[str, str]) -> _Labels | None:
        """Return the labels of the disk; of several, those that have most in common."""
        found = (_sorted(info, info.keys() & names) for names in reversed(label_names))
        return next((labels for labels in found if labels in disks), None)

    mount_points: dict[_Labels | None, set[str]] = {}
    for mount in mounts:
        mount_points.setdefault(labels_of(mount), set()).add(mount.get("mountpoint", ""))
    names = {
        DiskName(labels, info.get("serial", "")) for info in infos if (labels := labels_of(info))
    }
    found = [(name, tuple(sorted(mount_points.get(name.labels, ())))) for name in sorted(names)]
    return [each for each in found if is_selected(*each, selection.patterns)]


def _sorted(labels: Mapping[str, str], names: Iterable[str]) -> _Labels:
    return tuple((name, labels[name]) for name in sorted(names) if name != "__name__")


def _series(
    server: Server, metric: str, labels: Mapping[str, str], matchers: str, period: Period
) -> Exchanges[list[dict[str, str]]]:
    matching = selector([metric], labels, matchers)
    return (
        yield from find_series(server, matching, period.start_timestamp_s, period.end_timestamp_s)
    )
