"""Stacking of block devices: the holders and mount points of each disk.

sysfs lists the devices that a device is stacked on (slaves) and the disk of a partition; mountinfo
lists the device of each mount point. This module inverts both: it computes what is stacked on a
disk, and which mount points are affected when it is slow. What is done by a further path of a disk
is done to the disk.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import msgspec

from disksla.kernel.disks.disk import Disk
from disksla.kernel.procfs import Mount, file_system_mounts

_ANONYMOUS = 0  # major number of file systems without a single device, such as btrfs


def with_stacking(disks: Collection[Disk], mounts: Iterable[Mount]) -> tuple[Disk, ...]:
    """Return the disks sorted by name, with `holders` and both kinds of mount points filled in.

    They are computed from `slaves`, `partition_of`, `path_of` and `mounts`. Holders are those of
    the disk, of its further paths, and of the partitions of both. A mount point belongs to the
    mounted device and to every device below it: the disk of a partition, the disks of a logical
    volume.
    """
    parts, stacked = _devices_above(disks)
    of_device = _mounts_by_device(disks, mounts)
    mounted = {name: _without_binds(found) for name, found in of_device.items()}
    file_systems = {name: file_system_mounts(found) for name, found in of_device.items()}

    def completed(disk: Disk) -> Disk:
        holders = set[str]().union(*(stacked[name] for name in _stack_of(disk.name, parts)))
        stack = _stack_of(disk.name, parts, stacked)
        return msgspec.structs.replace(
            disk,
            holders=tuple(sorted(holders)),
            mount_points=_sorted_of(stack, mounted),
            file_system_mounts=_sorted_of(stack, file_systems),
        )

    return tuple(completed(disk) for disk in sorted(disks, key=lambda disk: disk.name))


def _sorted_of(names: Iterable[str], points: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    return tuple(sorted({point for name in names for point in points.get(name, ())}))


def devices_on(disk: Disk, disks: Collection[Disk]) -> tuple[Disk, ...]:
    """Return the disk, its further paths, their partitions, and all devices stacked on them."""
    names = _stack_of(disk.name, *_devices_above(disks))
    return tuple(one for one in disks if one.name in names)


def parts_of(disk: Disk, disks: Collection[Disk]) -> tuple[Disk, ...]:
    """Return the disk, its further paths, and their partitions."""
    names = _stack_of(disk.name, _devices_above(disks)[0])
    return tuple(one for one in disks if one.name in names)


def devices_below(disk: Disk, disks: Iterable[Disk]) -> tuple[Disk, ...]:
    """Return all devices that a device is stacked on, or a partition of; without itself."""
    by_name = {one.name: one for one in disks}
    found: dict[str, Disk] = {}
    level = [disk]
    while level:
        lower = {name for one in level for name in (*one.slaves, one.partition_of or "")}
        level = [by_name[name] for name in sorted(lower - found.keys()) if name in by_name]
        found |= {one.name: one for one in level}
    return tuple(one for one in found.values() if one.name != disk.name)


def at_bottom(names: Collection[str], disks: Collection[Disk]) -> set[str]:
    """Return the names of the devices that are not above another of them.

    `disks` are all block devices of the machine.
    """
    above = _devices_above(disks)
    return set(names).difference(*(_stack_of(name, *above) - {name} for name in names))


_NamesByName = defaultdict[str, set[str]]


def _devices_above(disks: Iterable[Disk]) -> tuple[_NamesByName, _NamesByName]:
    """Return partitions and further paths of each disk, and what is stacked on it, by name."""
    parts: _NamesByName = defaultdict(set)
    stacked: _NamesByName = defaultdict(set)
    for disk in disks:
        for whole in (disk.partition_of, disk.path_of):
            if whole is not None:
                parts[whole].add(disk.name)
        for slave in disk.slaves:
            stacked[slave].add(disk.name)
    return parts, stacked


def _stack_of(name: str, *relations: _NamesByName) -> set[str]:
    """Return the name of a device and of all devices above it; cycles are allowed."""
    visited: set[str] = set()
    level = {name}
    while level:
        visited |= level
        level = {above for lower in level for each in relations for above in each[lower]} - visited
    return visited


def mounted_device(mount: Mount, disks: Iterable[Disk]) -> str | None:
    """Return the kernel name of the device that a mount is of; None if it has no single one."""
    return _Sources(disks).device_of(mount)


class _Sources:
    """The devices of a machine, by what the mount table has of them."""

    def __init__(self, disks: Iterable[Disk]) -> None:
        self._by_number: dict[tuple[int, int], str] = {}
        self._by_source: dict[str, str] = {}
        for disk in disks:
            self._by_number[disk.major, disk.minor] = disk.name
            self._by_source[f"/dev/{disk.name}"] = disk.name
            for link in disk.by_id:
                if link.startswith("dm-name-"):
                    self._by_source[f"/dev/mapper/{link.removeprefix('dm-name-')}"] = disk.name

    def device_of(self, mount: Mount) -> str | None:
        """Return the kernel name of the device of a mount; None without a single one."""
        if mount.major == _ANONYMOUS and mount.source in self._by_source:
            return self._by_source[mount.source]
        return self._by_number.get((mount.major, mount.minor))


def _mounts_by_device(
    disks: Iterable[Disk], mounts: Iterable[Mount]
) -> Mapping[str, Collection[Mount]]:
    """Return the mounts, in their order, by the name of the mounted device."""
    sources = _Sources(disks)
    of_device: defaultdict[str, list[Mount]] = defaultdict(list)
    for mount in mounts:
        name = sources.device_of(mount)
        if name is not None:
            of_device[name].append(mount)
    return of_device


def _without_binds(mounts: Collection[Mount]) -> set[str]:
    """Return the mount points without bind mounts of directories of another mount.

    Service managers and containers bind-mount directories, which adds nothing about the disk.
    Subvolumes of btrfs look like bind mounts but are kept.
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
