"""What one reading says of the consumers of disks, as ticks and recordings have it.

And the files of a control group that it is read from: `io.stat` and `io.max`.
"""

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, NamedTuple

import msgspec

from disksla.base.counts import Counts

KERNEL = "kernel"  # what the kernel does by itself, such as the journal of a file system
UNATTRIBUTED = "unattributed"  # what is known to be of a program, but not of which
OTHER = "other"  # consumers that are not named, because there are too many
NOT_NAMED = (OTHER, KERNEL, UNATTRIBUTED)

_LONGEST_NAME = 256
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=2**63)]
Kind = Literal["reads", "writes", "bytes read", "bytes written"]
"""What a limit of a group counts, in a second."""


class Consumption(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a consumer used of a disk in one reading. Recordings have it as an array."""

    device: str
    consumer: _Name  # unit, container or pod as it is shown, or one of NOT_NAMED
    program: _Name = ""  # empty where it is not known, as by io.stat
    requests: _Amount | None = None  # None where it is not known
    bytes: _Amount | None = None


class OwnLimit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A group whose rate at a disk is that of its own limit, by `io.max`."""

    device: str
    consumer: _Name
    kind: Kind
    per_second: _Amount  # the limit


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
    number: str  # major and minor number, such as 254:0
    is_busy: bool  # requests are in flight for much of the time
    requests: int  # completed since the disk was first sampled, after merging
    merges: int  # requests that were merged with others
    largest_request_bytes: int | None  # the kernel sends a larger request as several


_COUNT_LIMIT = 2**64
_NUMBER = re.compile(r"\d+:\d+")  # major and minor number of a disk
_NAMELESS = "(unknown)"  # in place of them, for a disk without a name, such as a path of NVMe


NOTHING = Counts()
KINDS: tuple[Kind, ...] = ("reads", "writes", "bytes read", "bytes written")
"""In the order of `Counts`."""
_STAT_KEYS = ("rios", "wios", "rbytes", "wbytes")
_MAX_KEYS = ("riops", "wiops", "rbps", "wbps")


def parse_io_stat(text: str) -> dict[str, Counts]:
    """Return what a group did by the number of the disk. Raise ValueError if the text is another.

    A disk without I/O may be missing, or be alone on its line, or before the next on one line.
    """
    return _parse(
        text, lambda values: Counts(*(_count(values.get(key, "0")) for key in _STAT_KEYS))
    )


def parse_io_max(text: str) -> dict[str, Counts]:
    """Return the limits of a group by the number of the disk; infinite where there is none.

    Raise ValueError if the text is another.
    """
    return _parse(
        text, lambda values: Counts(*(_most(values.get(key, "max")) for key in _MAX_KEYS))
    )


def _most(text: str) -> float:
    return math.inf if text == "max" else float(_count(text))


def _count(text: str) -> int:
    """Return a number of 64 bits, as the kernel writes it. Raise ValueError for anything else."""
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= number < _COUNT_LIMIT:
        raise ValueError(f"found {text[:40]!r}; expected a number from 0 to 2^64 - 1")
    return number


def _parse(text: str, amounts: Callable[[Mapping[str, str]], Counts]) -> dict[str, Counts]:
    """Return the amounts of each line, but for odd lines beside others that are none."""
    found: dict[str, Counts] = {}
    odd = None
    for line in text.splitlines():
        words = line.split()
        numbers = [word for word in words if _NUMBER.fullmatch(word)]
        pairs = [word.partition("=") for word in words if word not in numbers]
        if numbers and all(equals for _, equals, _ in pairs):
            with contextlib.suppress(ValueError):
                found[numbers[-1]] = amounts({key: value for key, _, value in pairs})
                continue
        odd = line if words and words[0] != _NAMELESS else odd
    if odd is not None and not found:
        raise ValueError(f"found {odd[:80]!r}; expected a disk and its numbers")
    return found
