"""What `disksla identify` measures: its jobs, what they cost at most, and what they come to."""

from collections.abc import Iterator

from disksla.benchmark.identify_evidence import RequestStats
from disksla.fio import FioJob, FioResult, Pattern
from disksla.units import GIB, KIB, MIB

MOST_BYTES_PER_SECOND = 384 * MIB
"""That a measurement may read: well above what is slow for solid state, and for 4 KiB 98 thousand
requests, well above what one at a time can do. The kernel reads faster where that matters."""
QUEUE_DEPTH = 16
NEAR_PARTS = 64
"""Places are near each other within such a part of the disk."""
LEAST_NEAR_BYTES = GIB
"""Less would fit into the cache of the disk."""
LEAST_PARTS = 16
"""On a disk that is not so many times as large, nothing is much farther."""

_KINDS: tuple[tuple[str, Pattern, int, int], ...] = (
    ("random", "randread", 4 * KIB, 1),
    ("near", "randread", 4 * KIB, 1),
    ("sequential", "read", 4 * KIB, 1),
    ("streamed", "read", 256 * KIB, 1),
    ("deep", "randread", 4 * KIB, QUEUE_DEPTH),
)


def identify_jobs(target: str, size_bytes: int, runtime_s: float) -> Iterator[FioJob]:
    """Give the measurements; each is named after the piece of evidence that it gives."""
    near_bytes = max(size_bytes // NEAR_PARTS, LEAST_NEAR_BYTES)
    for name, pattern, request_bytes, queue_depth in _KINDS:
        if name == "near" and near_bytes * LEAST_PARTS > size_bytes:
            continue
        yield FioJob(
            name=name,
            target=target,
            pattern=pattern,
            request_bytes=request_bytes,
            runtime_s=runtime_s,
            queue_depth=queue_depth,
            rate_iops=MOST_BYTES_PER_SECOND / request_bytes,
            span_bytes=near_bytes if name == "near" else size_bytes,
        )


def request_stats(job: FioJob, result: FioResult) -> RequestStats | None:
    """Give how the reads of a job were answered; None if none was."""
    read = result.read
    if not read.iops or not read.mean_latency_s:
        return None
    return RequestStats(
        request_bytes=job.request_bytes,
        iops=read.iops,
        mean_s=read.mean_latency_s,
        queue_depth=job.queue_depth,
        requests=read.requests,
        least_s=read.bins[0].seconds if read.bins else None,
        bins=read.bins,
    )
