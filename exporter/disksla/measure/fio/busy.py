"""How busy a disk is between two readings of its counters, and how busy is too busy to measure it.

There are three measures because none fits every disk: the load needs limits, the utilization says
nothing of a disk that serves many requests at once, and the queue depth has no natural maximum.
"""

from typing import NamedTuple

from disksla.kernel.procfs import SECTOR_BYTES, Counters, CounterValues, difference, to_counters
from disksla.promise.catalogue import Charge, Work

PROBE_MAX_QUEUE_DEPTH = 1.0
"""Queue depth above which a disk without limits is not probed. A probe keeps one request in
flight; above this it would measure how long that waits for the requests of other programs."""
VERIFY_MAX_OTHER_LOAD = 0.01
"""Load by other programs above which an acceptance test is not valid: a third of the usual
tolerance, so that it cannot decide a verdict."""
BENCHMARK_MAX_UTILIZATION = 0.1
"""Utilization from which `sweep` refuses to start, also with --identify. It runs at full speed,
also on disks without limits, so any other use of the disk slows down both."""


class Activity(NamedTuple):
    """How busy a disk was."""

    load: float | None
    """Share of the limits used, 1.0 at the limit; None without limits."""
    queue_depth: float
    """Mean number of requests in flight, of those that completed."""
    utilization: float | None
    """Share of the time in which a request was in flight; None if not reported by the kernel."""


def activity_between(
    before: CounterValues, after: CounterValues, seconds: float, charges: tuple[Charge, ...] = ()
) -> Activity:
    """Return how busy a disk was between two readings, `seconds` apart."""
    rise = to_counters(difference(after, before))
    request_ms = (rise.read_ms or 0) + (rise.write_ms or 0)
    return Activity(
        work_of(rise).load(charges, seconds),
        request_ms / 1000 / seconds,
        None if rise.busy_ms is None else max(0, rise.busy_ms) / 1000 / seconds,
    )


def work_of(rise: Counters) -> Work:
    """Return what a rise of the counters stands for; requests are counted after merging."""
    return Work(
        rise.reads or 0,
        rise.writes or 0,
        (rise.read_sectors or 0) * SECTOR_BYTES,
        (rise.written_sectors or 0) * SECTOR_BYTES,
    )
