"""Paths: several block devices that are one disk.

Without native multipath of NVMe, a volume that is attached by several controllers or host adapters
is a block device for each, whether dm-multipath is above them or not. With it, each path is a
hidden device (nvme0c1n2) below the disk (nvme0n2). Sources: drivers/nvme/host/multipath.c (names),
and identifiers of INCITS T10 and IEEE, which are unique to a volume.
"""

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from disksla.kernel.disks.disk import Disk

_UNIQUE = re.compile(r"(?:naa\.|eui\.|uuid\.|0x)(?=.*[1-9a-f])[0-9a-f-]+")
"""Others are made of model and serial number, which different disks of a cloud have in common."""
_WWN_KIND = re.compile(r"(0x|[^.]*\.|)(.+)")
_NVME_PATH = re.compile(r"nvme(\d+)c\d+n(\d+)")
_WWID = re.compile(r"mpath-(?:3(?P<naa>[0-9a-f]+)|2(?P<eui>[0-9a-f]+)|(?P<other>.+))")


def nvme_head(path: str) -> str | None:
    """Return the name of the disk of a hidden path of NVMe; None if it is none."""
    found = _NVME_PATH.fullmatch(path)
    return None if found is None else f"nvme{found[1]}n{found[2]}"


def multipath_wwn(uuid: str) -> str | None:
    """Return the WWN of a device of dm-multipath, as sysfs has it of its paths, by its UUID.

    None of other devices of the device mapper. The UUID has the WWID, of SCSI disks as scsi_id
    writes it: with 3 before an identifier of type NAA, and 2 before an EUI-64. Sources:
    libmultipath (UUID_PREFIX, uid_attribute); systemd, scsi_id.h.
    """
    found = _WWID.fullmatch(uuid)
    if found is None:
        return None
    naa, eui, other = found.groups()
    return f"naa.{naa}" if naa else f"eui.{eui}" if eui else other


def with_serial_of_paths(disk: Disk, disks: Mapping[str, Disk]) -> Disk:
    """Return a device of dm-multipath with the serial number of its paths, if they have one.

    Of stacked devices, only these have a WWN. `disks` has the paths by name.
    """
    if not disk.slaves or disk.wwn is None or disk.serial is not None:
        return disk
    serials = {path.serial for name in disk.slaves if (path := disks.get(name)) is not None}
    serial = serials.pop() if len(serials) == 1 else None
    return msgspec.structs.replace(disk, serial=serial)


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


def possible_paths(disk: Disk, disks: Iterable[Disk]) -> tuple[Disk, ...]:
    """Return the other devices that may be the same volume as a whole disk.

    These are more than those with `path_of`: a WWN in common is enough, or a serial number unless
    their WWNs, of one kind, differ. Who writes to a volume must not overlook a path.
    """

    def is_whole(one: Disk) -> bool:
        return one.kind == "disk" and one.partition_of is None and not one.hidden

    def may_be_one(other: Disk) -> bool:
        (kind, wwn), (other_kind, other_wwn) = _parts_of_wwn(disk), _parts_of_wwn(other)
        if wwn and (wwn == other_wwn or kind == other_kind):
            return wwn == other_wwn
        return disk.serial is not None and disk.serial == other.serial

    if not is_whole(disk):
        return ()
    return tuple(
        other
        for other in disks
        if other.name != disk.name and is_whole(other) and may_be_one(other)
    )


def _parts_of_wwn(disk: Disk) -> tuple[str, str]:
    """Return the kind of a WWN and the rest: sysfs writes naa.5000c5..., udev 0x5000c5..."""
    found = _WWN_KIND.match(disk.wwn.lower() if disk.wwn else "")
    return ("", "") if found is None else (found[1], found[2])


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
