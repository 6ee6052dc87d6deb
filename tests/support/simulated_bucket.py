"""A simulated limiter with burst credits, whose level is known at every millisecond.

It looks at its queue once a millisecond and lets through, first in first out, what its bucket
allows; a request may overdraw. With windows, everything is counted and filled once per window of
100 ms, from a phase that the sampler does not know; without, all the time, as in QEMU
(https://gitlab.com/qemu-project/qemu, util/throttle.c). What is let through completes a fixed
time later. A sampler sees completions, what is in flight, and whether requests are held.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from disksla.credits.bounds import ThrottledAt
from disksla.limits.limits import Bucket

WINDOW_MS = 100
_MOST_WAITING = 500
_NOTHING = 1e-9


class Load(NamedTuple):
    """What is asked for, for a while."""

    duration_ms: int
    base_share: float = 0.001
    """What one request uses, in seconds of the base rate."""
    depth: int = 0
    """So many requests are always waiting or in service."""
    batch: int = 0
    """So many requests arrive at once ..."""
    every_ms: int = 100
    """... this often."""


class Seen(NamedTuple):
    """An interval as a sampler sees it, and the level at its end."""

    seconds: float
    use: float
    requests: int
    inflight: int
    held: ThrottledAt | None
    level: float


class Gate:
    """What may be let through, by kind of bucket."""

    def __init__(self, bucket: Bucket, level: float, phase_ms: int | None) -> None:
        """Take a bucket and its level; `phase_ms` is where windows begin, None without any."""
        self.bucket = bucket
        self.level = level
        self.phase_ms = phase_ms
        window_s = WINDOW_MS / 1000
        self.base = bucket.base_per_second * window_s
        self.peak = bucket.peak_per_second * window_s
        self.fill = bucket.fill_per_second * window_s
        self.plain = self.deepest = self.base
        self.pace = self.peak
        self.is_bursting = False
        if phase_ms is None:
            self.deepest = bucket.base_per_second * bucket.baseline_depth_s

    def pass_a_millisecond(self, now_ms: int) -> None:
        """Let time pass up to `now_ms`."""
        if self.phase_ms is None:
            share = 1 / WINDOW_MS
            self._fill(self.fill * share)
            self.plain = min(self.deepest, self.plain + self.base * share)
            self.pace = min(self.peak, self.pace + self.peak * share)
        elif now_ms % WINDOW_MS == self.phase_ms:
            self._fill(self.fill)
            self.plain = self.base if self.is_bursting else min(self.base, self.plain + self.base)
            self.pace = min(self.peak, self.pace + self.peak)
            self.is_bursting = False

    def _fill(self, amount: float) -> None:
        self.level = min(self.bucket.capacity, self.level + amount)

    def closed(self) -> ThrottledAt | None:
        """Tell what a request would be held at; None if it may go."""
        if self.pace <= _NOTHING:
            return "burst"
        if self.bucket.drain == "use":
            return "base" if self.level <= _NOTHING else None
        if self.bucket.drain == "excess":
            return "base" if self.plain + self.level <= _NOTHING else None
        if self.plain > _NOTHING or self.is_bursting or self.level >= self.peak - self.base:
            return None
        return "base"

    def let_through(self, use: float) -> None:
        """Charge a request."""
        self.pace -= use
        if self.bucket.drain == "use":
            self.level -= use
            return
        self.plain -= use
        if self.bucket.drain == "excess":
            above = min(max(0.0, -self.plain), self.level)
            self.plain += above
            self.level -= above
            return
        if self.plain < -_NOTHING and not self.is_bursting:
            if self.level < self.peak - self.base:
                return  # overdrawn, and paid back in the next window
            self.is_bursting = True
            self.level -= self.peak - self.base


def sampled(
    gate: Gate, loads: Sequence[Load], service_ms: int, intervals_ms: Iterable[int]
) -> Iterator[Seen]:
    """Give what a sampler sees of loads, one after another, in intervals of these lengths."""
    waiting: deque[float] = deque()
    serving: deque[tuple[int, float]] = deque()
    lengths = iter(intervals_ms)
    now_ms = begun_ms = 0
    due_ms = next(lengths)
    used = 0.0
    requests = 0
    for load in loads:
        use = load.base_share * gate.bucket.base_per_second
        for elapsed_ms in range(load.duration_ms):
            if load.batch and elapsed_ms % load.every_ms == 0 and len(waiting) < _MOST_WAITING:
                waiting.extend([use] * load.batch)
            waiting.extend([use] * (load.depth - len(waiting) - len(serving)))
            now_ms += 1
            gate.pass_a_millisecond(now_ms)
            while waiting and gate.closed() is None:
                gate.let_through(waiting[0])
                serving.append((now_ms + service_ms, waiting.popleft()))
            while serving and serving[0][0] <= now_ms:
                used += serving.popleft()[1]
                requests += 1
            if now_ms == due_ms:
                yield Seen(
                    (now_ms - begun_ms) / 1000,
                    used,
                    requests,
                    len(waiting) + len(serving),
                    gate.closed() if waiting else None,
                    min(max(gate.level, 0.0), gate.bucket.capacity),
                )
                begun_ms, used, requests = now_ms, 0.0, 0
                due_ms += next(lengths)
