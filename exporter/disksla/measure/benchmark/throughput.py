"""Throughput of cached and of buffered sequential reads, as `hdparm -tT` measures them.

Unlike hdparm, this does not drop the page cache of the whole device (BLKFLSBUF), which would
disturb a file system mounted from it: it drops only the pages that it reads.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.units import MIB

CHUNK_BYTES = 2 * MIB
MAX_BYTES = 512 * MIB
"""Maximum bytes read from the device."""


def cached_bytes_per_second(
    device: Path, seconds: float, clock: Callable[[], float] = time.monotonic
) -> float:
    """Return the throughput of reading the first 2 MiB from the page cache, as hdparm -T.

    Raise DiskslaError if the device cannot be read or is smaller.
    """
    with _opened(device) as descriptor:
        buffer = bytearray(CHUNK_BYTES)
        _fill(descriptor, buffer, 0, device)
        started_s, chunks = clock(), 0
        while not chunks or clock() < started_s + seconds:
            _fill(descriptor, buffer, 0, device)
            chunks += 1
        return chunks * CHUNK_BYTES / (clock() - started_s)


def buffered_bytes_per_second(
    device: Path, size_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> float:
    """Return the throughput of sequential reads with read-ahead by the kernel, as hdparm -t.

    Reads start in the middle of the device, and end after `seconds`, after MAX_BYTES or at the end
    of the device. Raise DiskslaError if it cannot be read or is smaller than 4 MiB.
    """
    start = size_bytes // 2 // CHUNK_BYTES * CHUNK_BYTES
    max_chunks = min(MAX_BYTES, size_bytes - start) // CHUNK_BYTES
    with _opened(device) as descriptor:
        buffer = bytearray(CHUNK_BYTES)
        os.posix_fadvise(descriptor, start, max_chunks * CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, start, max_chunks * CHUNK_BYTES, os.POSIX_FADV_SEQUENTIAL)
        started_s, chunks = clock(), 0
        while not chunks or (chunks < max_chunks and clock() < started_s + seconds):
            offset = start + chunks * CHUNK_BYTES
            _fill(descriptor, buffer, offset, device)
            os.posix_fadvise(descriptor, offset, CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
            chunks += 1
        elapsed_s = clock() - started_s
        os.posix_fadvise(descriptor, start, max_chunks * CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
        return chunks * CHUNK_BYTES / elapsed_s


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


def _fill(descriptor: int, buffer: bytearray, offset: int, device: Path) -> None:
    try:
        read = os.preadv(descriptor, [buffer], offset)
    except OSError as error:
        raise DiskslaError(f"cannot read {device} at byte {offset}: {error.strerror}") from error
    if read < len(buffer):
        raise DiskslaError(f"{device} ends at {offset + read} bytes; expected at least 4 MiB")
