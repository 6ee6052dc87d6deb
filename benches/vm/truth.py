"""The truth about a disk, window by window, from QEMU's trace. Pure functions.

Events of the trace, for each request of the guest and then for what QEMU makes of it:

- `virtio_blk_handle_read`, `_write`: the request arrived. A flush has no such event.
- `blk_co_preadv`, `_pwritev`: it arrived at the limiter; QEMU may have merged several into one.
- `bdrv_co_preadv_part`, `_pwritev_part`: the limiter has admitted it.
- `virtio_blk_req_complete`: it is complete.
- `blk_root_attach`: a disk was plugged in. The first requests after that at a device which had
  none before are those of the system of the guest, which reads each disk that it finds.

Each is a line `THREAD@SECONDS:EVENT NAME VALUE NAME VALUE ...` in wall-clock time of the host.

The clock of the guest follows from bytes that both count: a tick with as many bytes as the host
had between two completions was between these two. Both clocks have the same rate (vm/machine.py),
but that of the guest stops while the virtual machine is paused.
"""

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from statistics import median, quantiles
from typing import NamedTuple

import msgspec

from disksla.kernel.procfs import SECTOR_BYTES
from disksla.state.pipeline import Tick
from lab.limiter import RESOURCES
from lab.model import LimitKind
from lab.truth import WINDOW_S, Window
from vm.limits import Admitted, Change, QemuLimits, bucket_size, levels_at

IMMEDIATE_S = 0.0005
"""A request that is admitted within this time has not waited: QEMU has only written the trace."""
_LINE = re.compile(r"\d+@(?P<at_s>\d+\.\d+):(?P<event>\w+) (?P<values>.*)")
_WRITES = {"virtio_blk_handle_write", "blk_co_pwritev", "bdrv_co_pwritev_part"}


class Request(NamedTuple):
    """A read or write of the guest; not a flush."""

    arrived_s: float
    completed_s: float | None
    is_write: bool
    size_bytes: int


class Admission(NamedTuple):
    """A read or write at the limiter."""

    arrived_s: float
    admitted_s: float | None
    is_write: bool
    size_bytes: int

    @property
    def waited(self) -> bool:
        """Whether it waited for the limiter."""
        return self.admitted_s is None or self.admitted_s - self.arrived_s > IMMEDIATE_S


class Trace(NamedTuple):
    """What happened at the disks that were plugged in during the trace."""

    plugged_s: list[float]
    requests: list[Request]
    admissions: list[Admission]


class _Event(NamedTuple):
    at_s: float
    name: str
    values: dict[str, str]

    @property
    def is_write(self) -> bool:
        return self.name in _WRITES

    @property
    def place(self) -> tuple[str, bool, str, str]:
        """What the events of one request at the limiter have in common."""
        return self.values["bs"], self.is_write, self.values["offset"], self.values["bytes"]


