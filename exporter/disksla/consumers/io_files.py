"""The texts of `io.stat` and `io.max` (Documentation/admin-guide/cgroup-v2.rst), parsed."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from disksla.consumers.consumption import Kind

_COUNT_LIMIT = 2**64
_NUMBER = re.compile(r"\d+:\d+")
"""Major and minor number of a disk."""


class Amounts(NamedTuple):
    """What a group did at a disk since it was made. A limit has the same fields, in a second."""

    read_bytes: float = 0
    written_bytes: float = 0
    reads: float = 0
    writes: float = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sum."""
        return Amounts(*map(sum, zip(self, other, strict=True)))

    def minus(self, other: "Amounts") -> "Amounts":
        """Return the difference."""
        return Amounts(*(own - others for own, others in zip(self, other, strict=True)))

    @property
    def bytes(self) -> float:
        """Read and written together."""
        return self.read_bytes + self.written_bytes

    @property
    def requests(self) -> float:
        """Reads and writes together."""
        return self.reads + self.writes


NOTHING = Amounts()
KINDS: tuple[Kind, ...] = ("bytes read", "bytes written", "reads", "writes")
"""In the order of `Amounts`."""
_STAT_KEYS = ("rbytes", "wbytes", "rios", "wios")
_MAX_KEYS = ("rbps", "wbps", "riops", "wiops")


def parse_io_stat(text: str) -> dict[str, Amounts]:
    """Return what a group did by the number of the disk. Raise ValueError if that is not there.

    A disk without I/O may be missing, or be alone on its line, or before the next on one line.
    """
    return {
        number: Amounts(*(_count(values.get(key, "0")) for key in _STAT_KEYS))
        for number, values in _lines(text)
    }


def parse_io_max(text: str) -> dict[str, Amounts]:
    """Return the limits of a group by the number of the disk; infinite where there is none.

    Raise ValueError if the text is another.
    """
    return {
        number: Amounts(
            *(
                math.inf if (text := values.get(key, "max")) == "max" else float(_count(text))
                for key in _MAX_KEYS
            )
        )
        for number, values in _lines(text)
    }


def _count(text: str) -> int:
    """Return a number of 64 bits, as the kernel writes it. Raise ValueError for anything else."""
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= number < _COUNT_LIMIT:
        raise ValueError(f"found {text[:40]!r}; expected a number from 0 to 2^64 - 1")
    return number


def _lines(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for line in text.splitlines():
        words = line.split()
        numbers = [word for word in words if _NUMBER.fullmatch(word)]
        pairs = [word.partition("=") for word in words if word not in numbers]
        if words and (not numbers or not all(equals for _, equals, _ in pairs)):
            raise ValueError(f"found {line[:80]!r}; expected a disk and its numbers")
        for number in numbers[-1:]:
            yield number, {key: value for key, _, value in pairs}
