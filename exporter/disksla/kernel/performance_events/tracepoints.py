"""Tracepoints of block requests: what the kernel says of their records, and filters.

Source: Documentation/trace/events.rst of Linux, include/trace/events/block.h.
"""

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec

from disksla.base.errors import DiskslaError

COMM_BYTES = 16
"""Length of the name of a program in a record, with the zero at its end."""
_FIELD = re.compile(r"\b(\w+)(?:\[\d*\])?;\s*offset:(\d{1,9});\s*size:(\d{1,9});")
_NUMBER = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
_NO_SECTOR = 2**64 - 1
"""Sector of commands that are neither reads nor writes, such as those of smartctl."""
_DEV, _SECTORS = (8, 4), (24, 4)
"""Offset and size of two fields; the same in all kernels since 2.6.31."""


_Number = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class Tracepoint(msgspec.Struct, frozen=True):
    """What the file `format` of a tracepoint says."""

    number: _Number
    comm: _Number | None
    """Offset in bytes of the name of the program in a record; None if it has none."""


def parse_format(text: str) -> Tracepoint:
    """Return what a file `format` says. Raise DiskslaError for records of another form."""
    found = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(text)}
    number = _NUMBER.search(text)
    comm, comm_bytes = found.get("comm", (None, COMM_BYTES))
    is_known = (found.get("dev"), found.get("nr_sector")) == (_DEV, _SECTORS)
    if number is None or not is_known or comm_bytes != COMM_BYTES or "rwbs" not in found:
        raise DiskslaError(
            f"found a record with the fields {', '.join(found) or 'none'};"
            " expected those of a tracepoint of block requests; this kernel is not known"
        )
    return Tracepoint(int(number[1]), comm)


def filter_of_data_writes(major: int, minor: int) -> str:
    """Return the filter that lets data writes of one disk pass.

    They are what /proc/diskstats counts as writes (zeroing included, discards not), but with
    sectors. `rwbs` begins with the kind of a request; a write that flushes before it, with F.
    """
    return (
        f'dev=={_device(major, minor)} && nr_sector>0 && !(rwbs~"R*") && !(rwbs~"D*")'
        f" && sector!={_NO_SECTOR}"
    )


def filter_of_requests(numbers: Iterable[tuple[int, int]]) -> str:
    """Return the filter that lets reads, writes and flushes of some disks pass."""
    disks = "||".join(f"dev=={_device(*number)}" for number in numbers)
    return f'({disks}) && !(rwbs~"D*")'


def _device(major: int, minor: int) -> int:
    """Return a device number as the kernel has it in records."""
    return major << 20 | minor
