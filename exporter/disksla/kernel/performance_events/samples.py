"""Samples of requests: how often, and as the kernel writes them (perf_event_open(2))."""

import struct
from collections import Counter
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.kernel.performance_events.protocol import COMM_BYTES

_SAMPLE = 9  # linux/perf_event.h
_HEAD = struct.Struct("=IHH")  # kind, flags and length of a record
_ALIGNMENT = 8
_UNTIL_COMM = 28  # bytes of a tracepoint's record before `rwbs`
_LEAST_COMM, _MOST_COMM = 32, 256
PERIODS = (1, 3, 7, 13, 29, 61, 127, 251, 509, 1021, 2039, 4093)
"""Odd primes, but the first: each occurrence. Often requests of two kinds alternate, and an even
period would see one of them only (measured)."""
_PAGES, _LEAST_PAGES = 256, 16  # of all buffers, but for many CPUs; of one
MOST_PER_S = 2000.0  # samples of all disks; each takes about 1.3 us


class RequestSample(NamedTuple):
    """A request, or what carries its bytes; such are counted, so there is no time."""

    tracepoint: int  # its number
    device: int  # as the kernel has it: major number << 20 | minor number
    sectors: int
    comm: bytes  # name of the thread, with zeros after it
    cgroup: int  # id of the control group: the inode of its directory


class Taken(NamedTuple):
    """Samples of some time, in which the periods were the same."""

    seen: Counter[RequestSample]
    requests: int  # number of the tracepoint of requests; the other has their bytes
    periods: tuple[int, int]  # of requests and of bytes: a sample stands for so many events
    counted: tuple[int, int]  # events that occurred, whether they were sampled or not
    cpus: int  # on each, less than a period of events may not have been sampled yet


class RecordForm:
    """How samples are laid out, by the offset of the name of the program in a tracepoint's record.

    After a head, a sample has pid and tid, the length of the tracepoint's record, that record and
    the id of the cgroup.
    """

    def __init__(self, comm: int | None) -> None:
        """Raise DiskslaError for an offset that cannot be."""
        if comm is None or not _LEAST_COMM <= comm <= _MOST_COMM:
            raise DiskslaError(
                f"found the name of a program at offset {comm}; this kernel is not known"
            )
        end = comm + COMM_BYTES
        padded = -(-end // _ALIGNMENT) * _ALIGNMENT  # of the structure, and then with its length
        self._raw_bytes = -(-(padded + 4) // _ALIGNMENT) * _ALIGNMENT - 4
        self._struct = struct.Struct(
            f"=IHHIIIH6xI12xI{comm - _UNTIL_COMM}x{COMM_BYTES}s{self._raw_bytes - end}xQ"
        )

    def parse(self, content: bytes) -> Counter[RequestSample]:
        """Return the samples in a buffer. Raise DiskslaError for a record of another form."""
        if len(content) % self._struct.size == 0:  # all are samples, unless some were lost
            found = Counter(self._struct.iter_unpack(content))
            if all(self._is_sample(fields) for fields in found):
                return _counted(found)
        return self._parse_each(content)

    def _parse_each(self, content: bytes) -> Counter[RequestSample]:
        """Return the samples among records of other kinds, such as those of lost samples."""
        found: Counter[tuple[int | bytes, ...]] = Counter()
        at = 0
        while at < len(content):
            head = content[at : at + _HEAD.size]
            kind, _, length = _HEAD.unpack(head.ljust(_HEAD.size, b"\0"))
            if length < _HEAD.size or at + length > len(content):
                raise DiskslaError(f"found a record of {length} bytes; this kernel is not known")
            record = content[at : at + length]
            if kind == _SAMPLE:
                found[self._unpacked(record)] += 1
            at += length
        return _counted(found)

    def _unpacked(self, record: bytes) -> tuple[int | bytes, ...]:
        if len(record) == self._struct.size:
            fields = self._struct.unpack(record)
            if self._is_sample(fields):
                return fields
        raise DiskslaError(
            f"found a sample of {len(record)} bytes; expected {self._struct.size};"
            " this kernel is not known"
        )

    def _is_sample(self, fields: tuple[int | bytes, ...]) -> bool:
        kind, _, length, _, _, raw_bytes, *_ = fields
        return (kind, length, raw_bytes) == (_SAMPLE, self._struct.size, self._raw_bytes)


def _counted(found: Counter[tuple[int | bytes, ...]]) -> Counter[RequestSample]:
    """Return the samples without their processes."""
    counted: Counter[RequestSample] = Counter()
    for fields, number in found.items():
        counted[RequestSample(*fields[6:])] += number  # type: ignore[arg-type]
    return counted


def period_for(events_per_s: float, most_per_s: float) -> int:
    """Return the shortest period at which there are at most so many samples per second."""
    fitting = (period for period in PERIODS if events_per_s <= most_per_s * period)
    return next(fitting, PERIODS[-1])


def buffer_pages(cpus: int) -> int:
    """Return the pages of the buffer of each CPU, a power of two.

    16 hold 744 samples, more than come in a third of a second; with few CPUs, there may be more.
    """
    return next((pages for pages in (64, 32) if cpus * pages <= _PAGES), _LEAST_PAGES)
