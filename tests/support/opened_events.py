"""Events that are opened for tests, as the daemon has them opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from disksla.base.operating_system.machine import Roots
from disksla.kernel.performance_events.data_writes import Counts, DataWriteCounters
from disksla.kernel.performance_events.opened import open_events
from disksla.kernel.performance_events.opening import EventFiles
from disksla.kernel.performance_events.source import EventSource, Numbers
from support.waiting import eventually

NO_HELPER = Path("/nonexistent/events.sock")
PATIENCE_S = 20.0


def source_of(roots: Roots, helper: Path = NO_HELPER) -> EventSource:
    """Return a source that tries again soon."""
    opener = partial(open_events, helper=helper, files=EventFiles(roots))
    return EventSource(opener, "events", roots.sysfs, between_s=0.0, retry_s=0.05)


@contextmanager
def counting(roots: Roots, helper: Path = NO_HELPER) -> Iterator[DataWriteCounters]:
    """Yield counters, and close them."""
    counters = DataWriteCounters(source_of(roots, helper))
    try:
        yield counters
    finally:
        counters.close()


def read_once_open(counters: DataWriteCounters, disks: Numbers) -> Counts:
    """Return the counts of disks, once their events are open."""
    found: list[Counts] = []

    def read() -> bool:
        counts, problems = counters.read(disks)
        assert problems == {}
        found.append(counts)
        return bool(counts)

    assert eventually(read, PATIENCE_S), counters.why_not
    return found[-1]
