"""One disk under the eyes of the pipeline while something else is done to it."""

import contextlib
from collections.abc import Collection, Iterator

from disksla.config import Settings
from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.limits import Catalog, Resource
from disksla.pipeline import State, disk_snapshot
from disksla.pipeline.sampler import Sampler
from disksla.procfs import MalformedLineError, Reading, find_reading
from disksla.procfs.files import DiskstatsFile
from disksla.system.roots import Roots
from disksla.verdict import VERDICTS, Verdict

_EMPTY_SHARE = 0.01
"""Of the capacity: credits that are certainly below this are gone."""


class DiskMonitor:
    """Says of one disk what was done to it, and what the pipeline makes of that."""

    def __init__(self, roots: Roots, disk: Disk, sampler: Sampler) -> None:
        """Take a sampler that watches this disk."""
        self._disk = disk
        self._diskstats = DiskstatsFile(roots.procfs)
        self._sampler = sampler

    def reading(self) -> Reading:
        """Read the counters of the disk now; raises Refusal if they are not to be had."""
        try:
            reading = find_reading(self._diskstats.read(), self._disk.name)
        except (OSError, MalformedLineError) as error:
            raise DiskslaError(f"{self._disk.name} is not in diskstats: {error}") from error
        if reading is None:
            raise DiskslaError(f"{self._disk.name} is not in diskstats")
        return reading

    def window_seconds(self) -> dict[Verdict, float]:
        """Give the seconds by verdict, up to now."""
        snapshot = disk_snapshot(self._sampler.state, self._disk.name)
        return (
            {}
            if snapshot is None
            else dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
        )

    def is_at_base(self, resources: Collection[Resource]) -> bool:
        """Tell whether the disk has no credits of any of these resources, which is proven."""
        watched = self._sampler.state.monitored.get(self._disk.name)
        if watched is None or watched.credits is None:
            return False
        return all(
            credit.is_throttled_at_base or credit.upper_credits < _EMPTY_SHARE * bucket.capacity
            for credit, bucket in zip(
                watched.credits.bucket_credits,
                watched.assignment.limits.buckets,
                strict=True,
            )
            if bucket.resource in resources
        )

    def close(self) -> None:
        """Let go of the file."""
        self._diskstats.close()


@contextlib.contextmanager
def monitored(
    roots: Roots, settings: Settings, catalog: Catalog, disk: Disk, disks: tuple[Disk, ...]
) -> Iterator[DiskMonitor]:
    """Watch a disk, with its partitions and nothing else, until the end of the block."""
    sampler = Sampler(roots, State(settings, catalog))
    sampler.post(tuple(each for each in disks if disk.name in {each.name, each.partition_of}))
    sampler.start()
    watch = DiskMonitor(roots, disk, sampler)
    try:
        yield watch
    finally:
        sampler.stop()
        watch.close()
