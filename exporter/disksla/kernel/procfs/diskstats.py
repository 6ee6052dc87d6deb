"""/proc/diskstats and `stat` of a disk in sysfs: parse lines, and compute differences of counters.

Format: Documentation/admin-guide/iostats.rst and Documentation/ABI/testing/procfs-diskstats.
Counters are separated by one space. A line has 14 fields before Linux 4.18, 18 with discards
(4.18), 20 with flushes (5.5), 7 for partitions of 2.6 kernels, and 17 under some versions of
lxcfs. Counters that the kernel does not print are None; fields after the 20th are ignored.
"""

import re
from operator import lt, sub
from typing import Annotated, NamedTuple, Self

import msgspec

from disksla.base.counts import Summable
from disksla.base.errors import DiskslaError

SECTOR_BYTES = 512
"""Size of a sector in /proc/diskstats, independent of the block size of the disk."""

LINE_HEAD = re.compile(r"\s*(\d+)\s+(\d+)\s+(\S+)\s")
"""Start of every line: major number, minor number and kernel name."""


class Counters(NamedTuple):
    """The counters of one line, in the units of the kernel so that sums stay exact.

    Requests are counted after merging. Requests, sectors and their milliseconds are added when a
    request completes, so during a stall they do not move. Times are measured in nanoseconds and
    truncated to milliseconds.
    """

    reads: int | None  # reads completed
    reads_merged: int | None  # reads merged into an adjacent request
    read_sectors: int | None
    read_ms: int | None  # milliseconds spent by all reads, queueing included
    writes: int | None
    """Writes completed. On a disk with a volatile write cache, empty flushes are among them."""
    writes_merged: int | None
    written_sectors: int | None
    write_ms: int | None  # milliseconds spent by all writes, queueing included
    busy_ms: int | None
    """Milliseconds with at least one request in flight (io_ticks), in steps of a jiffy."""
    queue_ms: int | None  # milliseconds spent by all requests (time_in_queue)
    discards: int | None
    discards_merged: int | None
    discarded_sectors: int | None
    discard_ms: int | None
    flushes: int | None
    """Flushes completed; concurrent ones count once. Not counted for partitions."""
    flush_ms: int | None


CounterValues = tuple[int | None, ...]
"""The counters of one line in the order of `Counters`. Counters that the kernel does not print are
missing at the end, or None."""


class DiskstatsLine(Summable, frozen=True, gc=False):
    """The fields of a line after the device name."""

    reading: CounterValues
    inflight: int | None
    """Requests in flight: a level, not a counter. On some kernels (measured on 6.12 and 6.18, not
    on 6.1) the line of a whole disk leaves out requests sent to its partitions."""

    def __add__(self, other: Self) -> Self:
        """Return the counters of several paths of one disk as its own."""
        pairs = zip(self.reading, other.reading, strict=False)
        reading = tuple((one or 0) + (more or 0) for one, more in pairs)
        return type(self)(reading, (self.inflight or 0) + (other.inflight or 0))


class MalformedLineError(DiskslaError):
    """A line does not have the format of /proc/diskstats; the message quotes it."""


_HEAD_FIELDS = 3
_OLD_PARTITION_COUNTERS = 4
_MIN_COUNTERS = 11
_MAX_COUNTERS = 17
_INFLIGHT_INDEX = 8
_COUNTER_LIMIT = 2**64
LEAST_NEGATIVE = 2**31
"""From here on, a number of requests in flight is one below zero without its sign, as some kernels
before 4.15 print it."""
_decode = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0)]]).decode
"""Decodes counters as a JSON array, which takes a third of the time of `int` for each."""


def parse_line(line: str) -> DiskstatsLine:
    """Parse one line of /proc/diskstats.

    Raise MalformedLineError if the number of fields is not one that a kernel prints, or if a
    field is not a number from 0 to 2^64 - 1.
    """
    counters = "".join(line.split(maxsplit=_HEAD_FIELDS)[_HEAD_FIELDS:])
    try:
        numbers = _decode(f"[{counters.replace(' ', ',')}]")[:_MAX_COUNTERS]
    except msgspec.DecodeError:
        raise _not_counters(line) from None
    if len(numbers) < _MIN_COUNTERS and len(numbers) != _OLD_PARTITION_COUNTERS:
        raise MalformedLineError(
            f"found {len(line.split())} fields in {line[:120]!r}; expected 14 or more"
        )
    if max(numbers) >= _COUNTER_LIMIT:
        raise _not_counters(line)
    if len(numbers) == _OLD_PARTITION_COUNTERS:
        reads, read_sectors, writes, written_sectors = numbers
        return DiskstatsLine(
            (reads, None, read_sectors, None, writes, None, written_sectors, None), None
        )
    inflight = numbers.pop(_INFLIGHT_INDEX)
    return DiskstatsLine(tuple(numbers), inflight if inflight < LEAST_NEGATIVE else 0)


