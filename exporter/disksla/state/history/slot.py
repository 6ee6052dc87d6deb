"""What a disk did in a slot of time: a second or a minute, as the difference of two totals."""

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import astuple

from disksla.base.counts import Counts
from disksla.kernel.procfs import SECTOR_BYTES, to_counters
from disksla.promise.catalogue import Limits
from disksla.state.pipeline import DiskState
from disksla.verdict.credits import CreditAccount
from disksla.verdict.throttling import LIMIT_KINDS, LIMITED_VERDICTS, VERDICTS

_MS_PER_S = 1000.0
_NO_COUNTERS = to_counters(())


class RunningTotals(Counts, frozen=True, gc=False):
    """Sums over the time since the daemon first sampled a disk, or their increase in a slot.

    `writes` are as the kernel counts: on disks with a write-back cache, empty flushes are among
    them. Times of requests are in I/O-seconds.
    """

    least_writes: float = 0.0  # data writes at least and at most, as in `DiskTotals`
    most_writes: float = 0.0
    flushes: float = 0.0
    read_s: float = 0.0
    write_s: float = 0.0
    flush_s: float = 0.0
    queue_s: float = 0.0  # time of all requests in flight: the integral of the queue depth
    wait_s: float = 0.0  # time that requests waited because of throttling
    burst_s: float = 0.0  # time throttled at the burst rate
    others: float = 0.0  # operations of an NFS mount that are neither reads nor writes
    idle_s: float = 0.0  # seconds by verdict
    unproven_s: float = 0.0
    met_s: float = 0.0
    throttled_s: float = 0.0
    below_s: float = 0.0
    stalled_s: float = 0.0
    at_iops_s: float = 0.0  # throttled seconds by limit
    at_bandwidth_s: float = 0.0
    at_machine_iops_s: float = 0.0
    at_machine_bandwidth_s: float = 0.0
    at_unknown_s: float = 0.0
    slow_promise_s: float = 0.0
    """Seconds slower than promised; likewise far slower than usual, as `SlowTotals` has them."""
    slow_usual_s: float = 0.0
    slow_compared_s: float = 0.0  # seconds in which it was known what is promised or usual
    slow_reads: float = 0.0
    slow_writes: float = 0.0
    slow_took_s: float = 0.0  # time of slow requests, and what it would have been
    slow_expected_s: float = 0.0


_OF_VERDICTS = attrgetter(*(f"{verdict}_s" for verdict in VERDICTS))
_OF_LIMITS = attrgetter(*(f"at_{limit}_s" for limit in LIMIT_KINDS))
_PACKED = struct.Struct(f"<dff{len(RunningTotals.__struct_fields__)}f")


class Slot(NamedTuple):
    """What a disk did until `end_s`."""

    end_s: float  # monotonic time
    seconds: float  # duration, as the monotonic clock measured it
    credits_ratio: float | None
    """Burst credits left at the end, of the resource with the least; None without burst."""
    totals: RunningTotals

    @property
    def requests(self) -> float:
        """Reads and writes completed, as the kernel counts."""
        return self.totals.requests

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
        seconds: tuple[float, ...] = _OF_VERDICTS(self.totals)
        return seconds

    @property
    def slow_s(self) -> float:
        """Seconds in which the disk was slow. They are among those of other verdicts."""
        return self.totals.slow_promise_s + self.totals.slow_usual_s

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
        seconds: tuple[float, ...] = _OF_LIMITS(self.totals)
        return seconds

    def pack(self) -> bytes:
        """Return the slot as bytes: a tenth of the memory."""
        ratio = math.nan if self.credits_ratio is None else self.credits_ratio
        return _PACKED.pack(self.end_s, self.seconds, ratio, *astuple(self.totals))


def unpack(packed: bytes) -> Iterator[Slot]:
    """Yield packed slots; their numbers have seven digits."""
    for end_s, seconds, ratio, *totals in _PACKED.iter_unpack(packed):
        yield Slot(end_s, seconds, None if math.isnan(ratio) else ratio, RunningTotals(*totals))


