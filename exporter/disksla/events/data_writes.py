"""Exact counts of data writes, by performance events, where they can be opened.

/proc/diskstats counts an empty flush as a write. The tracepoint block:block_rq_complete has the
sectors of each request that completes, so an event with a filter counts the others.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from disksla.events.opened import OpenedEvents
from disksla.events.protocol import EventsRequest
from disksla.events.source import EventSource, Wish
from disksla.system.perf_events import EventGroup

_MAX_BYTES = 4096  # an attribute of sysfs is at most one page

Numbers = Mapping[str, tuple[int, int]]
"""Major and minor number by device."""
Counts = dict[str, tuple[int, int]]
"""By device: the number of the opening of its events, and the data writes since."""


class DataWriteCounters:
    """Events that count the data writes of disks on all CPUs; wanted by the first `read`."""

    def __init__(self, source: EventSource, sysfs: Path) -> None:
        """Want nothing yet."""
        self.source = source
        self._online = sysfs / "devices" / "system" / "cpu" / "online"
        self._online_descriptor: int | None = None
        self._disks: Numbers | None = None
        """The disks of the last `read`."""
        self._wish: Wish | None = None
        self._opened: OpenedEvents | None = None
        self._groups: list[EventGroup] = []
        self._openings = 0

    @property
    def why_not(self) -> str | None:
        """Why data writes are not counted; None while they are, or may soon be."""
        return self.source.why_not

    def read(self, disks: Numbers) -> tuple[Counts, dict[str, str]]:
        """Return the counts of disks, and an error by source.

        Counts of two openings have no difference: the events are opened again when the disks or
        the CPUs change, or when they cannot be read. Until they are, nothing is counted.
        """
        self._disks = disks
        self._want(disks)
        opened = self.source.take()
        if opened is not None:
            self._use(opened)
        if not self._groups:
            return {}, {}
        try:
            counts = self._counts(disks)
        except OSError as error:
            self._want(disks, again=True)
            return {}, {"data_writes": str(error)}
        if counts is None:  # a CPU was offline since
            self._want(disks, again=True)
        return counts or {}, {}

    def may_wait(self, disks: Numbers) -> bool:
        """Return whether nothing is missed if idle disks are not read now."""
        return self._disks is disks and not self.source.has_new

    @property
    def counts(self) -> bool:
        """Whether events are open."""
        return bool(self._groups)

    def close(self) -> None:
        """Close all; `read` has it opened again."""
        self._give_back()
        self._wish = None
        self.source.stop()
        if self._online_descriptor is not None:
            os.close(self._online_descriptor)
            self._online_descriptor = None

    def _counts(self, disks: Numbers) -> Counts | None:
        """Return the counts; None if events of a CPU do not count any more. Raise OSError."""
        by_cpu = [group.read() for group in self._groups]
        counted = [counts for counts in by_cpu if counts is not None]
        if len(counted) < len(by_cpu):
            return None
        return {
            device: (self._openings, sum(counts))
            for device, counts in zip(disks, zip(*counted, strict=True), strict=True)
        }

    def _want(self, disks: Numbers, *, again: bool = False) -> None:
        """Have the events opened again, if they are not of these disks and CPUs."""
        wish = None
        if disks:
            devices = tuple(f"{major}:{minor}" for major, minor in disks.values())
            renewal = again + (0 if self._wish is None else self._wish.renewal)
            wish = Wish(EventsRequest("data_writes", devices), self._read_online(), renewal)
        if wish != self._wish:
            self._give_back()
            self._wish = wish
            self.source.want(wish)

    def _use(self, opened: OpenedEvents) -> None:
        self._give_back()
        self._opened = opened
        self._groups = [EventGroup(descriptors) for descriptors in opened.by_cpu.values()]
        self._openings += 1

    def _give_back(self) -> None:
        if self._opened is not None:
            self.source.give_back(self._opened)
        self._opened, self._groups = None, []

    def _read_online(self) -> str:
        """Return the list of online CPUs, empty if it cannot be read.

        Opening the file each time would cost ten times more.
        """
        try:
            if self._online_descriptor is None:
                self._online_descriptor = os.open(self._online, os.O_RDONLY | os.O_CLOEXEC)
            content = os.pread(self._online_descriptor, _MAX_BYTES, 0)
        except OSError:
            return ""
        return content.decode("ascii", errors="replace").strip()
