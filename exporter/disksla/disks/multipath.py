"""Paths: several block devices that are one disk.

Without native multipath of NVMe, a volume that is attached by several controllers or host adapters
is a block device for each, whether dm-multipath is above them or not. With it, each path is a
hidden device (nvme0c1n2) below the disk (nvme0n2). Sources: drivers/nvme/host/multipath.c (names),
and identifiers of INCITS T10 and IEEE, which are unique to a volume.
"""

import re
from collections.abc import Collection, Iterable

import msgspec

from disksla.disks.disk import Disk

_UNIQUE = re.compile(r"(?:naa\.|eui\.|uuid\.|0x)(?=.*[1-9a-f])[0-9a-f-]+")
"""Others are made of model and serial number, which different disks of a cloud have in common."""
_NVME_PATH = re.compile(r"nvme(\d+)c\d+n(\d+)")


def nvme_head(path: str) -> str | None:
    """Return the name of the disk of a hidden path of NVMe; None if it is none."""
    found = _NVME_PATH.fullmatch(path)
    return None if found is None else f"nvme{found[1]}n{found[2]}"


def with_paths(disks: Collection[Disk]) -> tuple[Disk, ...]:
    """Return the disks, with `path_of` of each that is a further path of another."""
    names = {disk.name for disk in disks}
    head_of = _first_paths(disks)
    found = []
    for disk in disks:
        head = nvme_head(disk.name) if disk.hidden else head_of.get(disk.name)
        known = head if head in names else None
        is_new = disk.path_of != known
        found.append(msgspec.structs.replace(disk, path_of=known) if is_new else disk)
    return tuple(found)


def _first_paths(disks: Iterable[Disk]) -> dict[str, str]:
    """Return the first of the paths of a volume, by the others."""
    by_volume: dict[tuple[str, int, str | None], list[str]] = {}
    for disk in disks:
        is_whole = disk.partition_of is None and not disk.slaves and not disk.hidden
        if is_whole and disk.wwn is not None and _UNIQUE.fullmatch(disk.wwn.lower()):
            key = disk.wwn.lower(), disk.size_bytes, disk.serial
            by_volume.setdefault(key, []).append(disk.name)
    paths = (sorted(each, key=lambda name: (len(name), name)) for each in by_volume.values())
    return {other: first for first, *others in paths for other in others}