def _not_counters(line: str) -> MalformedLineError:
    return MalformedLineError(f"found {line[:120]!r}; expected counters from 0 to 2^64 - 1")


_ABSENT: tuple[None, ...] = (None,) * len(Counters._fields)
_WRAP = 2**32
_MAX_RISE_OVER_WRAP = 2**31


def has_decreased(before: CounterValues, after: CounterValues) -> bool:
    """Return whether any counter is lower than before, or counters were added or removed."""
    if len(before) != len(after):
        return True
    try:
        return True in map(lt, after, before)  # type: ignore[arg-type]  # None raises TypeError
    except TypeError:  # some are None, as for partitions of 2.6 kernels
        return any(_rise(old, new) < 0 for old, new in zip(before, after, strict=True))


def unwrap(before: CounterValues, after: CounterValues) -> CounterValues | None:
    """Return `before` with wrapped counters lowered by 2^32, so that `after - before` is right.

    Return None if the counters were reset. Millisecond counters have 32 bits on every kernel, and
    all counters have on 32-bit kernels. A counter that decreased has wrapped if it was below
    2^32, if it increased by less than 2^31 modulo 2^32, and if other counters did not decrease
    with it: a reset lowers every counter that was not 0.
    """
    if len(before) != len(after):
        return None
    counters = list(before)
    decreased = [index for index, old in enumerate(before) if _rise(old, after[index]) < 0]
    if len(decreased) == sum(1 for old in before if old):
        return None
    for index in decreased:
        old = before[index] or 0
        if old >= _WRAP or _rise(old, after[index]) + _WRAP >= _MAX_RISE_OVER_WRAP:
            return None
        counters[index] = old - _WRAP
    return tuple(counters)


def difference(after: CounterValues, before: CounterValues) -> CounterValues:
    """Return `after - before` for each counter; None where either is None."""
    if len(before) == len(after) and None not in before and None not in after:
        return tuple(map(sub, after, before))
    return tuple(
        None if old is None or new is None else new - old
        for old, new in zip(before, after, strict=True)
    )


def to_counters(reading: CounterValues) -> Counters:
    """Return the counters as a record, None for those that are missing."""
    return Counters._make((*reading, *_ABSENT[len(reading) :]))


def _rise(old: int | None, new: int | None) -> int:
    return 0 if old is None or new is None else new - old


_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_READS, _READ_SECTORS, _WRITES, _WRITTEN_SECTORS, _INFLIGHT = 0, 2, 4, 6, 8
_FLUSHES = 15  # the time that they took follows
_FEWEST = 11  # numbers that every kernel has


class CloseSample(Summable, frozen=True, array_like=True, gc=False):
    """The counters that a verdict needs, at one moment. Recordings have it as an array."""

    at_s: float  # monotonic time
    reads: _Count
    writes: _Count
    """As the kernel counts: on a disk with a write-back cache, empty flushes are among them."""
    read_sectors: _Count
    written_sectors: _Count
    inflight: _Count  # requests in flight
    flushes: _Count = 0  # 0 where the kernel does not count them (before Linux 5.5)
    flush_ms: _Count = 0  # time spent by all flushes

    def __add__(self, other: Self) -> Self:
        """Return the close sample of several paths of one disk, at the same moment, as its own."""
        return msgspec.structs.replace(super().__add__(other), at_s=self.at_s)


def parse_close_sample(at_s: float, stat: bytes, inflight: bytes | None = None) -> CloseSample:
    """Return the close sample of a text of `stat`. Raise ValueError if it is not one.

    `inflight` is the text of sysfs `inflight`, where the requests in flight of `stat` are not
    those of the partitions.
    """
    try:
        numbers = [int(number) for number in stat.split()]
    except ValueError:
        numbers = []
    if len(numbers) < _FEWEST:
        raise ValueError(f"found {stat.decode(errors='replace')!r}; expected 11 numbers or more")
    in_flight = numbers[_INFLIGHT] if inflight is None else sum(parse_inflight(inflight))
    flushes, flush_ms, *_ = (*numbers[_FLUSHES:], 0, 0)
    return CloseSample(
        at_s=round(at_s, 5),
        reads=numbers[_READS],
        writes=numbers[_WRITES],
        read_sectors=numbers[_READ_SECTORS],
        written_sectors=numbers[_WRITTEN_SECTORS],
        inflight=in_flight if 0 <= in_flight < LEAST_NEGATIVE else 0,
        flushes=flushes,
        flush_ms=flush_ms,
    )


def parse_inflight(inflight: bytes) -> tuple[int, int]:
    """Return reads and writes in flight of a text of sysfs `inflight`. Raise ValueError."""
    try:
        reads, writes = map(int, inflight.split())
    except ValueError:
        raise ValueError(
            f"found {inflight.decode(errors='replace')!r}; expected two numbers"
        ) from None
    return reads, writes
