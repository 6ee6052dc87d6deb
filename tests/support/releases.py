"""Releases of a disk, as the detector gets them."""

from disksla.verdict.interval import Interval


def release(
    reads: int = 30,
    read_ms: int | None = 0,
    inflight: int = 0,
    request_bytes: int = 4096,
    seconds: float = 0.1,
    flushes: int = 0,
) -> Interval:
    """Return a release of reads."""
    read_bytes = reads * request_bytes
    return Interval(1.0, seconds, reads, 0, read_bytes, 0, read_ms, 0, inflight, flushes)
