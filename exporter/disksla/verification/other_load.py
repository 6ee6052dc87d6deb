"""Load of other programs on a disk during a test, which makes the test invalid."""

import math

from disksla.disks import work_of
from disksla.fio import FioResult
from disksla.limits import Charge, Work
from disksla.procfs import CounterValues, difference, to_counters

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
    return work_of(rise).plus(Work(rise.reads_merged or 0, rise.writes_merged or 0))


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
