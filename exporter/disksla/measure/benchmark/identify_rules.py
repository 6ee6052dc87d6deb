"""Rules that recognise the medium of a disk by its latencies.

On a rotating disk a random read waits for a seek and half a rotation (at least 2 ms, at 15000
rpm). Its latency scatters, grows with the distance between requests, and is many times that of a
sequential read. An SSD shows none of that. A limiter shows none of it either: its latencies are
almost constant. Throughput does not distinguish media.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from disksla.base.histogram import quantile_s
from disksla.measure.benchmark.identify_evidence import (
    HALF_ROTATION_S,
    HIT_S,
    Evidence,
    LatencyShape,
    RequestStats,
    count,
    scatter_ratio,
    shape_of,
    slower_than,
)

Medium = Literal[
    "rotating", "rotating_with_cache", "ssd", "nvme", "network", "memory", "unknown"
]  # fmt: skip

TITLES: dict[Medium, str] = {
    "rotating": "rotating disk",
    "rotating_with_cache": "rotating disk with a cache",
    "ssd": "SSD",
    "nvme": "local SSD on PCIe, such as NVMe",
    "network": "disk behind a network",
    "memory": "memory: a cache, or a medium as fast as one",
    "unknown": "unknown medium",
}

SLOWEST_SEEK_S = 0.03
"""Median latency that no intact rotating disk exceeds, even at 4200 rpm over its whole width."""
MEMORY_S = 0.00003
"""Latency below which no flash memory answers."""
ROUND_TRIP_S = 0.00025
"""Latency below which a local SSD answers, and above which network storage does."""

_FLAT_RATIO = 0.1
_SCATTERED_RATIO = 0.25
_SMALL_PART_SHARE = 0.08
_SEQUENTIAL_RATIO = 1 / 3
_SAME_RATIO = 0.6
_DISTANCE_S = 0.001
_DISTANCE_RATIO = 1.15
_ONE_ARM_RATIO = 3.5
_PARALLEL_RATIO = 6.0
NO_GAIN_RATIO = 1.2
WAITS_RATIO = 2.0
_WINDOW_WAIT_S = 0.02
_WINDOW_WAIT_RATIO = 10.0
_SATA_BYTES_PER_SECOND = 600e6
_SLOW_FOR_FLASH_BYTES_PER_SECOND = 150e6


class Signs(NamedTuple):
    """What the evidence shows; None where it is not conclusive."""

    typical_s: float
    lower_quartile_s: float
    hit_share: float
    scatter_ratio: float | None
    slow: bool
    """Whether it is as slow as a rotating disk, or slower."""
    distance_matters: bool | None
    """Whether latency grows with the distance between requests."""
    sequential_faster: bool | None
    """Whether sequential reads are much faster than random ones."""
    reads_ahead: bool
    depth_gain_ratio: float | None
    """IOPS of a deep queue over those at queue depth 1."""
    long_waits: bool
    """Whether a few requests wait so long that they make up most of the time."""
    deep_long_waits: bool
    """Whether some requests of a deep queue wait for a limiter's window, while most do not."""
    some_seek: bool
    """Whether a part of the requests, too small to decide, looks like seeks."""
    stream_bytes_per_second: float | None

    @property
    def flat(self) -> bool:
        """Whether slow requests have almost constant latency, as behind a limiter.

        A limiter of the rate does not allow more IOPS to a deep queue.
        """
        scatter = self.scatter_ratio
        constant = self.slow and scatter is not None and scatter < _FLAT_RATIO
        return constant and not self.gains

    @property
    def scattered(self) -> bool:
        """Whether latencies vary as widely as those of a rotating disk."""
        return self.scatter_ratio is not None and self.scatter_ratio >= _SCATTERED_RATIO

    @property
    def parallel(self) -> bool:
        """Whether a deep queue has more IOPS than one disk arm could do."""
        return self.depth_gain_ratio is not None and self.depth_gain_ratio >= _PARALLEL_RATIO

    @property
    def gains(self) -> bool:
        """Whether a deep queue has more IOPS than queue depth 1."""
        return self.depth_gain_ratio is not None and self.depth_gain_ratio >= NO_GAIN_RATIO

    @property
    def no_depth_gain(self) -> bool:
        """Whether a deep queue has no more IOPS than queue depth 1, although no head seeks."""
        is_known = self.depth_gain_ratio is not None and not self.gains
        return is_known and not self.seeks and self.typical_s >= MEMORY_S

    @property
    def seeks(self) -> bool:
        """Whether latency depends on the position of a request."""
        if not self.slow or self.flat:
            return False
        evenly = self.scatter_ratio is not None and not self.scattered
        one_arm = self.depth_gain_ratio is None or self.depth_gain_ratio < _ONE_ARM_RATIO
        return self.distance_matters is True or (
            self.sequential_faster is True and one_arm and not evenly
        )

    @property
    def limited(self) -> bool:
        """Whether some of the numbers are those of a limiter and not of the medium."""
        return any(
            (self.flat, self.no_depth_gain, self.windowed, self.deep_windowed, self.slow_stream)
        )

    @property
    def windowed(self) -> bool:
        """Whether a few requests wait, as behind a limiter that counts requests per window.

        If a deep queue has more IOPS, these are pauses of the disk itself.
        """
        pauses = self.some_seek or (self.depth_gain_ratio is not None and not self.no_depth_gain)
        return self.long_waits and not self.slow and not pauses

    @property
    def deep_windowed(self) -> bool:
        """Whether a deep queue waits for the windows of a limiter."""
        return self.deep_long_waits and not self.slow and self.typical_s >= MEMORY_S

    @property
    def slow_stream(self) -> bool:
        """Whether sequential reads of an SSD are slower than it could do."""
        stream = self.stream_bytes_per_second
        local = MEMORY_S <= self.typical_s < ROUND_TRIP_S
        return local and stream is not None and stream < _SLOW_FOR_FLASH_BYTES_PER_SECOND


