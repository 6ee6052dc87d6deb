"""Statistics pages of EBS and instance store, written from the layout that AWS documents.

It shares nothing with the parser, and writes what the parser does not read, too: reserved bytes
and the histograms by request size of version 1.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

EBS_MAGIC = 0x3C23B510
INSTANCE_STORE_MAGIC = 0xEC2C0D7E
UNBOUNDED = 2**64 - 1

POWERS = tuple((0 if power == 0 else 2**power, 2 ** (power + 1)) for power in range(27))
"""Bounds of bins as a page has them: from 0, then powers of two."""


class Page(NamedTuple):
    """The fields of a page, in the order in which it has them."""

    magic: int = EBS_MAGIC
    version: int = 0
    total_read_ops: int = 0
    total_write_ops: int = 0
    total_read_bytes: int = 0
    total_write_bytes: int = 0
    total_read_time_us: int = 0
    total_write_time_us: int = 0
    volume_exceeded_iops_us: int = 0
    volume_exceeded_tp_us: int = 0
    instance_exceeded_iops_us: int = 0
    instance_exceeded_tp_us: int = 0
    queue_length: int = 0
    read_bins: Sequence[tuple[int, int, int]] = ()
    """Lower bound, upper bound, count."""
    write_bins: Sequence[tuple[int, int, int]] = ()
    reserved: int = 0
    """The value of each byte that has no meaning."""

    def written(self) -> bytes:
        """Return the page: 4096 bytes of version 0, 8192 of version 1."""
        filler = bytes([self.reserved])
        page = bytearray(filler * (8192 if self.version else 4096))
        struct.pack_into("<I", page, 0, self.magic)
        struct.pack_into("<I", page, 4, self.version)
        for place, value in enumerate(self[2:13]):
            struct.pack_into("<Q", page, 8 + 8 * place, value)
        for start, bins in ((512, self.read_bins), (2056, self.write_bins)):
            struct.pack_into("<I", page, start, len(bins))
            for place, (lower_us, upper_us, count) in enumerate(bins):
                at = start + 8 + 24 * place
                struct.pack_into("<Q", page, at, lower_us)
                struct.pack_into("<Q", page, at + 8, upper_us)
                struct.pack_into("<I", page, at + 16, count)
        if self.version:
            sizes = (4096, 16384, 65536, 2**32 - 1)
            struct.pack_into("<I8I", page, 3600, len(sizes), *sizes, 0, 0, 0, 0)
            struct.pack_into("<512Q", page, 4096, *range(512))
        return bytes(page)


def bins_of(counts: dict[int, int]) -> tuple[tuple[int, int, int], ...]:
    """Return the bins with powers of two as bounds; `counts` are by lower bound."""
    return tuple((lower, upper, counts.get(lower, 0)) for lower, upper in POWERS)
