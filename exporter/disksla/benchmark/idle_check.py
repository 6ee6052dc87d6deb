"""Utilization of a disk before it is measured: the time in which other programs use it."""

import time
from collections.abc import Callable

from disksla.disks import activity_between
from disksla.errors import DiskslaError
from disksla.procfs import CounterValues, MalformedLineError, find_reading
from disksla.procfs.files import DiskstatsFile
from disksla.system.roots import Roots

OBSERVATION_S = 1.0


def measure_utilization(
    roots: Roots,
    device: str,
    seconds: float = OBSERVATION_S,
    wait: Callable[[float], None] = time.sleep,
) -> float:
    """Return the share of the next `seconds` in which the disk had a request in flight.

    Raise DiskslaError if /proc/diskstats cannot be read or does not report it.
    """
    file = DiskstatsFile(roots.procfs)
    try:
        before = _reading(file.read(), device)
        wait(seconds)
        after = _reading(file.read(), device)
    except OSError as error:
        raise DiskslaError(
            f"cannot read {roots.procfs / 'diskstats'}: {error.strerror or error}"
        ) from error
    finally:
        file.close()
    utilization = activity_between(before, after, seconds).utilization
    if utilization is None:
        raise DiskslaError(f"/proc/diskstats does not report the utilization of {device}")
    return utilization


def _reading(text: str, device: str) -> CounterValues:
    try:
        reading = find_reading(text, device)
    except MalformedLineError as error:
        raise DiskslaError(f"/proc/diskstats, {device}: {error}") from error
    if reading is None:
        raise DiskslaError(f"{device} is not in /proc/diskstats")
    return reading
