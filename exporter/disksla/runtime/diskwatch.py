"""One disk under the eyes of the pipeline while something else is done to it."""

import contextlib
from collections.abc import Collection, Iterator

from disksla.core.disk import Disk
from disksla.core.diskstats import MalformedLine, Reading, reading_of
from disksla.core.limits import Resource
from disksla.core.look import look_at
from disksla.core.pipeline import State
from disksla.core.refusal import Refusal
from disksla.core.settings import Settings
from disksla.core.terms import Catalog
from disksla.core.verdict import VERDICTS, Verdict
from disksla.runtime.paths import Paths
from disksla.runtime.procfs import DiskstatsFile
from disksla.runtime.sampler import Sampler

_EMPTY_SHARE = 0.01
"""Of the capacity: credits that are certainly below this are gone."""


class DiskWatch:
    """Says of one disk what was done to it, and what the pipeline makes of that."""

    def __init__(self, paths: Paths, disk: Disk, sampler: Sampler) -> None:
        """Take a sampler that watches this disk."""
        self._disk = disk
        self._diskstats = DiskstatsFile(paths.procfs)
        self._sampler = sampler

    def reading(self) -> Reading:
        """Read the counters of the disk now; raises Refusal if they are not to be had."""
        try:
            reading = reading_of(self._diskstats.read(), self._disk.name)
        except (OSError, MalformedLine) as error:
            raise Refusal(f"{self._disk.name} is not in diskstats: {error}") from error
        if reading is None:
            raise Refusal(f"{self._disk.name} is not in diskstats")
        return reading

    def window_seconds(self) -> dict[Verdict, float]:
        """Give the seconds by verdict, up to now."""
        view = look_at(self._sampler.state, self._disk.name)
        return {} if view is None else dict(zip(VERDICTS, view.ledger.seconds, strict=True))

    def is_at_base(self, resources: Collection[Resource]) -> bool:
        """Tell whether the disk has no credits of any of these resources, which is proven."""
        watched = self._sampler.state.watched.get(self._disk.name)
        if watched is None or watched.purse is None:
            return False
        return all(
            credit.is_held_at_base or credit.upper_credits < _EMPTY_SHARE * bucket.capacity
            for credit, bucket in zip(
                watched.purse.contents, watched.assignment.limits.buckets, strict=True
            )
            if bucket.resource in resources
        )

    def close(self) -> None:
        """Let go of the file."""
        self._diskstats.close()


@contextlib.contextmanager
def watched(
    paths: Paths, settings: Settings, catalog: Catalog, disk: Disk, disks: tuple[Disk, ...]
) -> Iterator[DiskWatch]:
    """Watch a disk, with its partitions and nothing else, until the end of the block."""
    sampler = Sampler(paths, State(settings, catalog))
    sampler.post(tuple(each for each in disks if disk.name in {each.name, each.partition_of}))
    sampler.start()
    watch = DiskWatch(paths, disk, sampler)
    try:
        yield watch
    finally:
        sampler.stop()
        watch.close()
