"""What a disk keeps of an earlier life of the daemon, and leaves to a later one."""

import msgspec

from disksla.core.credits import begin
from disksla.core.disk import Disk
from disksla.core.interval import Clocks
from disksla.core.probeledger import ProbeLedger
from disksla.core.purse import Purse
from disksla.core.saved import (
    SavedDisk,
    SavedSpending,
    SavedState,
    away,
    disk_key,
    resume,
    save_credits,
)
from disksla.core.settings import ProbeKind
from disksla.core.throttle import Hold
from disksla.core.verdict import Ceiling, Past
from disksla.core.view import Assignment
from disksla.core.watched import Watched


class Memory(msgspec.Struct, frozen=True):
    """What was saved, and the boot of the machine in which it is remembered."""

    saved: SavedState
    boot: str


def remember(
    memory: Memory | None, disk: Disk, assignment: Assignment, now: Clocks | None
) -> Watched:
    """Give a disk that comes under our eyes, with what is remembered of it.

    Nothing is, of a disk without serial and WWN; under other terms than it had then, only what
    probes have spent.
    """
    fresh = Watched(disk, assignment)
    key = disk_key(disk)
    if memory is None or now is None or key is None:
        return fresh
    known = memory.saved.disks.get(key)
    if known is None:
        return fresh
    fresh = msgspec.structs.replace(fresh, probes=_probes(known))
    if known.terms != assignment.terms:
        return fresh
    away_s = away(memory.saved, memory.boot, now)
    return msgspec.structs.replace(
        fresh, past=_past(known), purse=_purse(known, assignment, away_s, now)
    )


def leave(watched: Watched, now: Clocks) -> tuple[str, SavedDisk] | None:
    """Give what is to be saved of a disk; None if it could not be known again, or for nothing."""
    key = disk_key(watched.disk)
    burst, ceiling = watched.assignment.limits.burst, watched.past.ceiling
    purse = watched.purse_at(now.boottime_s)
    spendings = {
        kind: SavedSpending(ledger.day, ledger.day_bytes)
        for kind, ledger in watched.probes.items()
        if ledger.day_bytes
    }
    if key is None or (purse is None and ceiling is None and not spendings):
        return None
    credits_by_bucket = {}
    if purse is not None and burst is not None:
        credits_by_bucket = dict(zip(burst.buckets, purse.contents, strict=True))
    return key, SavedDisk(
        watched.assignment.terms,
        save_credits(credits_by_bucket),
        ceiling.iops if ceiling is not None else None,
        ceiling.bytes_per_second if ceiling is not None else None,
        spendings,
    )


def _probes(known: SavedDisk) -> dict[ProbeKind, ProbeLedger]:
    return {
        kind: ProbeLedger(day=spending.day, day_bytes=spending.bytes)
        for kind, spending in known.probes.items()
    }


def _past(known: SavedDisk) -> Past:
    if not known.ceiling_iops or not known.ceiling_bytes_per_second:
        return Past()
    requests, amount = round(known.ceiling_iops), round(known.ceiling_bytes_per_second)
    return Past(ceiling=Ceiling(Hold("unknown", "unknown"), 1, 1.0, requests, amount))


def _purse(
    known: SavedDisk, assignment: Assignment, away_s: tuple[float, float], now: Clocks
) -> Purse | None:
    burst = assignment.limits.burst
    if burst is None:
        return None
    contents = []
    for bucket in burst.buckets:
        saved = known.credits.get(bucket.resource)
        resumed = resume(saved, bucket, away_s) if saved is not None else None
        contents.append(resumed or begin(bucket))
    return Purse(tuple(contents), now.boottime_s)
