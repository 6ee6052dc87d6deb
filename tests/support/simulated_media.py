"""Simulated media: requests take the time that a model of the medium computes."""

import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple, Protocol

from disksla.base.histogram import LatencyBin
from disksla.base.units import KIB
from disksla.measure.benchmark.identify_evidence import Evidence, RequestStats

REQUESTS = 400
NEAR_SHARE = 1 / 64
SMALL_BYTES = 4 * KIB
LARGE_BYTES = 256 * KIB
DEPTH = 16


class Medium(Protocol):
    """A model of a medium."""

    def random_s(self, chance: Random, span_share: float) -> float:
        """Return the latency of one read at a random offset in a part of the disk."""
        ...

    def sequential_s(self, chance: Random, request_bytes: int) -> float:
        """Return the latency of a read that continues the one before."""
        ...

    def deep_iops(self, one_deep_iops: float) -> float:
        """Return the IOPS of random reads with DEPTH in flight."""
        ...


class Rotating(NamedTuple):
    """A rotating disk: seek, half a rotation on average, and a cache that reads ahead."""

    rpm: int
    end_to_end_s: float
    bytes_per_second: float = 150e6
    queueing_gain: float = 1.5
    hit_share: float = 0.0
    reads_ahead: bool = True

    def random_s(self, chance: Random, span_share: float) -> float:
        if chance.random() < self.hit_share:
            return 0.0001
        distance = abs(chance.random() - chance.random()) * span_share
        seek_s = 0.0008 + (self.end_to_end_s - 0.0008) * math.sqrt(distance)
        return seek_s + chance.random() * 60 / self.rpm + SMALL_BYTES / self.bytes_per_second

    def sequential_s(self, chance: Random, request_bytes: int) -> float:
        transfer_s = request_bytes / self.bytes_per_second
        if self.reads_ahead:
            return transfer_s * (1 + 0.1 * chance.random())
        rotation_s = 60 / self.rpm
        return rotation_s * math.ceil(transfer_s / rotation_s)

    def deep_iops(self, one_deep_iops: float) -> float:
        return one_deep_iops * self.queueing_gain


class Placeless(NamedTuple):
    """A medium whose latency does not depend on the offset: solid state, or over a network."""

    median_s: float
    jitter_ratio: float
    bytes_per_second: float
    depth_gain: float = 12.0
    pause_share: float = 0.0
    pause_s: float = 0.003

    def random_s(self, chance: Random, span_share: float) -> float:  # noqa: ARG002 -- the offset does not matter
        if chance.random() < self.pause_share:
            return self.pause_s * (1 + chance.random())
        return self.median_s * chance.lognormvariate(0, self.jitter_ratio)

    def sequential_s(self, chance: Random, request_bytes: int) -> float:
        own_s = self.median_s * chance.lognormvariate(0, self.jitter_ratio)
        return max(own_s, request_bytes / self.bytes_per_second)

    def deep_iops(self, one_deep_iops: float) -> float:
        return one_deep_iops * self.depth_gain


LatencyOf = Callable[[], float]


def measure(
    medium: Medium,
    seed: int,
    throttled: Callable[[LatencyOf], LatencyOf] = lambda latency_s: latency_s,
    most_iops: float = math.inf,
) -> Evidence:
    """Measure a medium as `disksla sweep --identify` does; `throttled` adds a limiter."""
    chance = Random(seed)
    random = serial_stats(throttled(lambda: medium.random_s(chance, 1.0)))
    return Evidence(
        random=random,
        near=serial_stats(throttled(lambda: medium.random_s(chance, NEAR_SHARE))),
        sequential=serial_stats(throttled(lambda: medium.sequential_s(chance, SMALL_BYTES))),
        streamed=serial_stats(
            throttled(lambda: medium.sequential_s(chance, LARGE_BYTES)), LARGE_BYTES
        ),
        deep=deep_stats(random, min(most_iops, medium.deep_iops(random.iops))),
    )


def paced(medium: Medium, seed: int, iops: float) -> Evidence:
    """Measure behind a limiter that admits one request every 1/iops seconds."""
    chance = Random(seed)

    def throttled(latency_s: LatencyOf) -> LatencyOf:
        return lambda: max(latency_s(), (1 + 0.01 * chance.random()) / iops)

    return measure(medium, seed, throttled, iops)


def windowed(medium: Medium, seed: int, iops: float, window_s: float = 0.1) -> Evidence:
    """Measure behind a limiter that admits iops * window_s requests in each window."""
    budget = round(iops * window_s)

    def throttled(latency_s: LatencyOf) -> LatencyOf:
        admitted, elapsed_s = 0, 0.0

        def one() -> float:
            nonlocal admitted, elapsed_s
            took_s = latency_s()
            if admitted == budget:
                took_s += max(0.0, window_s - elapsed_s)
                admitted, elapsed_s = 0, 0.0
            admitted += 1
            elapsed_s += took_s if admitted > 1 else 0.0
            return took_s

        return one

    return measure(medium, seed, throttled, iops)


def serial_stats(latency_s: Callable[[], float], request_bytes: int = SMALL_BYTES) -> RequestStats:
    """Return the statistics of requests that are sent one at a time."""
    latencies = [latency_s() for _ in range(REQUESTS)]
    mean_s = sum(latencies) / len(latencies)
    return RequestStats(
        request_bytes=request_bytes,
        iops=1 / mean_s,
        mean_s=mean_s,
        requests=len(latencies),
        bins=bins_of(latencies),
    )


def bins_of(latencies: list[float]) -> tuple[LatencyBin, ...]:
    """Return a histogram with the resolution of fio: 64 bins per doubling."""
    counted = Counter(2 ** (round(64 * math.log2(latency)) / 64) for latency in latencies)
    return tuple(LatencyBin(seconds, counted[seconds]) for seconds in sorted(counted))


def deep_stats(random: RequestStats, iops: float) -> RequestStats:
    """Return the statistics of requests with DEPTH in flight."""
    return RequestStats(
        request_bytes=random.request_bytes, iops=iops, mean_s=DEPTH / iops, queue_depth=DEPTH
    )
