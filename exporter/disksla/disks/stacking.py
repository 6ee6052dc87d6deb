"""How block devices lie upon one another, and where that puts the mounts.

sysfs says which devices one is made of and which disk a partition lies on; mountinfo says
which device is mounted where. Somebody who looks at a disk wants both turned round: what is
stacked on it, and which mount points suffer when it is slow.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

import msgspec

from disksla.disks.disk import Disk
from disksla.procfs import Mount

_ANONYMOUS = 0
"""Major number of file systems that no single device stands behind, btrfs among them."""


def with_stacking(disks: Collection[Disk], mounts: Iterable[Mount]) -> tuple[Disk, ...]:
    """Give the disks sorted by name, with `holders` and `mount_points` filled in.

    Holders are those of the disk and of its partitions. A mount counts for the device that is
    mounted and for every device below it: the disk of a partition, the disks under a logical
    volume. Given are disks that know their `slaves` and `partition_of`.
    """
    parts, stacked = _neighbours(disks)
    mounted = _mount_points(disks, mounts)

    def joined(disk: Disk) -> Disk:
        holders = stacked[disk.name].union(*(stacked[part] for part in parts[disk.name]))
        mount_points = {
            point
            for name in _upwards(disk.name, parts, stacked)
            for point in mounted.get(name, ())
        }
        return msgspec.structs.replace(
            disk, holders=tuple(sorted(holders)), mount_points=tuple(sorted(mount_points))
        )

    return tuple(joined(disk) for disk in sorted(disks, key=lambda disk: disk.name))


def devices_on(disk: Disk, disks: Collection[Disk]) -> tuple[Disk, ...]:
    """Give the disk, and what would be lost with it: partitions, and what is stacked on them."""
    names = _upwards(disk.name, *_neighbours(disks))
    return tuple(one for one in disks if one.name in names)


_Neighbours = defaultdict[str, set[str]]


def _neighbours(disks: Iterable[Disk]) -> tuple[_Neighbours, _Neighbours]:
    """Give the partitions of each disk, and what is stacked on each, by name."""
    parts: _Neighbours = defaultdict(set)
    stacked: _Neighbours = defaultdict(set)
    for disk in disks:
        if disk.partition_of is not None:
            parts[disk.partition_of].add(disk.name)
        for slave in disk.slaves:
            stacked[slave].add(disk.name)
    return parts, stacked


def _upwards(name: str, parts: _Neighbours, stacked: _Neighbours) -> set[str]:
    reached: set[str] = set()
    waiting = {name}
    while waiting:
        reached |= waiting
        waiting = {upper for at in waiting for upper in parts[at] | stacked[at]} - reached
    return reached


def _mount_points(disks: Iterable[Disk], mounts: Iterable[Mount]) -> dict[str, set[str]]:
    """Give the mount points by name of the device that is mounted itself."""
    by_number: dict[tuple[int, int], str] = {}
    by_source: dict[str, str] = {}
    for disk in disks:
        by_number[disk.major, disk.minor] = disk.name
        by_source[f"/dev/{disk.name}"] = disk.name
        for link in disk.by_id:
            if link.startswith("dm-name-"):
                by_source[f"/dev/mapper/{link.removeprefix('dm-name-')}"] = disk.name
    of_device: defaultdict[str, list[Mount]] = defaultdict(list)
    for mount in mounts:
        name = (
            by_source.get(mount.source)
            if mount.major == _ANONYMOUS
            else by_number.get((mount.major, mount.minor))
        )
        if name is not None:
            of_device[name].append(mount)
    return {name: _without_binds(mounts_there) for name, mounts_there in of_device.items()}


def _without_binds(mounts: Collection[Mount]) -> set[str]:
    """Give the mount points, less those that only repeat a directory of another one.

    Bind mounts of directories are how service managers sandbox and containers share; they say
    nothing about the disk. The subvolumes of btrfs look alike, but are its real mounts.
    """
    roots = {mount.root for mount in mounts}
    return {
        mount.mount_point
        for mount in mounts
        if mount.major == _ANONYMOUS or roots.isdisjoint(_parents(mount.root))
    }


def _parents(directory: str) -> Iterable[str]:
    while directory not in {"/", ""}:
        directory = directory.rpartition("/")[0] or "/"
        yield directory
