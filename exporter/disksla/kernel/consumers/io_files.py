"""The texts of `io.stat` and `io.max` (Documentation/admin-guide/cgroup-v2.rst), parsed."""

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from disksla.kernel.consumers.consumption import Kind

_COUNT_LIMIT = 2**64
_NUMBER = re.compile(r"\d+:\d+")
"""Major and minor number of a disk."""
_NAMELESS = "(unknown)"
"""In place of them, for a disk without a name, such as a path of NVMe."""


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
    """Return what a group did by the number of the disk. Raise ValueError if the text is another.

    A disk without I/O may be missing, or be alone on its line, or before the next on one line.
    """
    return _parse(
        text, lambda values: Amounts(*(_count(values.get(key, "0")) for key in _STAT_KEYS))
    )


def parse_io_max(text: str) -> dict[str, Amounts]:
    """Return the limits of a group by the number of the disk; infinite where there is none.

    Raise ValueError if the text is another.
    """
    return _parse(
        text, lambda values: Amounts(*(_most(values.get(key, "max")) for key in _MAX_KEYS))
    )


def _most(text: str) -> float:
    return math.inf if text == "max" else float(_count(text))


def _count(text: str) -> int:
    """Return a number of 64 bits, as the kernel writes it. Raise ValueError for anything else."""
    number = int(text) if text.isascii() and text.isdecimal() else -1
    if not 0 <= number < _COUNT_LIMIT:
        raise ValueError(f"found {text[:40]!r}; expected a number from 0 to 2^64 - 1")
    return number


def _parse(text: str, amounts: Callable[[Mapping[str, str]], Amounts]) -> dict[str, Amounts]:
    """Return the amounts of each line, but for odd lines beside others that are none."""
    found: dict[str, Amounts] = {}
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
