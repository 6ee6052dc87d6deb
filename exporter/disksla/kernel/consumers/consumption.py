"""What one reading says of the consumers of disks, as ticks and recordings have it."""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

import msgspec

KERNEL = "kernel"
"""What the kernel does by itself, such as the journal of a file system."""
UNATTRIBUTED = "unattributed"
"""What is known to be of a program, but not of which."""
OTHER = "other"
"""Consumers that are not named, because there are too many."""
NOT_NAMED = (OTHER, KERNEL, UNATTRIBUTED)

_LONGEST_NAME = 256
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=2**63)]
Kind = Literal["reads", "writes", "bytes read", "bytes written"]
"""What a limit of a group counts, in a second."""


class Consumption(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a consumer used of a disk in one reading. Recordings have it as an array."""

    device: str
    consumer: _Name
    """Unit, container or pod as it is shown, or one of NOT_NAMED."""
    program: _Name = ""
    """Empty where it is not known, as by io.stat."""
    requests: _Amount | None = None
    """None where it is not known."""
    bytes: _Amount | None = None


class OwnLimit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A group whose rate at a disk is that of its own limit, by `io.max`."""

    device: str
    consumer: _Name
    kind: Kind
    per_second: _Amount
    """The limit."""


class ConsumerReading(msgspec.Struct, frozen=True):
    """One reading, as it is posted to the sampler."""

    watched_s: Mapping[str, tuple[float, float]] = {}
    """Monotonic begin and end of the time that it covers, by device."""
    consumers: tuple[Consumption, ...] = ()
    own_limits: tuple[OwnLimit, ...] = ()
    why_not: str | None = None
    """Why consumers are not known, if that changed; empty if they are again."""


class WatchedDisk(NamedTuple):
    """A monitored disk that has I/O now."""

    device: str
    number: str
    """Major and minor number, such as 254:0."""
    is_busy: bool
    """Requests are in flight for much of the time."""
    requests: int
    """Completed since the disk was first sampled, after merging."""
    merges: int
    """Requests that were merged with others."""
    largest_request_bytes: int | None
    """The kernel sends a larger request as several."""
