"""What fio prints of a job, or of a group of jobs, in its normal output."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from disksla.base.errors import DiskslaError
from disksla.measure.fio import NOTHING, DirectionResult, done_within
from disksla.measure.verification.measurement import Percentile
from disksla.measure.verification.places import UsedDisk

_DIRECTION = re.compile(r"\s*(read|write) ?: .*?(?:runt= *|/)(\d{1,12})msec", re.ASCII)
_TRANSFERRED = re.compile(r"(?:io=|\()(\d{1,12}(?:\.\d{1,6})?)([KMGTP]?)i?B?[,/]", re.ASCII)
_LATENCY = re.compile(
    r"\s*clat \((nsec|usec|msec)\):.* avg= {0,12}(\d{1,12}(?:\.\d{1,6})?),", re.ASCII
)
_PERCENTILE_UNIT = re.compile(r"\s*clat percentiles \((nsec|usec|msec)\):", re.ASCII)
_PERCENTILE = re.compile(r"(\d{1,3}\.\d\d)th=\[ {0,12}(\d{1,15})\]", re.ASCII)
_ISSUED = re.compile(
    r"\s*issued (?:rwts?)? *: total=(?:r=(\d{1,15})/w=(\d{1,15})"
    r"|(\d{1,15}),(\d{1,15}),(?:\d{1,15},(\d{1,15}))?)",
    re.ASCII,
)
_DISK = re.compile(r"\s*([\w!.-]{1,80}): (ios=\d{1,15}/\d{1,15},.*)", re.ASCII)
_COUNTS = re.compile(r"(?<!aggr)(ios|merge|ticks)=(\d{1,15})/(\d{1,15})", re.ASCII)
FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
_SECONDS = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}
_SHOWN = {"50.00": 0.5, "90.00": 0.9, "99.00": 0.99, "99.90": 0.999}


class Result(NamedTuple):
    """What fio prints of a job, or of a group of jobs, when it has ended."""

    name: str
    group: str
    jobs: int
    error: int
    pid: str | None
    lines: list[str]

    @property
    def runtime_ms(self) -> int:
        """The time in which it read or wrote, so far."""
        found = (_DIRECTION.match(line) for line in self.lines)
        return max((int(each[2]) for each in found if each is not None), default=0)

    @property
    def is_whole(self) -> bool:
        """Whether its numbers of requests were printed."""
        return any(_ISSUED.match(line) for line in self.lines)


def last_states(results: Sequence[Result]) -> list[Result]:
    """Return the last whole state of each result: --status-interval prints those before it too."""
    kept: list[Result] = []
    for result in results:
        key = (result.name, result.group, result.pid)
        before = next((each for each in kept if key == (each.name, each.group, each.pid)), None)
        if before is None or result.pid is None:
            kept.append(result)
        elif not result.is_whole:
            continue
        elif result.runtime_ms > before.runtime_ms or not before.is_whole:
            kept[kept.index(before)] = result
        else:
            kept.append(result)
    return kept


def disks_in(lines: Iterable[str]) -> list[UsedDisk]:
    """Return the disks that fio lists."""
    disks = []
    for name, text in (match.groups() for match in map(_DISK.match, lines) if match):
        counts = {kind: (int(read), int(write)) for kind, read, write in _COUNTS.findall(text)}
        ios, merges, ticks = (counts.get(kind, (0, 0)) for kind in ("ios", "merge", "ticks"))
        is_stack = 0 if "aggrios=" in text else None
        disks.append(UsedDisk(name, *ios, *merges, *ticks, aggr_read_ios=is_stack))
    return disks


def syncs_in(results: Iterable[Result]) -> int:
    """Return how often jobs waited for a sync, in a row of versions that print it."""
    found = [match for each in results for match in map(_ISSUED.match, each.lines) if match]
    return sum(int(match[5] or 0) for match in found)


def directions(result: Result, sizes: tuple[int, ...]) -> tuple[DirectionResult, DirectionResult]:
    """Return what was read and written: the counts are exact, rates are rounded by fio."""
    reads, writes = _issued(result)
    found = {"read": NOTHING, "write": NOTHING}
    direction = None
    for line in result.lines:
        if (heading := _DIRECTION.match(line)) is not None:
            direction = heading[1]
            requests, least, most = (
                (reads, *sizes[:2]) if direction == "read" else (writes, *sizes[2:])
            )
            transferred = requests * least if least == most else _transferred_bytes(line)
            found[direction] = _result(requests, transferred, int(heading[2]) / 1000)
        elif direction is not None and (latency := _LATENCY.match(line)) is not None:
            mean_s = float(latency[2]) * _SECONDS[latency[1]]
            found[direction] = msgspec.structs.replace(
                found[direction], mean_latency_s=mean_s or None
            )
    if reads + writes and any(line.lstrip().startswith("mixed:") for line in result.lines):
        raise DiskslaError(
            "it does not tell reads from writes; run fio without unified_rw_reporting=1"
        )
    for number, name in ((reads, "read"), (writes, "write")):
        if number and not found[name].requests:
            raise DiskslaError(f"found {number} {name}s without the line that begins '{name}:'")
    return found["read"], found["write"]


def _issued(result: Result) -> tuple[int, int]:
    """Return how many reads and writes were done."""
    for line in result.lines:
        issued = _ISSUED.match(line)
        if issued is not None:
            reads, writes = (int(issued[old] or issued[new] or 0) for old, new in ((1, 3), (2, 4)))
            return reads, writes
    raise DiskslaError("found no line that begins 'issued', which has the number of requests")


def _result(requests: int, transferred_bytes: int, runtime_s: float) -> DirectionResult:
    if not runtime_s:
        raise DiskslaError("found a runtime of 0 ms; expected a result of fio")
    return done_within(requests, transferred_bytes, runtime_s, None)


def _transferred_bytes(line: str) -> int:
    """Return the amount that fio prints, with three or four digits."""
    amounts = _TRANSFERRED.findall(line)
    if not amounts:
        raise DiskslaError(f"found '{line.strip()[:60]}'; expected an amount of data")
    number, prefix = amounts[-1]
    return round(float(number) * FACTORS[prefix])


def percentiles(result: Result) -> tuple[Percentile, ...]:
    """Return the percentiles that fio printed."""
    unit = 0.0
    found: dict[float, float] = {}
    for line in result.lines:
        if (heading := _PERCENTILE_UNIT.match(line)) is not None:
            unit = _SECONDS[heading[1]]
        elif unit:
            found |= {
                _SHOWN[label]: int(value) * unit
                for label, value in _PERCENTILE.findall(line)
                if label in _SHOWN
            }
    return tuple(Percentile(share, found[share]) for share in sorted(found))