class Rule(NamedTuple):
    """The medium, and a sentence that explains it, if a condition is true."""

    medium: Medium
    applies: Callable[[Signs], bool]
    conclusion: str


RULES = (
    Rule(
        "unknown",
        lambda signs: signs.flat,
        "Latencies of a rotating disk would scatter by a third or more. Almost constant latency"
        " is that of a limiter, which hides the medium.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.typical_s > SLOWEST_SEEK_S,
        "No rotating disk takes that long: the disk is overloaded or throttled, which hides its"
        " medium.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.slow and signs.distance_matters is True,
        "Latency grows with the distance between requests, as on a rotating disk.",
    ),
    Rule(
        "network",
        lambda signs: signs.slow and signs.parallel,
        "A single disk arm cannot do that: requests are spread over many disks, behind a network"
        " or in an array. Single requests are slow enough that those disks may rotate.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.seeks,
        "Latency depends on the position of a request, as on a rotating disk.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.slow and signs.no_depth_gain and signs.sequential_faster is False,
        "Neither position nor queue depth matters: a limiter sets the rate and hides the medium.",
    ),
    Rule(
        "network",
        lambda signs: (
            signs.slow and signs.sequential_faster is False and signs.distance_matters is False
        ),
        "Position does not matter, so no head seeks; but a local SSD is not that slow. The disk"
        " is behind a network.",
    ),
    Rule(
        "rotating",
        lambda signs: signs.slow and signs.sequential_faster is None and signs.scattered,
        "Latency is as high and scatters as much as on a rotating disk. The other measurements"
        " that would rule out a slow network are missing, so this is likely, not certain.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.slow,
        "Latency is as high as on a rotating disk, but the evidence does not show whether"
        " position matters.",
    ),
    Rule(
        "unknown",
        lambda signs: signs.some_seek,
        "Some requests are as slow and scatter as much as on a rotating disk: a cache hides the"
        " medium, or the disk was busy.",
    ),
    Rule(
        "memory",
        lambda signs: signs.typical_s < MEMORY_S,
        "Flash is slower: the requests were served from the memory of this machine, of its host"
        " or of the disk. Blocks that were never written are also read without the medium.",
    ),
    Rule(
        "network",
        lambda signs: signs.lower_quartile_s >= ROUND_TRIP_S,
        "Position does not matter, but a local SSD would be faster: the disk is behind a network.",
    ),
    Rule(
        "nvme",
        lambda signs: (signs.stream_bytes_per_second or 0.0) > _SATA_BYTES_PER_SECOND,
        "Random reads are faster than any rotating disk, and sequential reads are faster than"
        " SATA (600 MB/s).",
    ),
    Rule("ssd", lambda _: True, "Random reads are faster than on any rotating disk."),
)
"""The first rule that applies decides."""


def signs_of(evidence: Evidence, random: RequestStats) -> Signs:
    """Return what the measurements show of the medium."""
    shape, deep = shape_of(random), evidence.deep
    distance_matters = None
    if evidence.near is not None:
        near_s = shape_of(evidence.near).typical_s
        distance_matters = shape.typical_s >= max(near_s + _DISTANCE_S, near_s * _DISTANCE_RATIO)
    deep_long_waits = False
    if deep is not None and deep.bins:
        median_s, p99_s = quantile_s(deep.bins, 0.5), quantile_s(deep.bins, 0.99)
        deep_long_waits = p99_s >= max(_WINDOW_WAIT_S, _WINDOW_WAIT_RATIO * median_s)
    streams = (each.iops * each.request_bytes for each in sequential_reads(evidence))
    return Signs(
        shape.typical_s,
        shape.lower_quartile_s,
        shape.hit_share,
        shape.scatter_ratio,
        slow=shape.typical_s >= HALF_ROTATION_S,
        distance_matters=distance_matters,
        sequential_faster=_sequential_faster(evidence, min(shape.typical_s, random.mean_s)),
        reads_ahead=any(reads.mean_s < HALF_ROTATION_S for reads in sequential_reads(evidence)),
        depth_gain_ratio=None if deep is None else deep.iops / random.iops,
        long_waits=random.mean_s >= WAITS_RATIO * shape.typical_s,
        deep_long_waits=deep_long_waits,
        some_seek=_some_seek(random, shape),
        stream_bytes_per_second=max((*streams, evidence.buffered_bytes_per_second or 0.0)) or None,
    )


def _sequential_faster(evidence: Evidence, random_s: float) -> bool | None:
    """Compare sequential with random reads.

    Large sequential requests that are faster count as well. If they are not, the reason may be
    their size.
    """
    if any(reads.mean_s <= _SEQUENTIAL_RATIO * random_s for reads in sequential_reads(evidence)):
        return True
    reads = evidence.sequential
    return False if reads is not None and reads.mean_s >= _SAME_RATIO * random_s else None


def sequential_reads(evidence: Evidence) -> tuple[RequestStats, ...]:
    """Return the sequential measurements that exist."""
    both = (evidence.sequential, evidence.streamed)
    return tuple(requests for requests in both if requests is not None)


def _some_seek(random: RequestStats, shape: LatencyShape) -> bool:
    slow = slower_than(random.bins, HALF_ROTATION_S)
    if shape.typical_s >= HIT_S or count(slow) < max(1, _SMALL_PART_SHARE * count(random.bins)):
        return False
    return quantile_s(slow, 0.5) <= SLOWEST_SEEK_S and scatter_ratio(slow) >= _SCATTERED_RATIO
