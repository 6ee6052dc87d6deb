"""Which disks are watched, and which terms each of them is held against."""

import re

from disksla.core.contract import limits_of
from disksla.core.disk import Disk
from disksla.core.limits import NOTHING_PROMISED
from disksla.core.promise import derive_limits
from disksla.core.refusal import Refusal
from disksla.core.settings import DiskEntry, Match, Settings
from disksla.core.terms import Catalog, Provision, generic_terms_for
from disksla.core.view import Assignment

WRITTEN_OUT = "configuration"
"""Terms and provider of a disk whose terms are written out in the configuration."""

_VIRTIO_SERIAL_LENGTH = 20
"""virtio-blk cuts serials here (VIRTIO_BLK_ID_BYTES), in the midst of a volume's UUID."""

_NOT_FOR_SALE = {
    "loop": "loop device",
    "ram": "memory",
    "zram": "memory",
    "sr": "optical drive",
    "fd": "floppy drive",
}
"""Drivers whose devices nobody is sold, by the names they give before a number. They choose these
names themselves and sysfs has no class that would tell the devices apart, so here a name is what
there is to go by. An unused nbd needs no name: its size is 0."""

_WWN_PREFIX = re.compile(r"^(0x|naa\.|eui\.)")


def is_watched(disk: Disk, settings: Settings) -> bool:
    """Say whether a disk is watched under these settings."""
    return why_unwatched(disk, settings) is None


def why_unwatched(disk: Disk, settings: Settings) -> str | None:
    """Say in a few words why a disk is not watched, or None if it is.

    A disk that an entry of `disks` matches is watched; then `exclude` wins; then `include`, if
    there is any, decides; then whole disks at the bottom of their stack are watched, except for
    files, memory and removable media.
    """
    if entry_for(disk, settings) is not None:
        return None
    for index, regex in enumerate(settings.discovery.exclude):
        if regex.is_in(disk.name):
            return f"discovery.exclude[{index}]"
    if settings.discovery.include:
        if any(regex.is_in(disk.name) for regex in settings.discovery.include):
            return None
        return "not in discovery.include"
    return _why_not_by_default(disk)


def entry_for(disk: Disk, settings: Settings) -> tuple[int, DiskEntry] | None:
    """Give the first entry of `disks` that matches, with its index."""
    for index, entry in enumerate(settings.disks):
        if matches(entry.match, disk):
            return index, entry
    return None


def matches(match: Match, disk: Disk) -> bool:
    """Say whether all that is given of `match` holds for a disk.

    Partitions, devices made of others and hidden paths share serial, WWN, model and mount points
    with the disk that was sold, so these match by `device` or `by_id` only.
    """
    sold = disk.partition_of is None and not disk.slaves and not disk.hidden
    if not sold and match.device is None and match.by_id is None:
        return False
    return (
        match.device in {None, disk.name}
        and (match.serial is None or _same_serial(match.serial, disk.serial))
        and (match.wwn is None or _same_wwn(match.wwn, disk.wwn))
        and match.model in {None, disk.model}
        and (match.mountpoint is None or match.mountpoint in disk.mount_points)
        and (match.by_id is None or match.by_id in disk.by_id)
    )


def assign(disk: Disk, settings: Settings, catalog: Catalog) -> Assignment:
    """Give the terms a disk is held against, with the reason.

    Terms that cannot be applied to this disk promise nothing, and the reason says why: one wrong
    entry is no cause to stop watching.
    """
    found = entry_for(disk, settings)
    if found is None:
        generic = generic_terms_for(disk)
        reason = f"nothing in the configuration matches; {generic} by {_generic_sign(disk)}"
        return Assignment(generic, _provider(generic), reason, disk.size_bytes, NOTHING_PROMISED)
    index, entry = found
    size_bytes = entry.size_bytes or disk.size_bytes
    reason = f"disks[{index}] of the configuration matches {_in_words(entry.match)}"
    if not isinstance(entry.terms, str):
        limits = limits_of(entry.terms)
        return Assignment(WRITTEN_OUT, WRITTEN_OUT, reason, size_bytes, limits)
    try:
        limits = derive_limits(catalog[entry.terms], size_bytes, provision_of(entry))
    except Refusal as refusal:
        limits = NOTHING_PROMISED
        reason = f"{reason}, but nothing can be promised: {refusal}"
    return Assignment(entry.terms, _provider(entry.terms), reason, size_bytes, limits)


def provision_of(entry: DiskEntry) -> Provision | None:
    """Give what an entry says was provisioned."""
    if entry.iops is None and entry.bytes_per_second is None:
        return None
    return Provision(entry.iops, entry.bytes_per_second)


def _why_not_by_default(disk: Disk) -> str | None:
    if disk.partition_of is not None:
        return f"partition of {disk.partition_of}"
    if disk.hidden:
        return "path of a multipath disk"
    if disk.slaves:
        return f"made of {', '.join(disk.slaves)}"
    if disk.size_bytes == 0:
        return "empty"
    driver = disk.name.rstrip("0123456789")
    return None if driver == disk.name else _NOT_FOR_SALE.get(driver)


def _same_serial(wanted: str, serial: str | None) -> bool:
    if serial is None:
        return False
    short, long = sorted((wanted, serial), key=len)
    return short == long or (len(short) == _VIRTIO_SERIAL_LENGTH and long.startswith(short))


def _same_wwn(wanted: str, wwn: str | None) -> bool:
    """Compare without the prefix: the kernel says naa.5000c5..., udev and lsblk 0x5000c5...."""
    return wwn is not None and _WWN_PREFIX.sub("", wanted) == _WWN_PREFIX.sub("", wwn)


def _in_words(match: Match) -> str:
    return " and ".join(f"{key} {value}" for key, value in match.given().items())


def _provider(terms: str) -> str:
    return terms.partition(".")[0]


def _generic_sign(disk: Disk) -> str:
    if disk.name.startswith("nvme"):
        return "its kernel name"
    if disk.rotational is None:
        return "default"
    return f"its sysfs `rotational` flag ({disk.rotational:d})"
