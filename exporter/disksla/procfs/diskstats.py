"""The text of /proc/diskstats, as counters, and what they rose by.

Field by field as in Documentation/admin-guide/iostats.rst and Documentation/ABI/testing/
procfs-diskstats: 14 fields before 4.18, 18 with discards, 20 with flushes (5.5), 7 for the
partitions of 2.6 kernels, 17 under some lxcfs, more one day. What a kernel does not print is
absent (None); what comes after the fields we know is left alone.
"""

import re
from operator import lt
from typing import NamedTuple

from disksla.errors import DiskslaError

SECTOR_BYTES = 512
"""A sector of /proc/diskstats, whatever the block size of the disk."""

LINE_HEAD = re.compile(r"\s*(\d+)\s+(\d+)\s+(\S+)\s")
"""Major number, minor number and kernel name, with which every line begins."""


class Counters(NamedTuple):
    """The counters of one line, in the kernel's own units so that sums of them stay exact.

    Requests are counted after merging; time is in milliseconds. All are added to when a request
    completes, except `busy_ms`.
    """

    reads: int | None
    reads_merged: int | None
    read_sectors: int | None
    read_ms: int | None
    writes: int | None
    writes_merged: int | None
    written_sectors: int | None
    write_ms: int | None
    busy_ms: int | None
    queue_ms: int | None
    discards: int | None
    discards_merged: int | None
    discarded_sectors: int | None
    discard_ms: int | None
    flushes: int | None
    flush_ms: int | None


Reading = tuple[int | None, ...]
"""The counters of one line in the order of `Counters`; those that the kernel does not print are
missing at the end, or None."""


class DiskstatsLine(NamedTuple):
    """What a line says after its name."""

    reading: Reading
    inflight: int | None
    """Requests in flight; the one level among counters. It stays 0 for the whole disk when a
    partition is used (6.12 and later), hence only a hint."""


class MalformedLineError(DiskslaError):
    """A line is not one of /proc/diskstats; the text says what was found."""


_HEAD_FIELDS = 3
_OLD_PARTITION_FIELDS = 4
_FEWEST_FIELDS = 11
_KNOWN_FIELDS = 17
_INFLIGHT_FIELD = 8
_TOO_LARGE = 2**64


def parse_line(line: str) -> DiskstatsLine:
    """Read one line of /proc/diskstats.

    Raises MalformedLine for anything but numbers in a known shape: a number that is negative or
    beyond 64 bits is not the kernel's.
    """
    fields = line.split()
    try:
        numbers = list(map(int, fields[_HEAD_FIELDS : _HEAD_FIELDS + _KNOWN_FIELDS]))
    except ValueError:
        raise MalformedLineError(f"no numbers where counters should be: {line[:120]!r}") from None
    if len(numbers) < _FEWEST_FIELDS and len(numbers) != _OLD_PARTITION_FIELDS:
        raise MalformedLineError(
            f"{len(fields)} fields where 14 or more are right: {line[:120]!r}"
        )
    if min(numbers) < 0 or max(numbers) >= _TOO_LARGE:
        raise MalformedLineError(f"numbers that no kernel counts to: {line[:120]!r}")
    if len(numbers) == _OLD_PARTITION_FIELDS:
        reads, read_sectors, writes, written_sectors = numbers
        return DiskstatsLine(
            (reads, None, read_sectors, None, writes, None, written_sectors, None), None
        )
    inflight = numbers.pop(_INFLIGHT_FIELD)
    return DiskstatsLine(tuple(numbers), inflight)


def find_reading(text: str, device: str) -> Reading | None:
    """Give the counters of one device in the text of /proc/diskstats; None if it is not listed.

    Raises MalformedLine where its line is not one.
    """
    for line in text.splitlines():
        head = LINE_HEAD.match(line)
        if head is not None and head[3] == device:
            return parse_line(line).reading
    return None


_ABSENT: tuple[None, ...] = (None,) * len(Counters._fields)
_WRAP = 2**32
_FARTHEST_UNWRAPPED = 2**31


def has_decreased(before: Reading, after: Reading) -> bool:
    """Tell whether any counter is lower than it was, or is there no more, or is new."""
    if len(before) != len(after):
        return True
    try:
        return True in map(lt, after, before)  # type: ignore[arg-type]  # None raises TypeError
    except TypeError:  # some are absent: only the partitions of 2.6 kernels are like that
        return any(_rise(old, new) < 0 for old, new in zip(before, after, strict=True))


def unwrap(before: Reading, after: Reading) -> Reading | None:
    """Give what `before` has to be for the rise to `after` to be true; None after a new start.

    Millisecond fields are 32 bits wide on every kernel, and all fields on 32-bit ones, so one
    that fell may have wrapped. It has if it was within 32 bits, if it came round by less than
    half of them, and if others did not fall with it: a disk that starts all over drops every
    counter at once.
    """
    if len(before) != len(after):
        return None
    counters = list(before)
    fallen = [index for index, old in enumerate(before) if _rise(old, after[index]) < 0]
    if len(fallen) == sum(1 for old in before if old):
        return None
    for index in fallen:
        old = before[index] or 0
        if old >= _WRAP or _rise(old, after[index]) + _WRAP >= _FARTHEST_UNWRAPPED:
            return None
        counters[index] = old - _WRAP
    return tuple(counters)


def difference(after: Reading, before: Reading) -> Reading:
    """Subtract counter by counter; what is absent on either side is absent."""
    return tuple(
        None if old is None or new is None else new - old
        for old, new in zip(before, after, strict=True)
    )


def to_counters(reading: Reading) -> Counters:
    """Give the counters their names, None for those that are missing."""
    return Counters._make((*reading, *_ABSENT[len(reading) :]))


def _rise(old: int | None, new: int | None) -> int:
    return 0 if old is None or new is None else new - old
