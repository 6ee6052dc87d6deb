"""The fio jobs of `disksla identify`, their maximum cost, and their results."""

from collections.abc import Iterator

from disksla.benchmark.identify_evidence import RequestStats
from disksla.fio import FioJob, FioResult, Pattern
from disksla.units import GIB, KIB, MIB

MAX_BYTES_PER_SECOND = 384 * MIB
"""Maximum rate of a measurement. It is well above what is slow for an SSD; at 4 KiB it is 98,000
IOPS, well above what queue depth 1 can do. The buffered reads are faster where that matters."""
QUEUE_DEPTH = 16
NEAR_PARTS = 64
"""`near` reads one part of so many of the disk."""
MIN_NEAR_BYTES = GIB
"""Less would fit into the cache of the disk."""
MIN_PARTS = 16
"""On a disk with fewer such parts, `random` is not much farther apart, and `near` is omitted."""

_KINDS: tuple[tuple[str, Pattern, int, int], ...] = (
    ("random", "randread", 4 * KIB, 1),
    ("near", "randread", 4 * KIB, 1),
    ("sequential", "read", 4 * KIB, 1),
    ("streamed", "read", 256 * KIB, 1),
    ("deep", "randread", 4 * KIB, QUEUE_DEPTH),
)


def identify_jobs(target: str, size_bytes: int, runtime_s: float) -> Iterator[FioJob]:
    """Yield the jobs; each has the name of the field of Evidence that it measures."""
    near_bytes = max(size_bytes // NEAR_PARTS, MIN_NEAR_BYTES)
    for name, pattern, request_bytes, queue_depth in _KINDS:
        if name == "near" and near_bytes * MIN_PARTS > size_bytes:
            continue
        yield FioJob(
            name=name,
            target=target,
            pattern=pattern,
            request_bytes=request_bytes,
            runtime_s=runtime_s,
            queue_depth=queue_depth,
            rate_iops=MAX_BYTES_PER_SECOND / request_bytes,
            span_bytes=near_bytes if name == "near" else size_bytes,
        )


def request_stats(job: FioJob, result: FioResult) -> RequestStats | None:
    """Return rate and latency of the reads of a job; None if none completed."""
    read = result.read
    if not read.iops or not read.mean_latency_s:
        return None
    return RequestStats(
        request_bytes=job.request_bytes,
        iops=read.iops,
        mean_s=read.mean_latency_s,
        queue_depth=job.queue_depth,
        requests=read.requests,
        min_s=read.bins[0].seconds if read.bins else None,
        bins=read.bins,
    )
