"""Whether somebody else uses a disk: how long it was busy while nothing of ours ran."""

import time
from collections.abc import Callable

from disksla.core.diskstats import MalformedLine, reading_of
from disksla.core.refusal import Refusal
from disksla.runtime.paths import Paths
from disksla.runtime.procfs import DiskstatsFile

LOOK_S = 1.0
_BUSY_FIELD = 8


def busy_share(
    paths: Paths, device: str, seconds: float = LOOK_S, wait: Callable[[float], None] = time.sleep
) -> float:
    """Look for a moment; give the share of it in which requests were in flight.

    Raises Refusal if /proc/diskstats does not tell.
    """
    file = DiskstatsFile(paths.procfs)
    try:
        before = _busy_ms(file.read(), device)
        wait(seconds)
        after = _busy_ms(file.read(), device)
    except OSError as error:
        raise Refusal(
            f"cannot read {paths.procfs / 'diskstats'}: {error.strerror or error}"
        ) from error
    finally:
        file.close()
    return max(0, after - before) / (1000 * seconds)


def _busy_ms(text: str, device: str) -> int:
    try:
        reading = reading_of(text, device) or ()
    except MalformedLine as malformed:
        raise Refusal(f"/proc/diskstats, {device}: {malformed}") from malformed
    busy_ms = reading[_BUSY_FIELD] if len(reading) > _BUSY_FIELD else None
    if busy_ms is None:
        raise Refusal(f"/proc/diskstats does not tell how busy {device} is")
    return busy_ms
