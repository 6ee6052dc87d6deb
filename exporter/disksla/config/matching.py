"""Matching: which disks are monitored, and which terms apply to each."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from disksla.config.custom_terms import custom_limits
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.config.terms_file import TermsFile
from disksla.disks import Disk, handle_hash
from disksla.errors import DiskslaError
from disksla.limits import (
    NO_LIMITS,
    UNKNOWN_TERMS,
    Assignment,
    Catalog,
    Limits,
    MachineChoice,
    Provision,
    SharedLimits,
    Terms,
    beyond_bounds,
    beyond_sizes,
    derive_limits,
    shared_limits,
)
from disksla.units import format_size

CUSTOM_TERMS = "configuration"
"""Terms and provider of a disk whose terms are written out in the configuration."""

_VIRTIO_SERIAL_LENGTH = 20
"""virtio-blk truncates serials to this length (VIRTIO_BLK_ID_BYTES), less than a UUID has."""

_EXCLUDED_DRIVERS = {
    "loop": "loop device",
    "ram": "memory",
    "zram": "memory",
    "sr": "optical drive",
    "fd": "floppy drive",
}
"""Drivers whose devices are not cloud disks, by the kernel name without its number. The driver
chooses this name, and sysfs has no attribute that distinguishes these devices. nbd is not in the
list: an unused device has size 0."""

_EBS_DASH = re.compile(r"^vol-(?=[0-9a-f]+$)")
_UUID_START = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]")
_WWN_PREFIX = re.compile(r"^(0x|naa\.|eui\.)")


def is_monitored(disk: Disk, settings: Settings) -> bool:
    """Return whether a disk is monitored under these settings."""
    return why_not_monitored(disk, settings) is None


def why_not_monitored(disk: Disk, settings: Settings) -> str | None:
    """Return why a disk is not monitored, in a few words; None if it is.

    In this order: a disk that matches an entry of `disks` is monitored; one that matches `exclude`
    is not; if `include` is set, it decides; otherwise whole disks at the bottom of their stack are
    monitored, except loop devices, RAM disks and removable media.
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
    return why_not_by_default(disk)


class FoundTerms(NamedTuple):
    """The entry that applies to a disk."""

    entry: DiskEntry
    place: str
    """Where it is, for people."""
    file: TermsFile | None
    """The file that has it; None for the configuration."""


def find_terms(
    disk: Disk, settings: Settings, terms_files: Iterable[TermsFile]
) -> FoundTerms | None:
    """Return the first matching entry: of the configuration, or else of the terms files."""
    found = find_entry(disk, settings)
    if found is not None:
        index, entry = found
        return FoundTerms(entry, f"disks[{index}] of the configuration", None)
    for file in terms_files:
        for index, entry in enumerate(file.entries):
            if matches(entry.match, disk):
                place = file.origin if file.source != "file" else f"disks[{index}] of {file.name}"
                return FoundTerms(entry, place, file)
    return None


def find_entry(disk: Disk, settings: Settings) -> tuple[int, DiskEntry] | None:
    """Return the first matching entry of `disks` and its index."""
    for index, entry in enumerate(settings.disks):
        if matches(entry.match, disk):
            return index, entry
    return None


def matches(match: DiskMatch, disk: Disk) -> bool:
    """Return whether a disk matches all keys that are set.

    Partitions, stacked devices and hidden paths share serial, volume, WWN, model and mount points
    with the disk that was sold, so they match only if `device` or `by_id` is set.
    """
    if not is_sold(disk) and match.device is None and match.by_id is None:
        return False
    return (
        (match.device is None or has_device_name(match.device, disk))
        and (match.serial is None or _same_serial(match.serial, disk.serial))
        and (match.volume is None or _is_volume(match.volume, disk))
        and (match.volume_handle is None or _is_handle(match.volume_handle, disk))
        and match.storage_class in {None, disk.storage_class}
        and (match.wwn is None or _same_wwn(match.wwn, disk.wwn))
        and match.model in {None, disk.model}
        and (match.mountpoint is None or match.mountpoint in disk.mount_points)
        and (match.by_id is None or match.by_id in disk.by_id or match.by_id in disk.links)
    )


def is_sold(disk: Disk) -> bool:
    """Return whether a disk is one that was sold: no partition, stacked device or hidden path."""
    return disk.partition_of is None and not disk.slaves and not disk.hidden


def has_device_name(name: str, disk: Disk) -> bool:
    """Return whether a disk has a name in /dev: its kernel name, or a link.

    A name in /dev/disk/by-id or /dev/mapper may be without that directory.
    """
    return (
        name == disk.name
        or name in disk.links
        or name.removeprefix("disk/by-id/") in disk.by_id
        or f"dm-name-{name.removeprefix('mapper/')}" in disk.by_id
    )


