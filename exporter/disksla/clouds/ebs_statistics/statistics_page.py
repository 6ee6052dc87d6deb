"""The statistics page of an EBS volume or an instance store disk: bytes -> Statistics.

It is NVMe log page 0xD0 of the controllers of AWS Nitro. All fields are little endian. Source:
https://docs.aws.amazon.com/ebs/latest/userguide/nvme-detailed-performance-stats.html; the offsets
are those of the structure in amazon-ec2-utils (`ebsnvme`). Version 1 appends histograms by request
size after the first 4096 bytes. They are not read: nothing here uses them, and they double the
transfer.
"""

import struct
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from disksla.base.errors import DiskslaError

PAGE_BYTES = 4096

VolumeKind = Literal["ebs", "instance_store"]
EbsLimit = Literal["iops", "bandwidth", "machine_iops", "machine_bandwidth"]
PageFault = Literal["short", "magic", "version", "bins", "counter"]
"""Why a page is not used: too short, not the page, a version that is not known, bins of a
histogram that cannot be right, a counter that cannot be right."""
PageFailureReason = Literal[PageFault, "permission", "removed", "status", "device"]
"""Of a page that was read, or why it could not be read: no CAP_SYS_ADMIN; the disk was removed;
the disk answered with an NVMe status; any other error of the device."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
BinCount = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

_KINDS: dict[int, VolumeKind] = {0x3C23B510: "ebs", 0xEC2C0D7E: "instance_store"}
_OFFSETS: dict[VolumeKind, dict[EbsLimit, int]] = {
    "ebs": {"iops": 56, "bandwidth": 64, "machine_iops": 72, "machine_bandwidth": 80},
    "instance_store": {"iops": 72, "bandwidth": 80},
}
"""Offsets of the counters of exceeded limits. Those of instance store are limits of the volume, in
the place where a page of EBS has those of the instance."""
_VERSIONS = (0, 1)
_MOST_COUNT = 2**63 - 1  # more cannot be right: as microseconds it is 292,000 years
_HEAD = struct.Struct("<II")
_COUNTERS = struct.Struct("<6Q")
COUNTER_FIELDS = (
    "read_operations", "write_operations", "read_bytes", "write_bytes", "read_us", "write_us",
)  # fmt: skip
_COUNTERS_AT = 8
_COUNTER = struct.Struct("<Q")
_QUEUE_LENGTH_AT = 88
_READ_BINS_AT, _WRITE_BINS_AT = 512, 2056
_BIN_COUNT = struct.Struct("<I4x")
_BIN = struct.Struct("<QQI4x")
_MOST_BINS = 64


class BadPageError(DiskslaError):
    """A page that could not be read or is not used; `reason` says why in one word."""

    def __init__(self, reason: PageFailureReason, message: str) -> None:
        """Keep the reason besides the message."""
        super().__init__(message)
        self.reason: PageFailureReason = reason


class Bin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Requests whose latency was between two bounds."""

    lower_us: Count
    upper_us: Count | None  # None in a last bin without upper bound
    count: BinCount  # it wraps at 2**32


Bins = Annotated[tuple[Bin, ...], msgspec.Meta(max_length=_MOST_BINS)]


class Statistics(msgspec.Struct, frozen=True, gc=False):
    """What one page says. Counters count since the volume was attached."""

    kind: VolumeKind
    version: Count
    read_operations: Count
    write_operations: Count
    read_bytes: Count
    write_bytes: Count
    read_us: Count  # microseconds that reads took, summed over requests
    write_us: Count
    exceeded_us: dict[EbsLimit, Count]
    """Microseconds in which more was demanded than a limit of the volume, or of the instance
    (`machine_`); those of the instance are on EBS only."""
    queue_length: Count  # requests at the volume at this moment
    read_latency: Bins
    write_latency: Bins


def parse(page: bytes) -> Statistics:
    """Return what a page says. Raise BadPageError if any of it cannot be right."""
    if len(page) < PAGE_BYTES:
        raise _bad("short", f"found {len(page)} bytes; expected {PAGE_BYTES}")
    magic, version = _HEAD.unpack_from(page)
    kind = _KINDS.get(magic)
    if kind is None:
        expected = " or ".join(f"0x{known:08X}" for known in _KINDS)
        raise _bad("magic", f"found magic 0x{magic:08X}; expected {expected}")
    if version not in _VERSIONS:
        raise _bad("version", f"found version {version}; expected 0 or 1")
    counters = dict(zip(COUNTER_FIELDS, _COUNTERS.unpack_from(page, _COUNTERS_AT), strict=True))
    exceeded_us = {limit: _counter(page, offset) for limit, offset in _OFFSETS[kind].items()}
    queue_length = _counter(page, _QUEUE_LENGTH_AT)
    most = max(*counters.values(), *exceeded_us.values(), queue_length)
    if most > _MOST_COUNT:
        raise _bad("counter", f"found {most}; expected at most {_MOST_COUNT}")
    return Statistics(
        kind=kind,
        version=version,
        **counters,
        exceeded_us=exceeded_us,
        queue_length=queue_length,
        read_latency=tuple(_bins(page, _READ_BINS_AT)),
        write_latency=tuple(_bins(page, _WRITE_BINS_AT)),
    )


def _bad(reason: PageFault, message: str) -> BadPageError:
    return BadPageError(reason, f"statistics page: {message}")


def _counter(page: bytes, offset: int) -> int:
    (count,) = _COUNTER.unpack_from(page, offset)
    return int(count)


def _bins(page: bytes, offset: int) -> Iterator[Bin]:
    """Yield the bins of a histogram. Raise BadPageError unless they ascend."""
    (length,) = _BIN_COUNT.unpack_from(page, offset)
    if length > _MOST_BINS:
        raise _bad("bins", f"found {length} bins; expected at most {_MOST_BINS}")
    before_us = 0
    begin = offset + _BIN_COUNT.size
    for lower_us, upper_us, count in _BIN.iter_unpack(page[begin : begin + length * _BIN.size]):
        if not before_us <= lower_us <= min(upper_us, _MOST_COUNT):
            raise _bad(
                "bins",
                f"found a bin from {lower_us} to {upper_us} us after {before_us} us;"
                " expected bins that ascend",
            )
        yield Bin(lower_us, upper_us if upper_us <= _MOST_COUNT else None, count)
        before_us = upper_us
