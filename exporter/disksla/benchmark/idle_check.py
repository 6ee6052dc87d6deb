"""Whether somebody else uses a disk: how long it was busy while nothing of ours ran."""

import time
from collections.abc import Callable

from disksla.errors import DiskslaError
from disksla.procfs import MalformedLineError, find_reading
from disksla.procfs.files import DiskstatsFile
from disksla.system.roots import Roots

LOOK_S = 1.0
_BUSY_FIELD = 8


def busy_share(
    roots: Roots, device: str, seconds: float = LOOK_S, wait: Callable[[float], None] = time.sleep
) -> float:
    """Look for a moment; give the share of it in which requests were in flight.

    Raises Refusal if /proc/diskstats does not tell.
    """
    file = DiskstatsFile(roots.procfs)
    try:
        before = _busy_ms(file.read(), device)
        wait(seconds)
        after = _busy_ms(file.read(), device)
    except OSError as error:
        raise DiskslaError(
            f"cannot read {roots.procfs / 'diskstats'}: {error.strerror or error}"
        ) from error
    finally:
        file.close()
    return max(0, after - before) / (1000 * seconds)


def _busy_ms(text: str, device: str) -> int:
    try:
        reading = find_reading(text, device) or ()
    except MalformedLineError as malformed:
        raise DiskslaError(f"/proc/diskstats, {device}: {malformed}") from malformed
    busy_ms = reading[_BUSY_FIELD] if len(reading) > _BUSY_FIELD else None
    if busy_ms is None:
        raise DiskslaError(f"/proc/diskstats does not tell how busy {device} is")
    return busy_ms
