"""Preconditions of a valid verification, and the ones that were violated.

Source: https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla. It requires a disk that is
not the boot disk and has no other load, and one of four file systems if a file is used.
"""

import math
from typing import Literal

import msgspec

from disksla.base.units import format_duration
from disksla.kernel.disks import Disk
from disksla.kernel.procfs import SECTOR_BYTES, CounterValues, difference, to_counters
from disksla.measure.fio import FioResult
from disksla.measure.verification.suites import Suite
from disksla.promise.catalogue import Charge, Work
from disksla.verdict.credits import WINDOW_S

Precondition = Literal[
    "boot_disk", "other_load", "file_system", "probed", "short_runtime", "base_not_reached"
]

CUT_WINDOWS = 3
"""How many windows of the limiter a test may gain or lose: a full one at its start, and a partial
one at each end."""
_MAX_OTHER_LOAD = 0.01
"""Load by other programs above which a test is not valid: a third of the usual tolerance, so that
it cannot decide a verdict."""
_SYSTEM_MOUNT_POINTS = {"/", "/boot", "/boot/efi", "/efi", "/usr"}
_ROUNDING_RATIO = 0.01


class Violation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A precondition that was violated."""

    precondition: Precondition
    message: str


def known_violations(
    disk: Disk, suite: Suite, runtime_s: float, tolerance_ratio: float, file_system: str | None
) -> tuple[Violation, ...]:
    """Return the violations that are known before the disk is accessed.

    `file_system` is the type of the file system of the scratch file; None without one.
    """
    found = []
    mount_points = sorted(_SYSTEM_MOUNT_POINTS & set(disk.mount_points))
    if mount_points:  # it always has other load
        where = f"it is mounted at {', '.join(mount_points)}"
        found.append(Violation("boot_disk", f"the system runs from {disk.name}: {where}"))
    short = short_runtime(runtime_s, tolerance_ratio)
    found += [short] if short is not None else []
    allowed = suite.file_systems
    if file_system is not None and allowed and file_system not in allowed:
        expected = f"suite {suite.name} expects {', '.join(allowed)}"
        message = f"the scratch file is on {file_system}; {expected}"
        found.append(Violation("file_system", message))
    return tuple(found)


def least_runtime_s(tolerance_ratio: float) -> float:
    """Return the shortest runtime for which the windows of the limiter do not matter.

    What a test gains or loses by them must be within the tolerance: 10 s at 3 %.
    """
    return CUT_WINDOWS * WINDOW_S / tolerance_ratio


def short_runtime(runtime_s: float, tolerance_ratio: float) -> Violation | None:
    """Return the violation if tests are too short; a deviation of 1 % counts as rounding."""
    least_s = least_runtime_s(tolerance_ratio)
    if runtime_s >= least_s or math.isclose(runtime_s, least_s, rel_tol=_ROUNDING_RATIO):
        return None
    return Violation(
        "short_runtime",
        f"a runtime of {format_duration(runtime_s)} is too short: limiters have windows of"
        f" {format_duration(WINDOW_S)}, so a tolerance of {100 * tolerance_ratio:.3g}% needs at"
        f" least {format_duration(least_s)}",
    )


def other_load(share: float, when: str) -> Violation | None:
    """Return the violation if other processes used more than a negligible share of the promise."""
    if share <= _MAX_OTHER_LOAD:
        return None
    return Violation(
        "other_load",
        f"other load {when}: {100 * share:.2g}% of the promise; at most"
        f" {100 * _MAX_OTHER_LOAD:.2g}% is allowed",
    )


NEVER_SPLIT_BYTES = 64 * 1024
"""Requests up to this size are not split by any driver."""

_COMMIT_S = 5.0
_JOURNAL_BLOCKS = 10
_JOURNAL_BLOCK_BYTES = 4096


def transferred_between(before: CounterValues, after: CounterValues) -> Work:
    """Return what a disk transferred between two readings, with requests as they were submitted.

    The kernel counts requests after merging; the merged ones, counted separately, are added.
    """
    rise = to_counters(difference(after, before))
    return Work(
        (rise.reads or 0) + (rise.reads_merged or 0),
        (rise.writes or 0) + (rise.writes_merged or 0),
        (rise.read_sectors or 0) * SECTOR_BYTES,
        (rise.written_sectors or 0) * SECTOR_BYTES,
    )


def transferred_by(result: FioResult) -> Work:
    """Return what a test transferred, as reported by fio."""
    read, write = result.read, result.write
    return Work(read.requests, write.requests, read.bytes, write.bytes)


def journal_writes(seconds: float) -> Work:
    """Return what a file system may write for its journal while a file of it is tested.

    A journal is committed every 5 s (ext4(5), xfs(5)), in a few blocks.
    """
    writes = math.ceil(seconds * _JOURNAL_BLOCKS / _COMMIT_S)
    return Work(writes=writes, written_bytes=writes * _JOURNAL_BLOCK_BYTES)


def other_share(
    charges: tuple[Charge, ...], seconds: float, disk: Work, own: Work, request_bytes: int
) -> float:
    """Return a lower bound of the load by other programs, as a share of the limit.

    Drivers split large requests, so only their bytes are compared. In a direction that the test
    does not use, all transfers are of other programs.
    """
    whole = request_bytes <= NEVER_SPLIT_BYTES
    reads = disk.reads - own.reads if whole or not own.reads else 0
    writes = disk.writes - own.writes if whole or not own.writes else 0
    others = Work(
        max(0, reads),
        max(0, writes),
        max(0, disk.read_bytes - own.read_bytes),
        max(0, disk.written_bytes - own.written_bytes),
    )
    return others.load(charges, seconds) or 0.0