def has_id(name: str, disk: Disk) -> bool:
    """Return whether a name is the volume, serial number, WWN or CSI handle of a disk."""
    return (
        _is_volume(name, disk)
        or _same_serial(name, disk.serial)
        or _same_wwn(name, disk.wwn)
        or _is_handle(name, disk)
    )


class Assignments(NamedTuple):
    """Terms and limits of disks, by kernel name."""

    monitored: dict[str, Assignment]
    others: dict[str, Assignment]
    """Those of volumes that are not monitored: their I/O counts for limits of the machine."""


def assign_all(
    disks: Collection[Disk],
    settings: Settings,
    catalog: Catalog,
    terms_files: tuple[TermsFile, ...] = (),
) -> Assignments:
    """Return the terms and limits of the disks of a machine.

    Limits of a type that are those of the machine's disks of this type together follow from their
    total size.
    """
    monitored = {disk.name for disk in disks if is_monitored(disk, settings)}
    counted = {disk.name: disk for disk in disks if disk.name in monitored or _may_be_volume(disk)}
    found = {name: find_terms(disk, settings, terms_files) for name, disk in counted.items()}
    alone = {name: _assign(disk, found[name], catalog) for name, disk in counted.items()}
    of_type: dict[str, list[str]] = {}
    for name, assignment in alone.items():
        row = catalog.find(assignment.terms) if assignment.limits.budget is not None else None
        if row is not None and row.scope == "machine":
            of_type.setdefault(assignment.terms, []).append(name)
    shared = {}
    for names in of_type.values():
        total_bytes = sum(alone[name].size_bytes for name in names)
        if len(names) > 1 and not any(_is_total(found[name]) for name in names):
            for name in names:
                shared[name] = _assign(counted[name], found[name], catalog, total_bytes)
    all_found = alone | shared
    return Assignments(
        {name: each for name, each in all_found.items() if name in monitored},
        {name: each for name, each in all_found.items() if name not in monitored},
    )


def _may_be_volume(disk: Disk) -> bool:
    """Return whether a disk may be a volume of a provider: at the bottom, and not local."""
    return why_not_by_default(disk) is None and not disk.is_local


def _is_total(found: FoundTerms | None) -> bool:
    """Return whether the configuration sets the size of a disk, which may be that of several."""
    return found is not None and found.file is None and found.entry.size is not None


def assign(
    disk: Disk, settings: Settings, catalog: Catalog, terms_files: tuple[TermsFile, ...] = ()
) -> Assignment:
    """Return the terms and limits of a disk, with the reason.

    Where limits cannot be derived, there are none, and the reason has the error: the disk is
    monitored in spite of one wrong entry.
    """
    return _assign(disk, find_terms(disk, settings, terms_files), catalog)


def _assign(
    disk: Disk, found: FoundTerms | None, catalog: Catalog, total_bytes: int | None = None
) -> Assignment:
    """Return the terms and limits of a disk by an entry.

    `total_bytes` is the size of all disks of this type if they share its limits.
    """
    if found is None:
        reason = "no entry of the configuration or of terms.d matches"
        if disk.is_local:
            reason += "; it is a local disk of the host, not a volume"
        return Assignment(UNKNOWN_TERMS, UNKNOWN_TERMS, reason, disk.size_bytes, NO_LIMITS)
    entry, file = found.entry, found.file
    row = catalog.find(entry.terms) if isinstance(entry.terms, str) else None
    sold_bytes = entry.size_bytes(binary_gb=row is not None and row.binary_gb)
    size_bytes = total_bytes or sold_bytes or disk.size_bytes
    reason = f"{found.place} matches {entry.match.describe()}"
    if isinstance(entry.terms, str):
        terms, provider = entry.terms, _provider(entry.terms)
        limits, notes, problem = _limits_of_row(entry, terms, size_bytes, catalog, total_bytes)
        if problem is not None:
            reason = f"{reason}, but there are no limits: {problem}"
        reason = "; ".join((reason, *notes))
    else:
        problem = None
        terms = provider = CUSTOM_TERMS
        limits = custom_limits(entry.terms)
    return Assignment(
        terms=terms,
        provider=provider,
        reason=reason,
        size_bytes=size_bytes,
        limits=limits,
        caching=entry.caching,
        shares_limits=isinstance(entry.terms, str) and total_bytes is not None,
        source="configuration" if file is None else file.source,
        origin="" if file is None else file.origin,
        as_of_timestamp_s=None if file is None else file.as_of_timestamp_s,
        expiry_timestamp_s=None if file is None else file.expiry_timestamp_s,
        problem=problem,
    )


