"""Throughput of buffered sequential reads, as `hdparm -t` measures it.

Unlike hdparm, this does not drop the page cache of the whole device (BLKFLSBUF), which would
disturb a file system mounted from it: it drops only the pages that it reads.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.units import MIB

CHUNK_BYTES = 2 * MIB
MAX_BYTES = 512 * MIB
"""Maximum bytes read from the device."""


def buffered_bytes_per_second(
    device: Path, size_bytes: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> float:
    """Return the throughput of sequential reads with read-ahead by the kernel.

    Reads start in the middle of the device, and end after `seconds`, after MAX_BYTES or at the end
    of the device. Raise DiskslaError if it cannot be read or is smaller than 4 MiB.
    """
    start = size_bytes // 2 // CHUNK_BYTES * CHUNK_BYTES
    max_chunks = min(MAX_BYTES, size_bytes - start) // CHUNK_BYTES
    buffer = bytearray(CHUNK_BYTES)
    try:
        with device.open("rb", buffering=0) as file:
            descriptor, whole = file.fileno(), (start, max_chunks * CHUNK_BYTES)
            os.posix_fadvise(descriptor, *whole, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(descriptor, *whole, os.POSIX_FADV_SEQUENTIAL)
            started_s, chunks = clock(), 0
            while not chunks or (chunks < max_chunks and clock() < started_s + seconds):
                at = start + chunks * CHUNK_BYTES
                read = os.preadv(descriptor, [buffer], at)
                if read < CHUNK_BYTES:
                    raise DiskslaError(
                        f"{device} ends at {at + read} bytes; expected at least 4 MiB"
                    )
                os.posix_fadvise(descriptor, at, CHUNK_BYTES, os.POSIX_FADV_DONTNEED)
                chunks += 1
            elapsed_s = clock() - started_s
            os.posix_fadvise(descriptor, *whole, os.POSIX_FADV_DONTNEED)
    except OSError as error:
        raise DiskslaError(f"cannot read {device}: {error.strerror}") from error
    return chunks * CHUNK_BYTES / elapsed_s
