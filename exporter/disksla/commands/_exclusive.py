"""Measure a disk alone: no other disksla measurement on the machine, no other use of the disk."""

import argparse
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import measurement_lock
from disksla.commands._context import HostContext
from disksla.commands._options import roots_of
from disksla.kernel.disks import Disk
from disksla.kernel.procfs import difference, to_counters
from disksla.kernel.procfs.files import DiskstatsFile
from disksla.state.pipeline import counters_of

FORCE_HELP = (
    "measure even if other programs use the disk; they slow down, and the results are too low"
)


@contextmanager
def exclusive_measurement(
    arguments: argparse.Namespace, host: HostContext, disk: Disk
) -> Iterator[None]:
    """Keep other measurements, such as probes of the daemon, from starting until the block ends.

    Raise DiskslaError if one is running, or if the disk is in use and --force is not given.
    """
    with measurement_lock(Path(host.settings.state.directory)) as is_alone:
        if not is_alone:
            raise DiskslaError(
                f"cannot measure {disk.name}: another disksla measurement is running on this"
                " machine; try again later"
            )
        _check_idle(arguments, host, disk)
        yield


def _check_idle(arguments: argparse.Namespace, host: HostContext, disk: Disk) -> None:
    utilization = measure_utilization(roots_of(arguments), disk, host.disks)
    if utilization < MAX_UTILIZATION:
        return
    busy = f"{disk.name} was busy for {min(utilization, 1):.0%} of the last second"
    if not arguments.force:
        raise DiskslaError(
            f"cannot measure {disk.name}: other programs use it ({busy}); try again when it is"
            " idle, or use --force (slows down those programs, and the results are too low)"
        )
    print(
        f"disksla: other programs use {disk.name} ({busy}): they will slow down, and the results"
        " will be too low",
        file=sys.stderr,
    )


MAX_UTILIZATION = 0.1
"""Utilization from which `sweep` refuses to start, also with --identify. It runs at full speed,
also on disks without limits, so any other use of the disk slows down both."""
OBSERVATION_S = 1.0


def measure_utilization(
    roots: Roots,
    disk: Disk,
    disks: Collection[Disk],
    seconds: float = OBSERVATION_S,
    wait: Callable[[float], None] = time.sleep,
) -> float:
    """Return the share of the next `seconds` in which the disk had a request in flight.

    Of a disk with several paths (`disks` are all block devices), it is the sum of theirs. Raise
    DiskslaError if /proc/diskstats cannot be read or does not report it.
    """
    file = DiskstatsFile(roots.procfs)
    try:
        before = counters_of(file.read, disk, disks)
        wait(seconds)
        after = counters_of(file.read, disk, disks)
    finally:
        file.close()
    busy_ms = to_counters(difference(after, before)).busy_ms
    if busy_ms is None:
        raise DiskslaError(f"/proc/diskstats does not report the utilization of {disk.name}")
    return max(0, busy_ms) / 1000 / seconds