def _limits_of_row(
    entry: DiskEntry, terms: str, size_bytes: int, catalog: Catalog, total_bytes: int | None
) -> tuple[Limits, list[str], str | None]:
    """Return the limits of an entry, notes on them, and why there are none if there are none."""
    try:
        row, provision = catalog[terms], provision_of(entry)
        limits = limits_of_disk(row, size_bytes, provision)
    except DiskslaError as error:
        return NO_LIMITS, [], str(error)
    notes = [*beyond_sizes(row, size_bytes), *beyond_bounds(row, size_bytes, provision)]
    if total_bytes is not None:
        notes.append(f"disks of this type share the limits of {format_size(total_bytes)}")
    elif row.scope == "machine":
        notes.append("other disks of this type share its limits: `size` may be set to their total")
    return limits, notes, None


def machine_type_of(settings: Settings, terms_files: Iterable[TermsFile]) -> str | None:
    """Return the machine type by the best source that has it."""
    return settings.machine.type or next(
        (file.machine_type for file in terms_files if file.machine_type), None
    )


def machine_limits(
    settings: Settings, machines: tuple[MachineChoice, ...], cpus: int | None
) -> tuple[SharedLimits, ...]:
    """Return the limits of the machine over groups of its disks; `cpus` if they are known.

    Limits that are written out replace those of the tables.
    """
    machine = settings.machine
    if machine.limits is not None:
        title = "all disks of the machine together"
        limits = custom_limits(machine.limits)
        return (SharedLimits(CUSTOM_TERMS, title, machine.type or "", limits),)
    return tuple(
        limits for choice in machines for limits in shared_limits(choice, machine.vcpus or cpus)
    )


def is_shared_by(
    shared: SharedLimits, disk: Disk, assignment: Assignment, settings: Settings
) -> bool:
    """Return whether a limit over several disks is over this one."""
    if shared.is_cache and assignment.caching in {None, "none"}:
        return False
    if not shared.of_type and any(regex.is_in(disk.name) for regex in settings.machine.exclude):
        return False
    return shared.covers_disk(assignment.terms, is_local=disk.is_local)


def type_limits(assignments: Iterable[Assignment]) -> tuple[SharedLimits, ...]:
    """Return the limits of each type whose disks share them."""
    of_type = {each.terms: each.limits for each in assignments if each.shares_limits}
    return tuple(
        SharedLimits(terms, f"all {terms} disks together", "", limits, (terms,), of_type=True)
        for terms, limits in of_type.items()
    )


def limits_of_disk(row: Terms, size_bytes: int, provision: Provision) -> Limits:
    """Return the limits of a block device under these terms.

    Raise DiskslaError where they cannot be derived, or are those of a file storage.
    """
    if row.is_file_storage:
        raise DiskslaError(
            f"found {row.id}, a network file storage; expected a type of disk: a file storage is"
            " no block device"
        )
    return derive_limits(row, size_bytes, provision)


def provision_of(entry: DiskEntry) -> Provision:
    """Return the provisioned values of an entry."""
    return Provision(entry.iops, entry.bytes_per_second, entry.options)


def why_not_by_default(disk: Disk) -> str | None:
    """Return why a disk is not monitored without configuration; None if it is."""
    if disk.partition_of is not None:
        return f"partition of {disk.partition_of}"
    if disk.hidden:
        return "path of a multipath disk"
    if disk.slaves:
        return f"stacked on {', '.join(disk.slaves)}"
    if disk.size_bytes == 0:
        return "empty"
    driver = disk.name.rstrip("0123456789")
    return None if driver == disk.name else _EXCLUDED_DRIVERS.get(driver)


def _same_serial(configured: str, serial: str | None) -> bool:
    """Compare as virtio truncates, and without the dash of vol-0a1b, which AWS leaves out."""
    if serial is None:
        return False
    configured, serial = (_EBS_DASH.sub("vol", text) for text in (configured, serial))
    return configured == serial or _is_truncated(configured, serial)


def _is_volume(configured: str, disk: Disk) -> bool:
    """Compare as virtio truncates, and with or without the dash of AWS.

    A name in full may be the beginning of another name.
    """
    if disk.volume is None:
        return False
    if _EBS_DASH.sub("vol", configured) == _EBS_DASH.sub("vol", disk.volume):
        return True
    may_be_truncated = disk.name.startswith("vd") or bool(_UUID_START.match(disk.volume))
    return may_be_truncated and _is_truncated(configured, disk.volume)


def _is_handle(configured: str, disk: Disk) -> bool:
    """Compare by the hash where only that is known."""
    if disk.volume_handle is not None:
        return configured == disk.volume_handle
    hashed = disk.volume_handle_hash
    return hashed is not None and hashed == handle_hash(configured)


def _is_truncated(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) == _VIRTIO_SERIAL_LENGTH and long.startswith(short)


def _same_wwn(configured: str, wwn: str | None) -> bool:
    """Compare without the prefix: naa.5000c5... in sysfs is 0x5000c5... in udev and lsblk."""
    return wwn is not None and _WWN_PREFIX.sub("", configured) == _WWN_PREFIX.sub("", wwn)


def _provider(terms: str) -> str:
    return terms.partition(".")[0]
