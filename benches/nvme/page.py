"""The log page 0xD0 of volumes of EBS and of the instance store, written from its layout.

https://docs.aws.amazon.com/ebs/latest/userguide/nvme-detailed-performance-stats.html and the
structures in amazon-ec2-utils (ebsnvme). Little endian, packed. This module shares no code with
the reader that it tests.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

Limit = Literal["iops", "bandwidth", "machine_iops", "machine_bandwidth"]
LIMITS: tuple[Limit, ...] = ("iops", "bandwidth", "machine_iops", "machine_bandwidth")
EBS, INSTANCE_STORE = 0x3C23B510, 0xEC2C0D7E
_COUNTERS: dict[int, tuple[Limit | None, ...]] = {
    EBS: LIMITS,
    INSTANCE_STORE: (None, None, "iops", "bandwidth"),
}
"""Limits in the order of their counters, by magic number."""
PAGE_BYTES = {0: 4096, 1: 8192}
"""Size of the page, by version."""
_UNBOUNDED = 2**64 - 1
_BOUNDS = (0, *(2**power for power in range(27)), _UNBOUNDED)
BINS = tuple(pairwise(_BOUNDS))
"""Lower and upper bounds of latency, in microseconds."""
_MOST_BINS = 64
_MOST_BINS_OF_SIZE = 32
_MOST_SIZES = 8
SIZES = (4096, 16384, 131072, 2**32 - 1)
"""Largest request of each class of sizes, in bytes; the last one has no bound."""
_HEAD = struct.Struct("<II11Q416x")
_HISTOGRAM = struct.Struct("<Q")
_BIN = struct.Struct("<QQII")
_SIZE_CLASSES = struct.Struct(f"<I{_MOST_SIZES}I460x")
_COUNTS = struct.Struct(f"<{_MOST_BINS_OF_SIZE}Q")


class Usage:
    """What a volume has counted since it was attached. Reads come first, then writes."""

    def __init__(self) -> None:
        self.operations = [0, 0]
        self.size_bytes = [0, 0]
        self.latency_s = [0.0, 0.0]
        self.exceeded_s: dict[str, float] = dict.fromkeys(LIMITS, 0.0)
        """Time in which requests waited for a limit."""
        self.counts = [[0] * len(BINS), [0] * len(BINS)]
        """Requests by latency."""
        self.counts_of_sizes = [[[0] * len(BINS), [0] * len(BINS)] for _ in SIZES]
        """Requests by size and latency."""

    def add(self, *, is_write: bool, size_bytes: int, latency_s: float) -> None:
        """Count a request that completed."""
        number = bisect_right(_BOUNDS, latency_s * 1e6) - 1
        size = next(index for index, most in enumerate(SIZES) if size_bytes <= most)
        self.operations[is_write] += 1
        self.size_bytes[is_write] += size_bytes
        self.latency_s[is_write] += latency_s
        self.counts[is_write][number] += 1
        self.counts_of_sizes[size][is_write][number] += 1


def page(usage: Usage, queue_length: int, *, magic: int = EBS, version: int = 1) -> bytes:
    """Return the page of a volume."""
    exceeded_s = (0.0 if limit is None else usage.exceeded_s[limit] for limit in _COUNTERS[magic])
    times_s = (*usage.latency_s, *exceeded_s)
    head = _HEAD.pack(
        magic,
        version,
        *usage.operations,
        *usage.size_bytes,
        *(round(time_s * 1e6) for time_s in times_s),
        queue_length,
    )
    written = head + b"".join(map(_histogram, usage.counts))
    if version == 0:
        return written.ljust(PAGE_BYTES[0], b"\0")
    written += _SIZE_CLASSES.pack(len(SIZES), *SIZES, *[0] * (_MOST_SIZES - len(SIZES)))
    for directions in usage.counts_of_sizes:
        for counts in directions:
            written += _COUNTS.pack(*counts, *[0] * (_MOST_BINS_OF_SIZE - len(BINS)))
    return written.ljust(PAGE_BYTES[1], b"\0")


def _histogram(counts: Sequence[int]) -> bytes:
    bins = b"".join(
        _BIN.pack(lower, upper, count % 2**32, 0)
        for (lower, upper), count in zip(BINS, counts, strict=True)
    )
    return _HISTOGRAM.pack(len(BINS)) + bins.ljust(_MOST_BINS * _BIN.size, b"\0")
