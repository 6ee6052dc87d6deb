"""Messages between the helper and its clients: a packet each (`packets`).

The helper sends a Reading or a Failure of one disk, and Alive. A client may send Watch.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from disksla.clouds.ebs_statistics.statistics_page import (
    COUNTER_FIELDS,
    Bin,
    EbsLimit,
    PageFailureReason,
    Statistics,
)

_BIN_VALUES = 2**32

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e12)]


class Reading(msgspec.Struct, frozen=True, tag="reading", gc=False):
    """The page of one disk, as it was read."""

    device: Name  # kernel name, such as nvme1n1
    serial: Annotated[str, msgspec.Meta(max_length=64)]
    """In sysfs: the id of the volume, without its dash."""
    monotonic_s: Seconds  # middle of the time that reading took, by CLOCK_MONOTONIC
    statistics: Statistics
    within_s: Seconds = 0.0
    """Half of the time that reading took: the page is of `monotonic_s`, more or less this."""


class Failure(msgspec.Struct, frozen=True, tag="failure", gc=False):
    """A page that could not be read, or is not used."""

    device: Name
    reason: PageFailureReason
    message: Annotated[str, msgspec.Meta(max_length=1024)] = ""


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Says that the helper works, also where no disk has a page."""


Message = Reading | Failure | Alive


class Watch(msgspec.Struct, frozen=True, tag="watch"):
    """Request of a client: read these disks ten times a second until the next such request."""

    devices: Annotated[tuple[Name, ...], msgspec.Meta(max_length=128)]


MESSAGES: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
REQUESTS = msgspec.json.Decoder(Watch)


class Change(msgspec.Struct, frozen=True, gc=False):
    """Increase of what is used of a page; the fields are those of Statistics."""

    read_us: int
    write_us: int
    exceeded_us: Mapping[EbsLimit, int]  # by limit, those that the page has
    read_latency: tuple[Bin, ...] = ()
    write_latency: tuple[Bin, ...] = ()


def change_between(before: Reading, after: Reading) -> Change | None:
    """Return what lies between two readings of a disk.

    None after a reset: another volume, a counter that fell, other bins, or a bin that fell further
    than it can have wrapped. The bins count 32 bits and wrap; the counters count 64. None for
    readings that are not in the order of time, too.
    """
    old, new = before.statistics, after.statistics
    if (before.serial, old.kind) != (after.serial, new.kind):
        return None
    if after.monotonic_s <= before.monotonic_s:
        return None
    counters = {name: getattr(new, name) - getattr(old, name) for name in COUNTER_FIELDS}
    exceeded_us = {
        limit: count_us - old.exceeded_us.get(limit, 0)
        for limit, count_us in new.exceeded_us.items()
    }
    if min(*counters.values(), *exceeded_us.values()) < 0:
        return None
    reads, writes = counters["read_operations"], counters["write_operations"]
    read_latency = _counted(old.read_latency, new.read_latency, reads)
    write_latency = _counted(old.write_latency, new.write_latency, writes)
    if read_latency is None or write_latency is None:
        return None
    return Change(
        read_us=counters["read_us"],
        write_us=counters["write_us"],
        exceeded_us=exceeded_us,
        read_latency=read_latency,
        write_latency=write_latency,
    )


def _counted(
    before: tuple[Bin, ...], after: tuple[Bin, ...], operations: int
) -> tuple[Bin, ...] | None:
    """Return the requests by bin; None after a reset.

    A bin cannot have counted more than all operations. Where it seems so although its count fell,
    it did not wrap.
    """
    if _bounds(before) != _bounds(after):
        return None
    counted = []
    for old, new in zip(before, after, strict=True):
        count = (new.count - old.count) % _BIN_VALUES
        if new.count < old.count and count > operations:
            return None
        counted.append(Bin(new.lower_us, new.upper_us, count))
    return tuple(counted)


def _bounds(bins: tuple[Bin, ...]) -> list[tuple[int, int | None]]:
    return [(each.lower_us, each.upper_us) for each in bins]
