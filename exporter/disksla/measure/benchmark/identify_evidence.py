"""Measurements from which the medium of a disk is recognised, and the shape of their latencies."""

import bisect
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from disksla.base.histogram import LatencyBin, quantile_s
from disksla.base.units import GIB, KIB, MIB
from disksla.measure.fio import FioJob, FioResult, Pattern

HIT_S = 0.0005
"""Latency below which a rotating disk answers only by chance, but its cache does."""
HALF_ROTATION_S = 0.002
"""Half a rotation at 15000 rpm: the least mean latency of random reads of a rotating disk."""

_MIN_PART_SHARE = 0.2
"""Share of the requests below which a part does not show the medium."""


class RequestStats(msgspec.Struct, frozen=True, kw_only=True):
    """Rate and latency of requests of one kind."""

    request_bytes: int
    iops: float
    """Above zero, like the mean."""
    mean_s: float
    queue_depth: int = 1
    requests: int | None = None
    """Number of requests; None if unknown."""
    bins: tuple[LatencyBin, ...] = ()
    """By increasing latency; empty if only the mean is known."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of a disk; reads unless noted. None if not measured."""

    buffered_bytes_per_second: float | None = None
    """Sequential reads through the page cache, with read-ahead by the kernel."""
    random: RequestStats | None = None
    """At queue depth 1, over the whole disk."""
    near: RequestStats | None = None
    """Like `random`, but within a small part of the disk."""
    sequential: RequestStats | None = None
    """Sequential, as large as the random ones, at queue depth 1."""
    streamed: RequestStats | None = None
    """Sequential, large, at queue depth 1."""
    deep: RequestStats | None = None
    """Like `random`, in a deep queue."""
    written: RequestStats | None = None
    """Sequential writes at queue depth 1."""


class LatencyShape(NamedTuple):
    """Distribution of latencies."""

    typical_s: float
    """The median (without requests served from a cache, if others seek); the mean without bins."""
    scatter_ratio: float | None
    """Interquartile range over the median; None if only the mean is known."""
    lower_quartile_s: float
    """The lower quartile; the mean without bins."""
    hit_share: float = 0.0
    """Share of requests faster than a rotating disk."""


def shape_of(requests: RequestStats) -> LatencyShape:
    """Return the distribution, from bins if there are any, or from the mean."""
    all_bins = requests.bins
    if not all_bins:
        return LatencyShape(requests.mean_s, None, requests.mean_s)
    rest = slower_than(all_bins, HIT_S)
    rest_share = count(rest) / count(all_bins)
    missed = rest_share >= _MIN_PART_SHARE and quantile_s(rest, 0.5) >= HALF_ROTATION_S
    body = rest if missed else all_bins
    return LatencyShape(
        quantile_s(body, 0.5), scatter_ratio(body), quantile_s(all_bins, 0.25), 1 - rest_share
    )


def slower_than(bins: tuple[LatencyBin, ...], min_s: float) -> tuple[LatencyBin, ...]:
    """Return the bins of requests that took `min_s` or longer."""
    return bins[bisect.bisect_left(bins, min_s, key=lambda one: one.seconds) :]


def scatter_ratio(bins: tuple[LatencyBin, ...]) -> float:
    """Return the interquartile range over the median."""
    low_s, median_s, high_s = (quantile_s(bins, share) for share in (0.25, 0.5, 0.75))
    return (high_s - low_s) / median_s if median_s else 0.0


def count(bins: tuple[LatencyBin, ...]) -> int:
    """Return the number of requests."""
    return sum(one.requests for one in bins)


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
        bins=read.bins,
    )
