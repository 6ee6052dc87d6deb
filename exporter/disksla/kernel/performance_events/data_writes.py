"""Exact counts of data writes, by performance events, where they can be opened.

/proc/diskstats counts an empty flush as a write. The tracepoint block:block_rq_complete has the
sectors of each request that completes, so an event with a filter counts the others.
"""

from disksla.base.operating_system.perf_events import EventGroup
from disksla.kernel.performance_events.opened import OpenedEvents
from disksla.kernel.performance_events.source import EventSource, Numbers

Counts = dict[str, tuple[int, int]]
"""By device: the number of the opening of its events, and the data writes since."""


class DataWriteCounters:
    """Events that count the data writes of disks on all CPUs; wanted by the first `read`."""

    def __init__(self, source: EventSource) -> None:
        """Want nothing yet."""
        self.source = source
        self._disks: Numbers | None = None  # the disks of the last `read`
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
        if self.source.want("data_writes", disks):
            self._give_back()
        opened = self.source.take()
        if opened is not None:
            self._give_back()
            self._opened = opened
            self._groups = [EventGroup(descriptors) for descriptors in opened.by_cpu.values()]
            self._openings += 1
        if not self._groups:
            return {}, {}
        counts: Counts | None = None
        problems = {}
        try:
            counts = self._counts(disks)
        except OSError as error:
            problems = {"data_writes": str(error)}
        if counts is None:  # or a CPU was offline since
            self.source.want("data_writes", disks, again=True)
            self._give_back()
        return counts or {}, problems

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
        self.source.stop()

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

    def _give_back(self) -> None:
        if self._opened is not None:
            self.source.give_back(self._opened)
        self._opened, self._groups = None, []
