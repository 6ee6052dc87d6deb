"""What a disk did in a slot of time: a second or a minute, as the difference of two totals."""

import math
import struct
from collections.abc import Iterator, Sequence
from operator import sub
from typing import NamedTuple

from disksla.kernel.procfs import SECTOR_BYTES
from disksla.promise.catalogue import Limits
from disksla.state.pipeline import DiskState, SlowTotals
from disksla.verdict.credits import CreditAccount
from disksla.verdict.throttling import LIMIT_KINDS, LIMITED_VERDICTS, VERDICTS

_MS_PER_S = 1000.0
_IDLE = VERDICTS.index("idle")


class RunningTotals(NamedTuple):
    """Sums over the time since the daemon first sampled a disk."""

    reads: float = 0.0
    writes: float = 0.0
    """As the kernel counts: on disks with a write-back cache, empty flushes are among them."""
    least_writes: float = 0.0
    """Data writes at least and at most, as in `DiskTotals`."""
    most_writes: float = 0.0
    flushes: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    read_s: float = 0.0
    """Time of all reads, in I/O-seconds; likewise of writes and flushes."""
    write_s: float = 0.0
    flush_s: float = 0.0
    queue_s: float = 0.0
    """Time of all requests in flight: the integral of the queue depth."""
    wait_s: float = 0.0
    """Time that requests waited because of throttling, in I/O-seconds."""
    burst_s: float = 0.0
    """Time throttled at the burst rate."""
    others: float = 0.0
    """Operations of an NFS mount that are neither reads nor writes."""
    idle: float = 0.0
    """Seconds by verdict, in the order of VERDICTS."""
    unproven: float = 0.0
    met: float = 0.0
    throttled: float = 0.0
    below: float = 0.0
    stalled: float = 0.0
    iops: float = 0.0
    """Throttled seconds by limit, in the order of LIMIT_KINDS."""
    bandwidth: float = 0.0
    machine_iops: float = 0.0
    machine_bandwidth: float = 0.0
    unknown: float = 0.0
    slow_promise: float = 0.0
    """Seconds slower than promised; likewise far slower than usual, as `SlowTotals` has them."""
    slow_usual: float = 0.0
    slow_compared: float = 0.0
    """Seconds in which it was known what is promised or usual."""
    slow_reads: float = 0.0
    slow_writes: float = 0.0
    slow_took_s: float = 0.0
    """Time of slow requests, and what it would have been, in I/O-seconds."""
    slow_expected_s: float = 0.0


_VERDICTS = RunningTotals._fields.index(VERDICTS[0])
_LIMITS = RunningTotals._fields.index(LIMIT_KINDS[0])
_PACKED = struct.Struct(f"<dff{len(RunningTotals._fields)}f")


class Slot(NamedTuple):
    """What a disk did until `end_s`."""

    end_s: float
    """Monotonic time."""
    seconds: float
    """Duration, as the monotonic clock measured it."""
    credits_ratio: float | None
    """Burst credits left at the end, of the resource with the least; None without burst."""
    totals: RunningTotals

    @property
    def requests(self) -> float:
        """Reads and writes completed, as the kernel counts."""
        return self.totals.reads + self.totals.writes

    @property
    def iops(self) -> float:
        """Reads and data writes per second, at most."""
        return (self.totals.reads + self.totals.most_writes) / self.seconds

    @property
    def least_iops(self) -> float:
        """Reads and data writes per second, at least: empty flushes may be among the others."""
        return (self.totals.reads + self.totals.least_writes) / self.seconds

    @property
    def bytes_per_second(self) -> float:
        """Throughput."""
        return (self.totals.read_bytes + self.totals.written_bytes) / self.seconds

    @property
    def queue_depth(self) -> float:
        """Mean number of requests in flight."""
        return self.totals.queue_s / self.seconds

    @property
    def latency_s(self) -> float | None:
        """Mean time of a request, as iostat's await; None if none completed."""
        if not self.requests:
            return None
        return (self.totals.read_s + self.totals.write_s) / self.requests

    @property
    def wait_s(self) -> float:
        """Mean time that a request waited because of throttling."""
        return self.totals.wait_s / max(1.0, self.requests)

    @property
    def verdict_s(self) -> tuple[float, ...]:
        """Seconds by verdict. A verdict may be decided two seconds late, in a later slot."""
        return self.totals[_VERDICTS : _VERDICTS + len(VERDICTS)]

    @property
    def slow_s(self) -> float:
        """Seconds in which the disk was slow. They are among those of other verdicts."""
        return self.totals.slow_promise + self.totals.slow_usual

    @property
    def bad_s(self) -> float:
        """Seconds with a problem."""
        return self.slow_s + sum(
            seconds
            for verdict, seconds in zip(VERDICTS, self.verdict_s, strict=True)
            if verdict in LIMITED_VERDICTS
        )

    @property
    def throttled_s(self) -> tuple[float, ...]:
        """Throttled seconds by limit."""
        return self.totals[_LIMITS : _LIMITS + len(LIMIT_KINDS)]

    def pack(self) -> bytes:
        """Return the slot as bytes: a tenth of the memory."""
        ratio = math.nan if self.credits_ratio is None else self.credits_ratio
        return _PACKED.pack(self.end_s, self.seconds, ratio, *self.totals)


