"""What a disk keeps of an earlier life of the daemon, and leaves to a later one."""

import msgspec

from disksla.config import ProbeKind
from disksla.credits import CreditAccount, initial
from disksla.disks import Disk, disk_key
from disksla.limits import Assignment
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.probe_results import ProbeTotals
from disksla.pipeline.saved_state import (
    SavedDisk,
    SavedSpending,
    SavedState,
    resume,
    save_credits,
    seconds_away,
)
from disksla.verdict import Ceiling, Clocks, DetectorState, Throttle


class PreviousRun(msgspec.Struct, frozen=True):
    """What was saved, and the boot of the machine in which it is remembered."""

    saved: SavedState
    boot: str


def restore_disk(
    previous_run: PreviousRun | None, disk: Disk, assignment: Assignment, now: Clocks | None
) -> DiskState:
    """Give a disk that comes under our eyes, with what is remembered of it.

    Nothing is, of a disk without serial and WWN; under other terms than it had then, only what
    probes have spent.
    """
    fresh = DiskState(disk, assignment)
    key = disk_key(disk)
    if previous_run is None or now is None or key is None:
        return fresh
    known = previous_run.saved.disks.get(key)
    if known is None:
        return fresh
    fresh = msgspec.structs.replace(fresh, probes=_probes(known))
    if known.terms != assignment.terms:
        return fresh
    away_s = seconds_away(previous_run.saved, previous_run.boot, now)
    return msgspec.structs.replace(
        fresh, detector=_past(known), credits=_purse(known, assignment, away_s, now)
    )


def save_disk(watched: DiskState, now: Clocks) -> tuple[str, SavedDisk] | None:
    """Give what is to be saved of a disk; None if it could not be known again, or for nothing."""
    key = disk_key(watched.disk)
    burst, ceiling = watched.assignment.limits.burst, watched.detector.ceiling
    account = watched.credits_at(now.boottime_s)
    spendings = {
        kind: SavedSpending(totals.day, totals.day_bytes)
        for kind, totals in watched.probes.items()
        if totals.day_bytes
    }
    if key is None or (account is None and ceiling is None and not spendings):
        return None
    credits_by_bucket = {}
    if account is not None and burst is not None:
        credits_by_bucket = dict(zip(burst.buckets, account.bucket_credits, strict=True))
    return key, SavedDisk(
        watched.assignment.terms,
        save_credits(credits_by_bucket),
        ceiling.iops if ceiling is not None else None,
        ceiling.bytes_per_second if ceiling is not None else None,
        spendings,
    )


def _probes(known: SavedDisk) -> dict[ProbeKind, ProbeTotals]:
    return {
        kind: ProbeTotals(day=spending.day, day_bytes=spending.bytes)
        for kind, spending in known.probes.items()
    }


def _past(known: SavedDisk) -> DetectorState:
    if not known.ceiling_iops or not known.ceiling_bytes_per_second:
        return DetectorState()
    requests, amount = round(known.ceiling_iops), round(known.ceiling_bytes_per_second)
    return DetectorState(ceiling=Ceiling(Throttle("unknown", "unknown"), 1, 1.0, requests, amount))


def _purse(
    known: SavedDisk, assignment: Assignment, away_s: tuple[float, float], now: Clocks
) -> CreditAccount | None:
    burst = assignment.limits.burst
    if burst is None:
        return None
    bucket_credits = []
    for bucket in burst.buckets:
        saved = known.credits.get(bucket.resource)
        resumed = resume(saved, bucket, away_s) if saved is not None else None
        bucket_credits.append(resumed or initial(bucket))
    return CreditAccount(tuple(bucket_credits), now.boottime_s)
