"""What a disk did beyond what a test asked of it: a test beside other load measures nothing."""

import math

from disksla.disks import Transferred
from disksla.fio import FioResult
from disksla.limits import Charge
from disksla.procfs import Reading, difference, to_counters

NEVER_SPLIT_BYTES = 64 * 1024
"""Requests up to this size reach a disk in one piece, whatever its driver."""

_COMMIT_S = 5.0
_JOURNAL_BLOCKS = 10
_JOURNAL_BLOCK_BYTES = 4096


def transferred_between(before: Reading, after: Reading) -> Transferred:
    """Give what a disk did between two readings of its counters, as requests were handed in.

    The kernel counts requests after merging, and those merged beside them.
    """
    rise = to_counters(difference(after, before))
    return Transferred.of(rise).plus(Transferred(rise.reads_merged or 0, rise.writes_merged or 0))


def transferred_by(result: FioResult) -> Transferred:
    """Give what a test did by fio's own account."""
    read, write = result.read, result.write
    return Transferred(read.requests, write.requests, read.bytes, write.bytes)


def journal_writes(seconds: float) -> Transferred:
    """Give what a file system may write of its own accord while a file of it is tested.

    A journal is committed every 5 s (ext4(5), xfs(5)), in a few blocks.
    """
    writes = math.ceil(seconds * _JOURNAL_BLOCKS / _COMMIT_S)
    return Transferred(writes=writes, written_bytes=writes * _JOURNAL_BLOCK_BYTES)


def other_share(
    charges: tuple[Charge, ...],
    seconds: float,
    disk: Transferred,
    own: Transferred,
    request_bytes: int,
) -> float:
    """Give the share of the promise that went to others, at least as far as can be told.

    Requests that are larger than a disk takes at once reach it in pieces, so of them only the
    bytes are compared; in the direction in which the test did nothing, all is of others.
    """
    whole = request_bytes <= NEVER_SPLIT_BYTES
    reads = disk.reads - own.reads if whole or not own.reads else 0
    writes = disk.writes - own.writes if whole or not own.writes else 0
    others = Transferred(
        max(0, reads),
        max(0, writes),
        max(0, disk.read_bytes - own.read_bytes),
        max(0, disk.written_bytes - own.written_bytes),
    )
    return others.load(charges, seconds) or 0.0
