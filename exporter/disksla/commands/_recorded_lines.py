"""The lines of a recording, compressed or not, of which each fits in memory."""

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader

from disksla.errors import DiskslaError
from disksla.units import MIB

LONGEST_LINE_BYTES = 8 * MIB
"""A tick of 10,000 disks that are all new has 6 MB; others have kilobytes."""
_GZIP = b"\x1f\x8b"


def recorded_lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines of a recording.

    Raise DiskslaError, with the number of the line, if it is longer than any of a recording or
    the file is compressed and damaged. Raise OSError if the file cannot be read.
    """
    is_compressed = file.peek(len(_GZIP)).startswith(_GZIP)
    number = 1
    try:
        with gzip.open(file) if is_compressed else contextlib.nullcontext(file) as lines:
            while line := lines.readline(LONGEST_LINE_BYTES + 1):
                if len(line) > LONGEST_LINE_BYTES:
                    most = f"at most {LONGEST_LINE_BYTES // MIB} MiB"
                    raise DiskslaError(f"line {number}: found a longer line; expected {most}")
                yield line
                number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DiskslaError(
            f"line {number}: cannot uncompress it: {error}; the file is damaged or incomplete"
        ) from None
