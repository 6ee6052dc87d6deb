"""How fast a device is read on and on, and how fast this machine reads out of its own memory.

As `hdparm -tT` does, but without emptying the cache of the whole device (BLKFLSBUF), which would
disturb what is mounted from it: only pages that we read ourselves are given up again.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.units import MIB

CHUNK_BYTES = 2 * MIB
MOST_BYTES = 512 * MIB
"""That are read from the device."""


def cached_bytes_per_second(
    device: Path, seconds: float, clock: Callable[[], float] = time.monotonic
) -> float:
    """Read the first 2 MiB again and again, out of the page cache; as hdparm -T.

    Raises Refusal for a device that cannot be read or is smaller.
    """
    with _opened(device) as descriptor:
        buffer = bytearray(CHUNK_BYTES)
        _fill(descriptor, buffer, 0, device)
        began, times = clock(), 0
        while not times or clock() < began + seconds:
            _fill(descriptor, buffer, 0, device)
            times += 1
        return times * CHUNK_BYTES / (clock() - began)


def buffered_bytes_per_second(
    device: Path, size_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> float:
    """Read on from the middle of the device, while the kernel reads ahead; as hdparm -t.

    Ends at MOST_BYTES or the end of the device if that is sooner. Raises Refusal for a device
    that cannot be read or is smaller than 4 MiB.
    """
    start = size_bytes // 2 // CHUNK_BYTES * CHUNK_BYTES
    most = min(MOST_BYTES, size_bytes - start) // CHUNK_BYTES
    with _opened(device) as descriptor:
        buffer = bytearray(CHUNK_BYTES)
        os.posix_fadvise(descriptor, start, most * CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, start, most * CHUNK_BYTES, os.POSIX_FADV_SEQUENTIAL)
        began, times = clock(), 0
        while not times or (times < most and clock() < began + seconds):
            place = start + times * CHUNK_BYTES
            _fill(descriptor, buffer, place, device)
            os.posix_fadvise(descriptor, place, CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
            times += 1
        took_s = clock() - began
        os.posix_fadvise(descriptor, start, most * CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
        return times * CHUNK_BYTES / took_s


@contextmanager
def _opened(device: Path) -> Iterator[int]:
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DiskslaError(f"cannot read {device}: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _fill(descriptor: int, buffer: bytearray, place: int, device: Path) -> None:
    try:
        read = os.preadv(descriptor, [buffer], place)
    except OSError as error:
        raise DiskslaError(f"cannot read {device} at {place}: {error.strerror}") from error
    if read < len(buffer):
        raise DiskslaError(f"{device} ends at {place + read} bytes; expected at least 4 MiB")
