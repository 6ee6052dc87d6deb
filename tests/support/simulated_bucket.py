"""A simulated limiter with burst credits, whose level is known at every millisecond.

Once a millisecond it admits, first in first out, the requests that its bucket allows; a request
may overdraw. With windows, tokens are counted and filled once per window of 100 ms, from a phase
that is unknown to the sampler; without windows, continuously, as in QEMU
(https://gitlab.com/qemu-project/qemu, util/throttle.c). Admitted requests complete a fixed time
later. A sample has the completions, the requests in flight, and whether requests are throttled.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from disksla.promise.catalogue.limits import Bucket
from disksla.verdict.credits.bounds import ThrottledAt
from support.token_bucket import TokenBucket

WINDOW_MS = 100
_MAX_WAITING = 500
_EMPTY = 1e-9


class Load(NamedTuple):
    """Requests that arrive during a time."""

    duration_ms: int
    base_share: float = 0.001
    """Use of one request, in seconds of the baseline."""
    depth: int = 0
    """Requests that are always waiting or in service."""
    batch: int = 0
    """Requests that arrive together, every `every_ms`."""
    every_ms: int = 100


class Sample(NamedTuple):
    """An interval as sampled, and the true level at its end."""

    seconds: float
    use: float
    requests: int
    inflight: int
    throttled_at: ThrottledAt | None
    level: float


class BurstLimiter:
    """Admits requests, by kind of bucket."""

    def __init__(self, bucket: Bucket, level: float, phase_ms: int | None) -> None:
        """Set the bucket and its level; windows start at `phase_ms` (None: no windows)."""
        self.bucket = bucket
        self.phase_ms = phase_ms
        window_s = WINDOW_MS / 1000
        self.base = bucket.base_per_second * window_s
        """Of a window, as `burst`: what is left to the rate of a burst."""
        self.burst = bucket.peak_per_second * window_s - self.base
        depth = (
            self.base if phase_ms is not None else bucket.base_per_second * bucket.baseline_depth_s
        )
        self.credits = TokenBucket(bucket.fill_per_second, bucket.capacity, level)
        self.baseline = TokenBucket(bucket.base_per_second, depth, self.base)
        self.peak = TokenBucket(bucket.peak_per_second, self.base + self.burst)
        self.is_bursting = False

    @property
    def level(self) -> float:
        """Credits that are left."""
        return self.credits.tokens

    def advance_to(self, now_ms: int) -> None:
        """Fill the buckets for the millisecond that ends at `now_ms`."""
        if self.phase_ms is None:
            self._fill(0.001)
        elif now_ms % WINDOW_MS == self.phase_ms:
            self._fill(WINDOW_MS / 1000)
            if self.is_bursting:
                self.baseline.tokens = self.base
            self.is_bursting = False

    def _fill(self, seconds: float) -> None:
        for bucket in (self.credits, self.baseline, self.peak):
            bucket.fill(seconds)

    def throttled_at(self) -> ThrottledAt | None:
        """Return the rate at which the next request is throttled; None if it is admitted."""
        if self.peak.tokens <= _EMPTY:
            return "burst"
        if self.bucket.drain == "use":
            return "base" if self.level <= _EMPTY else None
        if self.bucket.drain == "excess":
            return "base" if self.baseline.tokens + self.level <= _EMPTY else None
        is_admitted = self.baseline.tokens > _EMPTY or self.is_bursting or self.level >= self.burst
        return None if is_admitted else "base"

    def admit(self, use: float) -> None:
        """Charge a request."""
        self.peak.tokens -= use
        if self.bucket.drain == "use":
            self.credits.tokens -= use
            return
        self.baseline.tokens -= use
        if self.bucket.drain == "excess":
            excess = min(max(0.0, -self.baseline.tokens), self.level)
            self.baseline.tokens += excess
            self.credits.tokens -= excess
        elif self.baseline.tokens < -_EMPTY and not self.is_bursting and self.level >= self.burst:
            self.is_bursting = True  # otherwise overdrawn: the next window starts with less
            self.credits.tokens -= self.burst


def sampled(
    limiter: BurstLimiter, loads: Sequence[Load], service_ms: int, intervals_ms: Iterable[int]
) -> Iterator[Sample]:
    """Yield the samples of loads, one load after another, in intervals of these lengths."""
    waiting: deque[float] = deque()
    serving: deque[tuple[int, float]] = deque()
    lengths = iter(intervals_ms)
    now_ms = start_ms = 0
    due_ms = next(lengths)
    used = 0.0
    requests = 0
    for load in loads:
        use = load.base_share * limiter.bucket.base_per_second
        for elapsed_ms in range(load.duration_ms):
            if load.batch and elapsed_ms % load.every_ms == 0 and len(waiting) < _MAX_WAITING:
                waiting.extend([use] * load.batch)
            waiting.extend([use] * (load.depth - len(waiting) - len(serving)))
            now_ms += 1
            limiter.advance_to(now_ms)
            while waiting and limiter.throttled_at() is None:
                limiter.admit(waiting[0])
                serving.append((now_ms + service_ms, waiting.popleft()))
            while serving and serving[0][0] <= now_ms:
                used += serving.popleft()[1]
                requests += 1
            if now_ms == due_ms:
                yield Sample(
                    (now_ms - start_ms) / 1000,
                    used,
                    requests,
                    len(waiting) + len(serving),
                    limiter.throttled_at() if waiting else None,
                    min(max(limiter.level, 0.0), limiter.bucket.capacity),
                )
                start_ms, used, requests = now_ms, 0.0, 0
                due_ms += next(lengths)
