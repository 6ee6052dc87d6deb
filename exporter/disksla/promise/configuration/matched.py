"""What a configuration and its terms files say of the disks of a machine, as a ready value.

The daemon makes it outside of the sampler's thread, where it takes as long as it takes.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from disksla.kernel.disks import CsiVolume, Disk, handle_hash, with_paths, with_volume
from disksla.promise.catalogue import UNKNOWN_TERMS
from disksla.promise.configuration.configuration import Configuration, TermsFile
from disksla.promise.configuration.found_terms import UnusedEntry, find_all
from disksla.promise.configuration.matching import Assignments, assign_found
from disksla.promise.terms_file import PersistentVolume

MOST_NAMED = 5  # entries and disks that a line of the log names


class Matched(msgspec.Struct, frozen=True):
    """The disks of a machine with their terms."""

    configuration: Configuration
    inventory: tuple[Disk, ...] = ()  # all block devices
    disks: tuple[Disk, ...] = ()  # the same, with the volumes of Kubernetes that files name
    assignments: Assignments = Assignments({}, {})
    unused: tuple[UnusedEntry, ...] = ()
    """Entries that apply to no disk; none before the disks are known."""
    cpus: int | None = None  # CPUs of the machine; None if they are not known


def match_disks(
    configuration: Configuration, inventory: tuple[Disk, ...], cpus: int | None = None
) -> Matched:
    """Return what a configuration says of the block devices of a machine with these CPUs."""
    settings, files = configuration.settings, configuration.terms_files
    inventory = with_paths(inventory)
    disks = with_kubernetes_volumes(inventory, files)
    found = find_all(disks, settings, files)
    assignments = assign_found(disks, settings, configuration.catalog, found.by_disk)
    return Matched(
        configuration,
        inventory=inventory,
        disks=disks,
        assignments=assignments,
        unused=found.unused if disks else (),
        cpus=cpus,
    )


class MatchEvent(NamedTuple):
    """What a person should know of a new matching: an event of the log."""

    message: str
    values: dict[str, object]
    is_problem: bool = True


def changes(before: Matched, after: Matched) -> list[MatchEvent]:
    """Return what is new in a matching: an event for each kind, with the first few of it."""
    events = []
    known = set(before.unused)
    unused = [entry.describe() for entry in after.unused if entry not in known]
    if unused:
        events.append(_event("entries apply to no disk", "entries", unused))
    were = before.assignments.monitored
    without = [
        f"{device}: {assignment.reason}"
        for device, assignment in after.assignments.monitored.items()
        if assignment.problem is not None and were.get(device) != assignment
    ]
    if without:
        events.append(_event("terms have no limits", "disks", without))
    counts = _counts(after)
    if after.inventory and (not before.inventory or counts != _counts(before)):
        events.append(MatchEvent("disks monitored", dict(counts), is_problem=False))
    problem = after.configuration.machine_problem
    is_known = before.inventory and problem == before.configuration.machine_problem
    if problem is not None and after.inventory and not is_known:
        events.append(MatchEvent("limits of the machine are not known", {"err": problem}))
    return events


def _event(message: str, noun: str, texts: list[str]) -> MatchEvent:
    """Return an event with the number of texts, and the first few of them."""
    named = "; ".join(texts[:MOST_NAMED])
    more = f"; and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return MatchEvent(message, {noun: len(texts), "err": f"{named}{more}"})


def _counts(matched: Matched) -> dict[str, int]:
    """Return how many disks are monitored, and how many of them are of unknown type."""
    terms = [assignment.terms for assignment in matched.assignments.monitored.values()]
    return {"disks": len(terms), "unknown_type": terms.count(UNKNOWN_TERMS)}


def with_kubernetes_volumes(
    disks: Iterable[Disk], terms_files: Iterable[TermsFile]
) -> tuple[Disk, ...]:
    """Return the disks with their volumes, claims and storage classes, where a file has them.

    A volume is recognised by its handle or the hash of it, and in block mode, where kubelet shows
    neither, by the name of the PersistentVolume. Of several files, the first that has it counts.
    """
    volumes = [volume for file in reversed(tuple(terms_files)) for volume in file.volumes]
    by_hash = {handle_hash(volume.volume_handle): volume for volume in volumes}
    by_name = {volume.persistent_volume: volume for volume in volumes if volume.persistent_volume}

    def described(disk: Disk) -> Disk:
        if disk.volume_handle is not None:
            volume = by_hash.get(handle_hash(disk.volume_handle))
        elif disk.volume_handle_hash is not None:
            volume = by_hash.get(disk.volume_handle_hash)
        else:
            volume = by_name.get(disk.persistent_volume or "")
        return disk if volume is None else _with_volume(disk, volume)

    return tuple(map(described, disks)) if volumes else tuple(disks)


def _with_volume(disk: Disk, volume: PersistentVolume) -> Disk:
    name = volume.persistent_volume or disk.persistent_volume
    return msgspec.structs.replace(
        with_volume(disk, CsiVolume(volume.driver, volume.volume_handle, name)),
        claim=volume.claim,
        namespace=volume.namespace,
        storage_class=volume.storage_class,
    )