def unpack(packed: bytes) -> Iterator[Slot]:
    """Yield packed slots; their numbers have seven digits."""
    for end_s, seconds, ratio, *totals in _PACKED.iter_unpack(packed):
        yield Slot(end_s, seconds, None if math.isnan(ratio) else ratio, RunningTotals(*totals))


def slot_between(
    before: RunningTotals,
    after: RunningTotals,
    end_s: float,
    seconds: float,
    credits_ratio: float | None,
) -> Slot:
    """Return what a disk did between two totals."""
    increase = RunningTotals(*map(sub, after, before))
    return Slot(end_s, seconds, credits_ratio, increase)


def joined(slots: Sequence[Slot]) -> Slot:
    """Return what a disk did in several slots together; a slot of no time without any."""
    if not slots:
        return Slot(0.0, 0.0, None, RunningTotals())
    if len(slots) == 1:
        return slots[0]
    totals = RunningTotals(*map(sum, zip(*(slot.totals for slot in slots), strict=True)))
    last = slots[-1]
    return Slot(last.end_s, sum(slot.seconds for slot in slots), last.credits_ratio, totals)


def totals_of(disk_state: DiskState, assessed_s: float) -> RunningTotals:
    """Return the totals of a disk that was idle since its last update.

    `assessed_s` is the time that has been assessed, of which the totals have a part.
    """
    counters = disk_state.counters
    totals = disk_state.totals
    by_verdict = list(totals.verdict_totals.seconds)
    if disk_state.is_listed:
        by_verdict[_IDLE] += assessed_s - totals.complete_to.seconds
    if counters is None:
        counted = (0.0,) * _VERDICTS
    else:
        counted = (
            counters.reads or 0,
            counters.writes or 0,
            totals.least_writes,
            totals.most_writes,
            counters.flushes or 0,
            (counters.read_sectors or 0) * SECTOR_BYTES,
            (counters.written_sectors or 0) * SECTOR_BYTES,
            (counters.read_ms or 0) / _MS_PER_S,
            (counters.write_ms or 0) / _MS_PER_S,
            (counters.flush_ms or 0) / _MS_PER_S,
            (counters.queue_ms or 0) / _MS_PER_S,
            totals.verdict_totals.wait_s,
            totals.verdict_totals.burst_s,
            totals.others,
        )
    return RunningTotals(
        *counted, *by_verdict, *totals.verdict_totals.throttled_s, *_slow_totals(totals.slow)
    )


def _slow_totals(slow: SlowTotals) -> tuple[float, ...]:
    """Return the last of the totals, in their order."""
    return (
        slow.above_promise_s,
        slow.above_usual_s,
        slow.compared_s,
        slow.reads,
        slow.writes,
        slow.took_s,
        slow.expected_s,
    )


def credits_ratio_of(account: CreditAccount | None, limits: Limits) -> float | None:
    """Return the credits left of the resource with the least, from the estimate.

    Of those that others use, too, the most that may be left.
    """
    if account is None:
        return None
    is_shared = limits.shared_by is not None
    return min(
        (credit.upper_credits if is_shared else credit.estimate_credits) / bucket.capacity
        for credit, bucket in zip(account.bucket_credits, limits.buckets, strict=True)
    )


COLUMNS = 60
"""Columns of a chart: five seconds each for five minutes, a minute each for an hour."""


def columns_of(slots: Sequence[Slot], now_s: float, column_s: float) -> list[Slot | None]:
    """Return what a disk did in each column up to a monotonic time, the oldest first.

    None where nothing is known.
    """
    by_column: list[list[Slot]] = [[] for _ in range(COLUMNS)]
    for slot in slots:
        # A slot belongs to the column of its middle.
        index = COLUMNS - 1 - int((now_s - slot.end_s + slot.seconds / 2) / column_s)
        if 0 <= index < COLUMNS:
            by_column[index].append(slot)
    return [joined(each) if each else None for each in by_column]
