"""Monitor one disk by the pipeline while it is tested: counters, verdicts and burst credits."""

import contextlib
from collections.abc import Collection, Iterator

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks import Disk, parts_of
from disksla.kernel.procfs import CounterValues
from disksla.kernel.procfs.files import DiskstatsFile
from disksla.promise.catalogue import Resource
from disksla.promise.configuration import Configuration
from disksla.state.pipeline import State, counters_of, disk_snapshot
from disksla.state.pipeline.sampler import Sampler
from disksla.verdict.credits import throttled_by
from disksla.verdict.throttling import VERDICTS, Verdict

_EMPTY_SHARE = 0.01
"""Share of the capacity; credits whose upper bound is below it count as used up."""


class DiskMonitor:
    """The counters of one disk, and the verdicts and credits that a sampler derives from them."""

    def __init__(
        self, roots: Roots, disk: Disk, disks: tuple[Disk, ...], sampler: Sampler
    ) -> None:
        """Read the disk under `roots`; `sampler` must be sampling it."""
        self._disk = disk
        self._disks = disks
        self._diskstats = DiskstatsFile(roots.procfs)
        self._sampler = sampler

    def reading(self) -> CounterValues:
        """Return the current counters of the disk. Raise DiskslaError if there are none."""
        return counters_of(self._diskstats.read, self._disk, self._disks)

    def window_seconds(self) -> dict[Verdict, float]:
        """Return the seconds by verdict since sampling began; empty before the first window."""
        snapshot = disk_snapshot(self._sampler.state, self._disk.name)
        if snapshot is None:
            return {}
        return dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))

    def is_at_base(self, resources: Collection[Resource]) -> bool:
        """Return whether the disk has certainly used up its credits of all these resources.

        Of each, next to none are left, or its limiter was seen at the baseline in the last second.
        """
        disk = self._sampler.state.monitored.get(self._disk.name)
        if disk is None or disk.credits is None:
            return False
        last = disk.window_verdict
        seen = last.throttle if last is not None and last.is_seen else None
        return all(
            throttled_by(bucket, seen) == "base"
            or credit.upper_credits < _EMPTY_SHARE * bucket.capacity
            for credit, bucket in zip(
                disk.credits.bucket_credits, disk.assignment.limits.buckets, strict=True
            )
            if bucket.resource in resources
        )

    def close(self) -> None:
        """Close /proc/diskstats."""
        self._diskstats.close()


@contextlib.contextmanager
def monitored(
    roots: Roots, configuration: Configuration, disk: Disk, disks: tuple[Disk, ...]
) -> Iterator[DiskMonitor]:
    """Sample a disk, its paths and partitions, and no others, until the end of the block."""
    sampler = Sampler(roots, State(configuration))
    sampler.post(parts_of(disk, disks))
    sampler.start()
    monitor = DiskMonitor(roots, disk, disks, sampler)
    try:
        yield monitor
    finally:
        sampler.stop()
        monitor.close()
