"""The limiter of a simulated disk: token buckets, filled once per window or continuously.

With windows it is that of the documents of Yandex Cloud: 300 IOPS are 30 requests per 100 ms, and
the others wait for the next window. The leaky bucket is QEMU's (util/throttle.c): tokens for a
tenth of a second, filled continuously. Flushes pass without a token.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from population.events import Events, Request

LimitName = Literal["iops", "bandwidth"]
LEAKY_DEPTH_S = 0.1
_ROUNDING_S = 1e-9
"""A bucket with fewer tokens than it gets in this time is empty."""
_TIMER_LATENESS_S = 50e-6
"""Mean lateness of the host's timers."""


@dataclass(frozen=True)
class Burst:
    """A higher rate, while there are credits."""

    per_second: float
    credits: float
    """Capacity of the credit bucket, in requests or bytes."""
    initial_ratio: float


@dataclass(frozen=True)
class Limit:
    """Parameters of a limiter."""

    name: LimitName
    per_second: float
    """Requests or bytes."""
    window_s: float | None
    """None for a leaky bucket."""
    phase_s: float = 0.0
    """Time from the start of the simulation to the start of a window."""
    burst: Burst | None = None


class Bucket:
    """Tokens. A request is admitted while there are some, even if it overdraws."""

    __slots__ = ("capacity", "least", "per_second", "tokens")

    def __init__(self, per_second: float, capacity: float, initial: float) -> None:
        self.per_second = per_second
        self.capacity = capacity
        self.tokens = initial
        self.least = per_second * _ROUNDING_S

    def fill(self, seconds: float) -> None:
        """Add the tokens of this time."""
        self.tokens = min(self.capacity, self.tokens + self.per_second * seconds)


class Limiter:
    """Requests that wait for tokens, first in, first out."""

    def __init__(
        self, limit: Limit, events: Events, chance: Random, admit: Callable[[Request], None]
    ) -> None:
        self._limit = limit
        self._events = events
        self._chance = chance
        self._admit = admit
        self.buckets = _buckets(limit)
        self._queue: deque[Request] = deque()
        self._filled_s = 0.0
        self._has_timer = False
        self._waited_s = 0.0
        """Time in which at least one request waited, up to the last time when none did."""
        self._waiting_since_s = 0.0
        self.charged = 0
        """Requests or bytes that were admitted."""
        if limit.window_s is not None:
            events.at(limit.phase_s, self._next_window, 1)

    def waited_s(self) -> float:
        """Return the seconds since the start in which at least one request waited."""
        now_s = self._events.now_s
        return self._waited_s + (now_s - self._waiting_since_s if self._queue else 0.0)

    def credits_left(self, completed: int) -> tuple[float, float] | None:
        """Return what is in the credit bucket, without and with what is still being served.

        `completed` is of the same unit. None without a burst.
        """
        if self._limit.burst is None:
            return None
        credits_left = self.buckets[0].tokens
        return credits_left, credits_left + self.charged - completed

    def send(self, request: Request) -> None:
        """Admit the request, or make it wait."""
        if not self._queue:
            self._waiting_since_s = self._events.now_s
        self._queue.append(request)
        if len(self._queue) == 1:
            self._admit_waiting()

    def _admit_waiting(self) -> None:
        queue, of_bytes = self._queue, self._limit.name == "bandwidth"
        if not queue:
            return
        if self._limit.window_s is None:
            self._fill(self._events.now_s - self._filled_s)
            self._filled_s = self._events.now_s
        while queue and all(bucket.tokens > bucket.least for bucket in self.buckets):
            request = queue.popleft()
            price = request.bytes if of_bytes else 1
            self.charged += price
            for bucket in self.buckets:
                bucket.tokens -= price
            self._admit(request)
        if not queue:
            self._waited_s += self._events.now_s - self._waiting_since_s
        elif self._limit.window_s is None and not self._has_timer:
            self._has_timer = True
            empty_s = max((b.least - b.tokens) / b.per_second for b in self.buckets)
            self._events.at(self._events.now_s + empty_s + self._lateness_s(), self._on_timer)

    def _on_timer(self, _: None) -> None:
        self._has_timer = False
        self._admit_waiting()

    def _next_window(self, number: int) -> None:
        """Fill the buckets; windows follow a clock, so a late one does not delay the next."""
        window_s = self._limit.window_s or 0.0
        self._fill(window_s)
        self._admit_waiting()
        due_s = self._limit.phase_s + number * window_s
        self._events.at(due_s + self._lateness_s(), self._next_window, number + 1)

    def _fill(self, seconds: float) -> None:
        for bucket in self.buckets:
            bucket.fill(seconds)

    def _lateness_s(self) -> float:
        return _ROUNDING_S + self._chance.expovariate(1 / _TIMER_LATENESS_S)


def _buckets(limit: Limit) -> list[Bucket]:
    """Return the buckets: of credits and of the burst rate, or only of the rate."""
    at_once_s = limit.window_s or LEAKY_DEPTH_S
    burst = limit.burst
    if burst is None:
        depth = limit.per_second * at_once_s
        return [Bucket(limit.per_second, depth, depth)]
    depth = burst.per_second * at_once_s
    credit_bucket = Bucket(limit.per_second, burst.credits, burst.credits * burst.initial_ratio)
    return [credit_bucket, Bucket(burst.per_second, depth, depth)]
