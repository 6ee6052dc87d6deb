"""The texts of `io.stat` and `io.max` (Documentation/admin-guide/cgroup-v2.rst), parsed."""

import contextlib
import math
import re
from collections.abc import Callable, Mapping

from disksla.base.counts import Counts
from disksla.kernel.consumers.consumption import Kind

_COUNT_LIMIT = 2**64
_NUMBER = re.compile(r"\d+:\d+")
"""Major and minor number of a disk."""
_NAMELESS = "(unknown)"
"""In place of them, for a disk without a name, such as a path of NVMe."""


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
