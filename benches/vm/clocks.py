"""The clock of the virtual machine beside that of the host. Pure functions.

Both count the bytes of a disk: the host in its trace, at each completion, and the guest in
/proc/diskstats, at each tick. A tick with as many bytes as the host had between two completions
was between these two. Both clocks have the same rate (vm/machine.py), but that of the guest stops
while the virtual machine is paused.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import median, quantiles
from typing import NamedTuple

from disksla.kernel.procfs import SECTOR_BYTES
from disksla.state.pipeline import Tick
from vm.trace import Trace

_CLOSE_S = 0.1
"""Longest time between two completions that is used: at the least limit of the scenarios, 18 IOPS,
it is 0.06 s."""
_LEAST = 20
"""Number of ticks that are sufficient."""


class Count(NamedTuple):
    """Bytes that were transferred since a disk was plugged in, at one time."""

    at_s: float
    total_bytes: int


class Pause(NamedTuple):
    """Time in which the virtual machine did not run, in wall-clock time of the host."""

    begun_s: float
    ended_s: float


class Match(NamedTuple):
    """A time of the guest, and two times of the host that it was between."""

    guest_s: float
    least_s: float
    most_s: float


class Clocks(NamedTuple):
    """Conversion between wall-clock time of the host and CLOCK_MONOTONIC of the guest."""

    ahead_s: float
    """Time of the host, without pauses, less the time of the guest."""
    pauses: tuple[Pause, ...]
    error_s: float
    """By which 95 % of the matches are missed at most."""

    def to_guest(self, host_s: float) -> float:
        """Return the time of the guest at a time of the host."""
        return running(host_s, self.pauses) - self.ahead_s

    def to_host(self, guest_s: float) -> float:
        """Return the time of the host at a time of the guest."""
        host_s = guest_s + self.ahead_s
        for pause in self.pauses:
            if host_s >= pause.begun_s:
                host_s += pause.ended_s - pause.begun_s
        return host_s


def running(host_s: float, pauses: Iterable[Pause]) -> float:
    """Return a time of the host without the pauses before it."""
    return host_s - sum(
        min(host_s, pause.ended_s) - pause.begun_s for pause in pauses if host_s > pause.begun_s
    )


def counts_of_host(trace: Trace, pauses: Sequence[Pause]) -> list[list[Count]]:
    """Return the completions in a trace, for each time that the disk was plugged in."""
    counts = []
    for since_s, until_s in zip(
        trace.plugged_s, [*trace.plugged_s[1:], float("inf")], strict=True
    ):
        completed = sorted(
            (request.completed_s, request.size_bytes)
            for request in trace.requests
            if request.completed_s is not None and since_s <= request.completed_s < until_s
        )
        totals = accumulate(size_bytes for _, size_bytes in completed)
        times = [running(at_s, pauses) for at_s, _ in completed]
        counts.append([Count(*count) for count in zip(times, totals, strict=True)])
    return counts


def counts_of_guest(ticks: Iterable[Tick], devices: Iterable[str]) -> list[list[Count]]:
    """Return the counts in a recording, for each time that the disk was plugged in."""
    names = set(devices)
    counts: list[list[Count]] = []
    was_listed = False
    for tick in ticks:
        rows = [line.split() for line in (tick.diskstats or "").splitlines()]
        sectors = [int(row[5]) + int(row[9]) for row in rows if row[2] in names]
        if sectors and (not was_listed or SECTOR_BYTES * sectors[0] < counts[-1][-1].total_bytes):
            counts.append([])
        was_listed = bool(sectors)
        if sectors:
            counts[-1].append(Count(tick.clocks.monotonic_s, SECTOR_BYTES * sectors[0]))
    return counts


def matches(host: Sequence[Count], guest: Sequence[Count]) -> list[Match]:
    """Return the ticks that are between two completions close to each other."""
    totals = [count.total_bytes for count in host]
    found = []
    for count in guest:
        number = bisect_left(totals, count.total_bytes)
        if number + 1 >= len(host) or totals[number] != count.total_bytes:
            continue
        match = Match(count.at_s, host[number].at_s, host[number + 1].at_s)
        if match.most_s - match.least_s < _CLOSE_S:
            found.append(match)
    return found


def matched_clocks(found: Sequence[Match], pauses: Iterable[Pause]) -> Clocks:
    """Return the conversion that the matches give; raise ValueError if they are too few."""
    if len(found) < _LEAST:
        raise ValueError(f"clocks: found {len(found)} matches; expected {_LEAST}")
    ahead_s = median((match.least_s + match.most_s) / 2 - match.guest_s for match in found)
    errors = []
    for match in found:
        at_s = match.guest_s + ahead_s
        errors.append(max(0.0, match.least_s - at_s, at_s - match.most_s))
    return Clocks(ahead_s, tuple(pauses), quantiles(errors, n=20)[-1])