def own_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines of a trace without those of disks that were plugged in before."""
    backends: set[str] = set()
    kept = []
    for line in lines:
        event = _parsed(line)
        if event is None:
            continue
        if event.name == "blk_root_attach":
            backends |= {event.values["blk"], event.values["bs"]}
        known = event.values.get("blk", event.values.get("bs"))
        if known is None or known in backends:
            kept.append(line)
    return kept


def by_disk(lines: Sequence[str], disks: int) -> list[list[str]]:
    """Return the lines of each of several disks, of one trace that `own_lines` returned.

    Each disk was plugged in once and then read, before the next was; a single one may have been
    unplugged in between.
    """
    if disks == 1:
        return [list(lines)]
    plugged = -1
    owners: dict[str, int] = {}
    own: list[list[str]] = [[] for _ in range(disks)]
    for line in lines:
        event = _parsed(line)
        if event is None:
            continue
        if event.name == "blk_root_attach":
            plugged += 1
            owners[event.values["bs"]] = plugged
        place = event.values.get("vdev", event.values.get("bs", ""))
        own[owners.setdefault(place, plugged)].append(line)
    return own


def read_trace(lines: Iterable[str]) -> Trace:
    """Return the requests in the lines that `own_lines` returns."""
    plugged_s: list[float] = []
    requests: list[Request] = []
    admissions: list[Admission] = []
    arrived: dict[tuple[str, str], int] = {}
    waiting: defaultdict[tuple[str, bool, str, str], deque[int]] = defaultdict(deque)
    for event in filter(None, map(_parsed, lines)):
        values = event.values
        match event.name:
            case "blk_root_attach":
                plugged_s.append(event.at_s)
            case "virtio_blk_handle_read" | "virtio_blk_handle_write":
                arrived[values["vdev"], values["req"]] = len(requests)
                size_bytes = int(values["nsectors"]) * SECTOR_BYTES
                requests.append(Request(event.at_s, None, event.is_write, size_bytes))
            case "virtio_blk_req_complete":
                number = arrived.pop((values["vdev"], values["req"]), None)
                if number is not None:
                    requests[number] = requests[number]._replace(completed_s=event.at_s)
            case "blk_co_preadv" | "blk_co_pwritev":
                waiting[event.place].append(len(admissions))
                size_bytes = int(values["bytes"])
                admissions.append(Admission(event.at_s, None, event.is_write, size_bytes))
            case "bdrv_co_preadv_part" | "bdrv_co_pwritev_part" if waiting[event.place]:
                number = waiting[event.place].popleft()
                admissions[number] = admissions[number]._replace(admitted_s=event.at_s)
    return Trace(plugged_s, requests, admissions)


def _parsed(line: str) -> _Event | None:
    matched = _LINE.fullmatch(line)
    if matched is None:
        return None
    words = matched["values"].split()
    return _Event(
        float(matched["at_s"]), matched["event"], dict(zip(words[::2], words[1::2], strict=False))
    )


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


class Wait(NamedTuple):
    """Time for which a request waited for the limiter."""

    begun_s: float
    ended_s: float


class Completion(NamedTuple):
    """A request that completed."""

    at_s: float
    is_write: bool
    size_bytes: int


def truth_of(
    trace: Trace, changes: Sequence[Change], clocks: Clocks, begun_s: float, ended_s: float
) -> list[Window]:
    """Return the windows between two times of the guest, in its time.

    The trace is that of all disks which the limits are over.
    """
    waits = [
        Wait(clocks.to_guest(admission.arrived_s), _ended_s(admission.admitted_s, clocks, ended_s))
        for admission in trace.admissions
        if admission.waited
    ]
    completions = [
        Completion(clocks.to_guest(request.completed_s), request.is_write, request.size_bytes)
        for request in trace.requests
        if request.completed_s is not None
    ]
    ends = [clocks.to_host(end_s) for _, end_s in _spans(begun_s, ended_s)]
    admitted = [
        Admitted(admission.admitted_s, admission.size_bytes)
        for admission in trace.admissions
        if admission.admitted_s is not None
    ]
    levels = levels_at(ends, changes, admitted)
    windows = windows_of(waits, completions, begun_s, ended_s)
    return [
        _with_limits(window, _limits_at(changes, end_s), level)
        for window, end_s, level in zip(windows, ends, levels, strict=True)
    ]


def _ended_s(admitted_s: float | None, clocks: Clocks, ended_s: float) -> float:
    return ended_s if admitted_s is None else clocks.to_guest(admitted_s)


def _spans(begun_s: float, ended_s: float) -> list[tuple[float, float]]:
    count = int((ended_s - begun_s) / WINDOW_S)
    return list(pairwise(begun_s + number * WINDOW_S for number in range(count + 1)))


def windows_of(
    waits: Sequence[Wait], completions: Sequence[Completion], begun_s: float, ended_s: float
) -> list[Window]:
    """Return windows with what completed, and how long requests waited."""
    edges = sorted([(wait.begun_s, 1) for wait in waits] + [(wait.ended_s, -1) for wait in waits])
    completions = sorted(completions)
    edge = done = waiting = 0
    while done < len(completions) and completions[done].at_s < begun_s:
        done += 1
    while edge < len(edges) and edges[edge][0] < begun_s:
        waiting += edges[edge][1]
        edge += 1
    windows = []
    for start_s, end_s in _spans(begun_s, ended_s):
        now_s, wait_s, throttled_s = start_s, 0.0, 0.0
        first = edge
        while edge < len(edges) and edges[edge][0] < end_s:
            edge += 1
        for at_s, step in [*edges[first:edge], (end_s, 0)]:
            wait_s += waiting * (at_s - now_s)
            throttled_s += at_s - now_s if waiting else 0.0
            waiting += step
            now_s = at_s
        first = done
        while done < len(completions) and completions[done].at_s < end_s:
            done += 1
        own = completions[first:done]
        windows.append(
            Window(
                start_s,
                end_s,
                reads=sum(not each.is_write for each in own),
                writes=sum(each.is_write for each in own),
                read_bytes=sum(each.size_bytes for each in own if not each.is_write),
                written_bytes=sum(each.size_bytes for each in own if each.is_write),
                inflight=waiting,
                waiting=waiting,
                wait_s=wait_s,
                throttled_s=throttled_s,
            )
        )
    return windows


def _limits_at(changes: Sequence[Change], host_s: float) -> QemuLimits:
    before = [change.limits for change in changes if change.at_s <= host_s]
    return before[-1] if before else QemuLimits()


def _with_limits(window: Window, limits: QemuLimits, level: float) -> Window:
    kind: LimitKind = "bandwidth" if limits.is_bandwidth else "iops"
    left = {} if limits.capacity is None else {RESOURCES[kind]: max(0.0, limits.capacity - level)}
    if not window.waiting:
        return msgspec.structs.replace(window, credits=left)
    rate = "base" if level >= bucket_size(limits) - 1 else "burst"
    return msgspec.structs.replace(window, limit=kind, rate=rate, credits=left)