def total_slot(slots: Sequence[Slot]) -> Slot:
    """Return what a disk did in several slots together; a slot of no time without any."""
    if not slots:
        return Slot(0.0, 0.0, None, RunningTotals())
    if len(slots) == 1:
        return slots[0]
    columns = zip(*(astuple(slot.totals) for slot in slots), strict=True)
    totals = RunningTotals(*map(sum, columns))  # takes a tenth of the time of adding them by `+`
    last = slots[-1]
    return Slot(last.end_s, sum(slot.seconds for slot in slots), last.credits_ratio, totals)


def totals_of(disk_state: DiskState, assessed_s: float) -> RunningTotals:
    """Return the totals of a disk that was idle since its last update.

    `assessed_s` is the time that has been assessed, of which the totals have a part.
    """
    totals, slow = disk_state.totals, disk_state.totals.slow
    counters = disk_state.counters or _NO_COUNTERS
    verdict_s = dict(zip(VERDICTS, totals.verdict_totals.seconds, strict=True))
    throttled_s = zip(LIMIT_KINDS, totals.verdict_totals.throttled_s, strict=True)
    if disk_state.is_listed:
        verdict_s["idle"] += assessed_s - totals.complete_to.seconds
    return RunningTotals(
        reads=counters.reads or 0,
        writes=counters.writes or 0,
        read_bytes=(counters.read_sectors or 0) * SECTOR_BYTES,
        written_bytes=(counters.written_sectors or 0) * SECTOR_BYTES,
        least_writes=totals.least_writes,
        most_writes=totals.most_writes,
        flushes=counters.flushes or 0,
        read_s=(counters.read_ms or 0) / _MS_PER_S,
        write_s=(counters.write_ms or 0) / _MS_PER_S,
        flush_s=(counters.flush_ms or 0) / _MS_PER_S,
        queue_s=(counters.queue_ms or 0) / _MS_PER_S,
        wait_s=totals.verdict_totals.wait_s,
        burst_s=totals.verdict_totals.burst_s,
        others=totals.others,
        **{f"{verdict}_s": seconds for verdict, seconds in verdict_s.items()},
        **{f"at_{limit}_s": seconds for limit, seconds in throttled_s},
        slow_promise_s=slow.above_promise_s,
        slow_usual_s=slow.above_usual_s,
        slow_compared_s=slow.compared_s,
        slow_reads=slow.reads,
        slow_writes=slow.writes,
        slow_took_s=slow.took_s,
        slow_expected_s=slow.expected_s,
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


COLUMNS = 60  # columns of a chart: five seconds each for five minutes, a minute each for an hour


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
    return [total_slot(each) if each else None for each in by_column]


BLOCK = 20  # slots of a block


class PackedSlots(msgspec.Struct, frozen=True, gc=False):
    """Slots in blocks, which are compressed when they are complete: to a fifth in most cases."""

    blocks: tuple[bytes, ...] = ()  # complete ones, the oldest first
    last: tuple[bytes, ...] = ()

    def plus(self, packed: bytes, most: int) -> "PackedSlots":
        """Return the slots with one more; of the others, the last `most` at least are kept."""
        if len(self.last) < BLOCK:
            return PackedSlots(self.blocks, (*self.last, packed))
        block = zlib.compress(b"".join(self.last), zlib.Z_BEST_SPEED)
        return PackedSlots((*self.blocks, block)[-most // BLOCK :], (packed,))

    def without_stall(self, most: int) -> "PackedSlots":
        """Return the last `most` slots, idle where stalled since requests were completed last."""
        slots = self.unpacked(most)
        for index, slot in reversed(list(enumerate(slots))):
            totals = slot.totals
            totals = msgspec.structs.replace(
                totals, idle_s=totals.idle_s + totals.stalled_s, stalled_s=0.0
            )
            slots[index] = slot._replace(totals=totals)
            if slot.requests and index < len(slots) - 1:
                break
        kept = PackedSlots()
        for slot in slots:
            kept = kept.plus(slot.pack(), most)
        return kept

    def unpacked(self, most: int) -> list[Slot]:
        """Return the last `most` slots, the oldest first."""
        packed = b"".join([*map(zlib.decompress, self.blocks), *self.last])
        return list(unpack(packed))[-most:]
