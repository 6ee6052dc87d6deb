"""The order of the disks, and which of them are listed."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from disksla.tell.api import LiveDiskDocument
from disksla.tell.explanation import CONDITION_TEXT, PROBLEMS, Shown
from disksla.verdict.throttling import LimitKind

SortKey = Literal["trouble", "name", "iops", "throughput", "await", "load"]
SORT_KEYS: Mapping[str, SortKey] = {
    "t": "trouble",
    "n": "name",
    "i": "iops",
    "b": "throughput",
    "a": "await",
    "l": "load",
}
"""By the key that is pressed."""


def iops(disk: LiveDiskDocument) -> float:
    """Return the requests per second of a disk now."""
    return disk.present.read_iops + disk.present.write_iops


def bytes_per_second(disk: LiveDiskDocument) -> float:
    """Return the throughput of a disk now."""
    return disk.present.read_bytes_per_second + disk.present.written_bytes_per_second


def problem_now(disk: LiveDiskDocument) -> Shown | None:
    """Return the problem that a disk has now, as it is coloured; None without one."""
    shown = None if disk.condition is None else CONDITION_TEXT[disk.condition].shown
    return shown if shown in PROBLEMS else None


def most_limited(disk: LiveDiskDocument) -> LimitKind | None:
    """Return where the disk was throttled for most of the last five minutes."""
    return max(disk.throttled_seconds, key=disk.throttled_seconds.__getitem__, default=None)


def trouble(disk: LiveDiskDocument) -> tuple[float, float, float]:
    """Return how bad a disk is: seconds with problems in the last minute, in five, and load."""
    bad = sum(each in PROBLEMS for each in disk.last_minute)
    return bad, disk.bad_s, disk.load_ratio or 0.0


_HIGHEST_FIRST: Mapping[SortKey, Callable[[LiveDiskDocument], tuple[float, ...]]] = {
    "trouble": trouble,
    "name": lambda _disk: (),
    "iops": lambda disk: (iops(disk),),
    "throughput": lambda disk: (bytes_per_second(disk),),
    "await": lambda disk: (disk.await_s or 0.0,),
    "load": lambda disk: (disk.load_ratio or 0.0,),
}


def listed(
    disks: Iterable[LiveDiskDocument], sort: SortKey, text: str = ""
) -> list[LiveDiskDocument]:
    """Return the disks whose name, mount point or claim contains a text, in order.

    Those that are equal are in the order of their names, in which nvme10n1 follows nvme2n1.
    """
    value = _HIGHEST_FIRST[sort]
    found = [disk for disk in disks if text in "\0".join((disk.device, *names_of_use(disk)))]
    return sorted(found, key=lambda disk: ([-each for each in value(disk)], _name(disk.device)))


def names_of_use(disk: LiveDiskDocument) -> tuple[str, ...]:
    """Return what a disk is used for: its claim, or its mount points."""
    return (disk.claim,) if disk.claim else disk.mount_points


def _name(device: str) -> tuple[list[tuple[str, int]], str]:
    parts = re.findall(r"([^0-9]*)([0-9]{0,18})", device)
    return [(text, int(digits or 0)) for text, digits in parts], device
