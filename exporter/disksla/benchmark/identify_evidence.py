"""What was measured of a disk to find out its medium, and how the latencies are distributed."""

import bisect
from typing import NamedTuple

import msgspec

from disksla.fio import LatencyBin, quantile_s

HIT_S = 0.0005
"""A platter does not answer in less, but by luck; a cache on it does."""
HALF_TURN_S = 0.002
"""No platter brings a random place under its head sooner in the mean: that is 15000 rpm."""

_QUARTILES_PER_DEVIATION = 1.35
"""Width of the middle half of a normal distribution."""
_LEAST_PART_SHARE = 0.2
"""A smaller part of the requests does not stand for the medium."""


class RequestStats(msgspec.Struct, frozen=True, kw_only=True):
    """How requests of one kind were answered."""

    request_bytes: int
    iops: float
    """Above zero, as the mean is."""
    mean_s: float
    queue_depth: int = 1
    requests: int | None = None
    """How many there were; None where that is not known."""
    least_s: float | None = None
    deviation_s: float | None = None
    bins: tuple[LatencyBin, ...] = ()
    """By growing latency; none where only means are known."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a disk; reads, unless said otherwise. None for what was not."""

    cached_bytes_per_second: float | None = None
    """The same few bytes again and again, out of the memory of this machine."""
    buffered_bytes_per_second: float | None = None
    """On and on from one place, with the kernel reading ahead."""
    random: RequestStats | None = None
    """One at a time, anywhere on the disk."""
    near: RequestStats | None = None
    """The same, but all within a small part of the disk."""
    sequential: RequestStats | None = None
    """As large as the random ones, one at a time and one after the other."""
    streamed: RequestStats | None = None
    """Large ones, one at a time and one after the other."""
    deep: RequestStats | None = None
    """As the random ones, many at a time."""
    written: RequestStats | None = None
    """Sequential writes, one at a time."""


class LatencyShape(NamedTuple):
    """How latencies are distributed."""

    middle_s: float
    """The median, of all or, where a cache answers some, of those it does not; else the mean."""
    scatter_ratio: float | None
    """Width of the middle half over the median; None where only a mean is known."""
    quick_s: float
    """What a quarter of all are quicker than; else the mean."""
    hit_share: float = 0.0
    """Share that was quicker than a platter."""


def shape_of(requests: RequestStats) -> LatencyShape:
    """Give the distribution: from bins, where there are any, or from mean and deviation."""
    if not requests.bins:
        mean_s, deviation_s = requests.mean_s, requests.deviation_s
        scatter = None if deviation_s is None else _QUARTILES_PER_DEVIATION * deviation_s / mean_s
        hit = requests.least_s is not None and requests.least_s < HIT_S
        return LatencyShape(mean_s, scatter, mean_s, 1 / (requests.requests or 1) if hit else 0.0)
    everything = requests.bins
    rest = slower_than(everything, HIT_S)
    rest_share = count(rest) / count(everything)
    missed = rest_share >= _LEAST_PART_SHARE and quantile_s(rest, 0.5) >= HALF_TURN_S
    body = rest if missed else everything
    return LatencyShape(
        quantile_s(body, 0.5), scatter_ratio(body), quantile_s(everything, 0.25), 1 - rest_share
    )


def slower_than(bins: tuple[LatencyBin, ...], least_s: float) -> tuple[LatencyBin, ...]:
    """Give the bins of requests that took at least so long."""
    return bins[bisect.bisect_left(bins, least_s, key=lambda one: one.seconds) :]


def scatter_ratio(bins: tuple[LatencyBin, ...]) -> float:
    """Give the width of the middle half over the median."""
    low_s, middle_s, high_s = (quantile_s(bins, share) for share in (0.25, 0.5, 0.75))
    return (high_s - low_s) / middle_s if middle_s else 0.0


def count(bins: tuple[LatencyBin, ...]) -> int:
    """Give how many requests there are."""
    return sum(one.requests for one in bins)
