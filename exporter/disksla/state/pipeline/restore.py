"""Saving and restoring one disk: its credits, its ceiling, and the bytes used by probes.

Of a group of disks that share limits of the machine, only credits are saved.
"""

from collections.abc import Mapping

import msgspec

from disksla.kernel.disks import Disk, disk_key
from disksla.promise.catalogue import Assignment, Limits, Resource
from disksla.promise.configuration import ProbeKind
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.group_state import GroupState
from disksla.state.pipeline.probe_results import ProbeTotals
from disksla.state.pipeline.saved_state import (
    SavedCredits,
    SavedDisk,
    SavedSpending,
    SavedState,
    resume,
    save_credits,
    seconds_since_saved,
)
from disksla.verdict.credits import CreditAccount, initial
from disksla.verdict.interval import Clocks
from disksla.verdict.throttling import UNKNOWN_LIMIT, Ceiling, DetectorState


class PreviousRun(msgspec.Struct, frozen=True):
    """State saved by an earlier daemon, to restore disks from."""

    saved: SavedState
    boot: str  # boot id of the machine now (random(4)); `saved.boot` is that of the earlier daemon


def restore_disk(
    previous_run: PreviousRun | None, disk: Disk, assignment: Assignment, now: Clocks | None
) -> DiskState:
    """Return the state of a newly monitored disk, with what was saved of it.

    Nothing is saved of a disk that has neither serial nor WWN. If its terms are not those that it
    was saved with, only the bytes used by probes are restored.
    """
    fresh = DiskState(disk=disk, assignment=assignment)
    key = disk_key(disk)
    if previous_run is None or now is None or key is None:
        return fresh
    saved = previous_run.saved.disks.get(key)
    if saved is None:
        return fresh
    fresh = msgspec.structs.replace(fresh, probes=_probes(saved))
    if saved.terms != assignment.terms:
        return fresh
    elapsed_s = seconds_since_saved(previous_run.saved, previous_run.boot, now)
    return msgspec.structs.replace(
        fresh,
        detector=_detector(saved),
        credits=_credits(saved.credits, assignment.limits, elapsed_s, now),
    )


def restore_group(
    previous_run: PreviousRun | None, group: GroupState, now: Clocks | None
) -> GroupState:
    """Return the state of a new group, with the credits that were saved of it."""
    if previous_run is None or now is None:
        return group
    saved = previous_run.saved.groups.get(group.shared.name)
    if saved is None:
        return group
    elapsed_s = seconds_since_saved(previous_run.saved, previous_run.boot, now)
    account = _credits(saved, group.shared.limits, elapsed_s, now)
    return msgspec.structs.replace(group, credits=account)


def save_group(group: GroupState, now: Clocks) -> dict[Resource, SavedCredits]:
    """Return the credits to save of a group; empty without a burst."""
    return save_credits(group.credits_at(now.boottime_s), group.shared.limits.buckets)


def save_disk(disk_state: DiskState, now: Clocks) -> tuple[str, SavedDisk] | None:
    """Return the key and the record to save of a disk.

    None if it has neither serial nor WWN, or if there is nothing to save.
    """
    key = disk_key(disk_state.disk)
    ceiling = disk_state.detector.ceiling
    account = disk_state.credits_at(now.boottime_s)
    used_by_probes = {
        kind: SavedSpending(totals.day, totals.day_bytes)
        for kind, totals in disk_state.probes.items()
        if totals.day_bytes
    }
    if key is None or (account is None and ceiling is None and not used_by_probes):
        return None
    return key, SavedDisk(
        disk_state.assignment.terms,
        save_credits(account, disk_state.assignment.limits.buckets),
        ceiling.last_iops if ceiling is not None else None,
        ceiling.bytes_per_second if ceiling is not None else None,
        used_by_probes,
    )


def _probes(saved: SavedDisk) -> dict[ProbeKind, ProbeTotals]:
    return {
        kind: ProbeTotals(day=used.day, day_bytes=used.bytes)
        for kind, used in saved.probes.items()
    }


def _detector(saved: SavedDisk) -> DetectorState:
    if not saved.ceiling_iops or not saved.ceiling_bytes_per_second:
        return DetectorState()
    ceiling = Ceiling(UNKNOWN_LIMIT, saved.ceiling_iops, saved.ceiling_bytes_per_second)
    return DetectorState(ceiling=ceiling)


def _credits(
    saved: Mapping[Resource, SavedCredits],
    limits: Limits,
    elapsed_s: tuple[float, float],
    now: Clocks,
) -> CreditAccount | None:
    if limits.burst is None:
        return None
    resumed = (
        resume(saved.get(bucket.resource), bucket, elapsed_s) or initial(bucket)
        for bucket in limits.buckets
    )
    return CreditAccount(tuple(resumed), now.boottime_s)
