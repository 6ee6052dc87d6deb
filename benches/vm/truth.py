"""The truth about a disk, window by window, from QEMU's trace. Pure functions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from lab.limiter import RESOURCES
from lab.model import LimitKind
from lab.truth import WINDOW_S, Window
from vm.clocks import Clocks
from vm.limits import Admitted, Change, QemuLimits, bucket_size, levels_at
from vm.trace import Trace


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
