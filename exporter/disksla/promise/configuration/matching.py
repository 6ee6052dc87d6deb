"""Matching: which disks are monitored, and which terms apply to each."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.units import TIB, format_size
from disksla.kernel.disks import Disk
from disksla.promise.catalogue import (
    CUSTOM_TERMS,
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
from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.custom_terms import custom_limits
from disksla.promise.configuration.found_terms import FoundTerms, find_all, find_terms
from disksla.promise.configuration.settings import DiskEntry, Settings

ALL_CLIENTS = "all clients"  # who shares limits of a mount that are written out or not known
_SIZES_APART = (TIB, 1024 * TIB)  # limits that are the same for both do not depend on the size
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


def is_monitored(disk: Disk, settings: Settings) -> bool:
    """Return whether a disk is monitored under these settings."""
    return why_not_monitored(disk, settings) is None


def why_not_monitored(disk: Disk, settings: Settings) -> str | None:
    """Return why a disk is not monitored, in a few words; None if it is.

    In this order: a disk that matches an entry of `disks` is monitored; one that matches `exclude`
    is not; if `include` is set, it decides; otherwise whole disks at the bottom of their stack are
    monitored, except loop devices, RAM disks and removable media.
    """
    return _why_not(disk, settings, find_terms(disk, settings, ()))


def _why_not(disk: Disk, settings: Settings, found: FoundTerms | None) -> str | None:
    """Return why a disk is not monitored; `found` is the entry that applies to it."""
    if found is not None and found.file is None:
        return None
    for index, regex in enumerate(settings.discovery.exclude):
        if regex.is_in(disk.name):
            return f"discovery.exclude[{index}]"
    if settings.discovery.include:
        if any(regex.is_in(disk.name) for regex in settings.discovery.include):
            return None
        return "not in discovery.include"
    return why_not_by_default(disk)


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
    return assign_found(disks, settings, catalog, find_all(disks, settings, terms_files).by_disk)


def assign_found(
    disks: Collection[Disk], settings: Settings, catalog: Catalog, found: Mapping[str, FoundTerms]
) -> Assignments:
    """Return what `assign_all` does, by the entries that were found for the disks."""
    monitored = {
        disk.name for disk in disks if _why_not(disk, settings, found.get(disk.name)) is None
    }
    counted = {disk.name: disk for disk in disks if disk.name in monitored or _may_be_volume(disk)}
    alone = {name: _assign(disk, found.get(name), catalog) for name, disk in counted.items()}
    of_type: dict[str, list[str]] = {}
    for name, assignment in alone.items():
        row = catalog.find(assignment.terms) if assignment.limits.budget is not None else None
        if row is not None and row.scope == "machine":
            of_type.setdefault(assignment.terms, []).append(name)
    shared = {}
    for names in of_type.values():
        total_bytes = sum(alone[name].size_bytes for name in names)
        if len(names) > 1 and not any(_is_total(found.get(name)) for name in names):
            for name in names:
                shared[name] = _assign(counted[name], found.get(name), catalog, total_bytes)
    all_found = alone | shared
    return Assignments(
        {name: each for name, each in all_found.items() if name in monitored},
        {name: each for name, each in all_found.items() if name not in monitored},
    )


def _may_be_volume(disk: Disk) -> bool:
    """Return whether a disk may be a volume of a provider: at the bottom, not local, no mount."""
    return why_not_by_default(disk) is None and not (disk.is_local or disk.is_mount)


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
        limits = _shared(NO_LIMITS) if disk.is_mount else NO_LIMITS
        return Assignment(UNKNOWN_TERMS, UNKNOWN_TERMS, reason, disk.size_bytes, limits)
    entry, file = found.entry, found.file
    row = catalog.find(entry.terms) if isinstance(entry.terms, str) else None
    sold_bytes = entry.size_bytes(binary_gb=row is not None and row.binary_gb)
    size_bytes = total_bytes or sold_bytes or disk.size_bytes
    reason = f"{found.place} matches {entry.match.describe()}"
    if isinstance(entry.terms, str):
        terms = entry.terms if row is None else row.id
        provider = _provider(terms)
        limits, notes, problem = _limits_of_row(
            entry, terms, size_bytes, catalog, total_bytes, is_mount=disk.is_mount
        )
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
        limits=_shared(limits) if disk.is_mount else limits,
        caching=entry.caching,
        shares_limits=isinstance(entry.terms, str) and total_bytes is not None,
        source="configuration" if file is None else file.source,
        origin="" if file is None else file.origin,
        as_of_timestamp_s=None if file is None else file.as_of_timestamp_s,
        expiry_timestamp_s=None if file is None else file.expiry_timestamp_s,
        problem=problem,
    )


def _shared(limits: Limits) -> Limits:
    """Return the limits of a mount: who shares them may not be known, but others may."""
    return msgspec.structs.replace(limits, shared_by=limits.shared_by or ALL_CLIENTS)


def _limits_of_row(
    entry: DiskEntry,
    terms: str,
    size_bytes: int,
    catalog: Catalog,
    total_bytes: int | None,
    *,
    is_mount: bool,
) -> tuple[Limits, list[str], str | None]:
    """Return the limits of an entry, notes on them, and why there are none if there are none."""
    try:
        row, provision = catalog[terms], provision_of(entry)
        require_kind(row, is_mount=is_mount)
        limits = (_limits_of_mount if is_mount else derive_limits)(row, size_bytes, provision)
    except DiskslaError as error:
        return NO_LIMITS, [], str(error)
    notes = list(beyond_bounds(row, size_bytes, provision))
    if size_bytes or not is_mount:
        notes = [*beyond_sizes(row, size_bytes), *notes]
    if total_bytes is not None:
        notes.append(f"disks of this type share the limits of {format_size(total_bytes)}")
    elif row.scope == "machine":
        notes.append("other disks of this type share its limits: `size` may be set to their total")
    return limits, notes, None


def machine_type_of(settings: Settings, terms_files: Iterable[TermsFile]) -> str | None:
    """Return the machine type by the best source that has it."""
    types = (settings.machine.type, *(file.machine.type for file in terms_files))
    return next(filter(None, types), None)


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


def is_machine_known(assignment: Assignment, unknown_machines: frozenset[str]) -> bool:
    """Return whether the limits of the machine over a disk are known, or there are none.

    Terms that are written out may be those of any provider.
    """
    if assignment.terms == CUSTOM_TERMS:
        return not unknown_machines
    return assignment.provider not in unknown_machines


def is_shared_by(
    shared: SharedLimits, disk: Disk, assignment: Assignment, settings: Settings
) -> bool:
    """Return whether a limit over several disks is over this one.

    Over a mount is only what one client of its storage may get.
    """
    if disk.is_mount or shared.device is not None:
        return shared.device == disk.name
    if shared.is_cache and assignment.caching in {None, "none"}:
        return False
    if not shared.of_type and any(regex.is_in(disk.name) for regex in settings.machine.exclude):
        return False
    return shared.covers_disk(assignment.terms, is_local=disk.is_local)


def client_limits(assignments: Mapping[str, Assignment]) -> tuple[SharedLimits, ...]:
    """Return what this machine may get of each file storage, as a client of it, by device."""
    return tuple(
        SharedLimits(
            f"client of {device}",
            f"one client of {device}",
            "",
            assignment.limits.client,
            device=device,
        )
        for device, assignment in assignments.items()
        if assignment.limits.client is not None
    )


def type_limits(assignments: Iterable[Assignment]) -> tuple[SharedLimits, ...]:
    """Return the limits of each type whose disks share them."""
    of_type = {each.terms: each.limits for each in assignments if each.shares_limits}
    return tuple(
        SharedLimits(terms, f"all {terms} disks together", "", limits, (terms,), of_type=True)
        for terms, limits in of_type.items()
    )


def require_kind(row: Terms, *, is_mount: bool) -> None:
    """Raise DiskslaError for a file storage that is to be a disk, or a disk that is a mount."""
    if row.is_file_storage and not is_mount:
        raise DiskslaError(
            f"found {row.id}, a network file storage; expected a type of disk: a file storage is"
            " no block device"
        )
    if is_mount and not row.is_file_storage:
        raise DiskslaError(
            f"found {row.id}, a type of disk; expected a network file storage: this is a mount"
        )


def _limits_of_mount(row: Terms, size_bytes: int, provision: Provision) -> Limits:
    """Return the limits of a file storage, whose size only an entry can have.

    Raise DiskslaError without a size, where the limits depend on it.
    """
    if size_bytes:
        return derive_limits(row, size_bytes, provision)
    least, most = (derive_limits(row, each, provision) for each in _SIZES_APART)
    if least != most:
        raise DiskslaError(
            f"found no size for {row.id}; expected `size`: a mount does not show what the provider"
            " counts"
        )
    return least


def provision_of(entry: DiskEntry) -> Provision:
    """Return the provisioned values of an entry."""
    return Provision(entry.iops, entry.bytes_per_second, entry.options)


def why_not_by_default(disk: Disk) -> str | None:
    """Return why a disk is not monitored without configuration; None if it is."""
    if disk.is_mount:
        return None
    if disk.partition_of is not None:
        return f"partition of {disk.partition_of}"
    if disk.hidden or disk.path_of is not None:
        return f"path of {disk.path_of or 'a multipath disk'}"
    if disk.slaves:
        return f"stacked on {', '.join(disk.slaves)}"
    if disk.size_bytes == 0:
        return "empty"
    driver = disk.name.rstrip("0123456789")
    return None if driver == disk.name else _EXCLUDED_DRIVERS.get(driver)


def _provider(terms: str) -> str:
    return terms.partition(".")[0]
