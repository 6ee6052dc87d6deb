"""Which disks are watched, and which terms each of them is held against."""

import re

from disksla.config.custom_terms import custom_limits
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.limits import NO_LIMITS, Assignment, Catalog, Provision, derive_limits

CUSTOM_TERMS = "configuration"
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
    if find_entry(disk, settings) is not None:
        return None
    for index, regex in enumerate(settings.discovery.exclude):
        if regex.is_in(disk.name):
            return f"discovery.exclude[{index}]"
    if settings.discovery.include:
        if any(regex.is_in(disk.name) for regex in settings.discovery.include):
            return None
        return "not in discovery.include"
    return _why_not_by_default(disk)


def find_entry(disk: Disk, settings: Settings) -> tuple[int, DiskEntry] | None:
    """Give the first entry of `disks` that matches, with its index."""
    for index, entry in enumerate(settings.disks):
        if matches(entry.match, disk):
            return index, entry
    return None


def matches(match: DiskMatch, disk: Disk) -> bool:
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
    found = find_entry(disk, settings)
    if found is None:
        generic = generic_terms_for(disk)
        reason = f"nothing in the configuration matches; {generic} by {_generic_sign(disk)}"
        return Assignment(generic, _provider(generic), reason, disk.size_bytes, NO_LIMITS)
    index, entry = found
    size_bytes = entry.size_bytes or disk.size_bytes
    reason = f"disks[{index}] of the configuration matches {_in_words(entry.match)}"
    if not isinstance(entry.terms, str):
        limits = custom_limits(entry.terms)
        return Assignment(CUSTOM_TERMS, CUSTOM_TERMS, reason, size_bytes, limits)
    try:
        limits = derive_limits(catalog[entry.terms], size_bytes, provision_of(entry))
    except DiskslaError as error:
        limits = NO_LIMITS
        reason = f"{reason}, but nothing can be promised: {error}"
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


def _in_words(match: DiskMatch) -> str:
    return " and ".join(f"{key} {value}" for key, value in match.given().items())


def _provider(terms: str) -> str:
    return terms.partition(".")[0]


def _generic_sign(disk: Disk) -> str:
    if disk.name.startswith("nvme"):
        return "its kernel name"
    if disk.rotational is None:
        return "default"
    return f"its sysfs `rotational` flag ({disk.rotational:d})"


def generic_terms_for(disk: Disk) -> str:
    """Give the id of the generic terms of a disk that nothing better is known of.

    It is only a label and promises nothing: virtual disks often claim to rotate.
    """
    if disk.name.startswith("nvme"):
        return "generic.nvme"
    return "generic.hdd" if disk.rotational else "generic.ssd"
