"""The limiter of a simulated disk: token buckets, filled once per window or continuously.

With windows it is that of the documents of Yandex Cloud: 300 IOPS are 30 requests per 100 ms, and
the others wait for the next window
(https://yandex.cloud/en/docs/compute/concepts/storage-read-write). The leaky bucket is that of
QEMU (https://gitlab.com/qemu-project/qemu, util/throttle.c): tokens for a tenth of a second,
filled continuously. Flushes pass without a token.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from population.events import READ, WRITE, Events, Level, Request
from support.token_bucket import ROUNDING_S, TokenBucket

LimitName = Literal["iops", "bandwidth"]
ThrottledAt = Literal["base", "burst"]
WINDOW_S = 0.1
LEAKY_DEPTH_S = 0.1
_TIMER_LATENESS_S = 50e-6
"""Mean lateness of the host's timers."""


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """Token bucket: a request is admitted while there are tokens, even if it overdraws.

    Tokens are I/Os, bytes or seconds of service, as are the prices. Without a peak all tokens may
    be spent at once; without a capacity it is the fill of one window.
    """

    per_second: float
    read: float = 0.0
    """Price of a read request."""
    write: float = 0.0
    read_byte: float = 0.0
    written_byte: float = 0.0
    peak_per_second: float | None = None
    capacity: float | None = None
    initial: float | None = None
    """Tokens at the start; None is full."""


@dataclass(frozen=True, kw_only=True)
class Limiter:
    """Makes requests wait, first in, first out, while any bucket that they use is empty."""

    buckets: tuple[Bucket, ...]
    window_s: float | None = WINDOW_S
    """Buckets are filled once per window; None: continuously, a leaky bucket."""
    phase_s: float | None = None
    """Time from the start of the simulation to the start of a window; None is one window."""
    apart: bool = False
    """Reads and writes wait in separate queues."""
    changes: tuple[tuple[float, tuple[Bucket, ...]], ...] = ()
    """Times at which other buckets replace the present ones, one for one; tokens are kept."""
    lateness_s: float = 0.0
    """Mean lateness of the timers; exponential."""


@dataclass(frozen=True)
class Burst:
    """A higher rate, while there are credits."""

    per_second: float
    credits: float
    """Capacity of the credit bucket, in requests or bytes."""
    initial_ratio: float


@dataclass(frozen=True)
class Limit:
    """One limit, as the population has them."""

    name: LimitName
    per_second: float
    """Requests or bytes."""
    window_s: float | None
    """None for a leaky bucket."""
    phase_s: float = 0.0
    """Time from the start of the simulation to the start of a window."""
    burst: Burst | None = None

    def limiter(self) -> Limiter:
        """Return the limiter that has it."""
        prices = {"read": 1.0, "write": 1.0}
        if self.name == "bandwidth":
            prices = {"read_byte": 1.0, "written_byte": 1.0}
        burst: dict[str, float] = {}
        if self.burst is not None:
            burst["peak_per_second"] = self.burst.per_second
            burst["capacity"] = self.burst.credits
            burst["initial"] = self.burst.credits * self.burst.initial_ratio
        return Limiter(
            buckets=(Bucket(per_second=self.per_second, **prices, **burst),),
            window_s=self.window_s,
            phase_s=self.phase_s,
            lateness_s=_TIMER_LATENESS_S,
        )


class BucketState:
    """The tokens of one bucket, and of its peak."""

    __slots__ = ("base", "bucket", "byte", "op", "peak")

    def __init__(self, bucket: Bucket, at_once_s: float) -> None:
        """Fill it; `at_once_s` is the time whose tokens may be spent at once."""
        self.base = TokenBucket(bucket.per_second, math.inf)
        self.peak: TokenBucket | None = None
        self.change(bucket, at_once_s)
        if bucket.initial is not None:
            self.base.tokens = min(bucket.initial, self.base.depth)

    def change(self, bucket: Bucket, at_once_s: float) -> None:
        """Become another bucket, with the same tokens."""
        self.bucket = bucket
        self.op = (bucket.read, bucket.write)
        self.byte = (bucket.read_byte, bucket.written_byte)
        depth = bucket.per_second * at_once_s if bucket.capacity is None else bucket.capacity
        self.base = TokenBucket(bucket.per_second, depth, min(self.base.tokens, depth))
        before = math.inf if self.peak is None else self.peak.tokens
        self.peak = None
        if bucket.peak_per_second is not None:
            depth = bucket.peak_per_second * at_once_s
            self.peak = TokenBucket(bucket.peak_per_second, depth, min(before, depth))

    def fill(self, seconds: float) -> None:
        """Add the tokens of this time."""
        self.base.fill(seconds)
        if self.peak is not None:
            self.peak.fill(seconds)

    def spend(self, price: float) -> None:
        """Take the tokens of a request."""
        self.base.tokens -= price
        if self.peak is not None:
            self.peak.tokens -= price

    def wait_s(self) -> float:
        """Return the time until there are tokens; at most zero if there are some."""
        at_base_s = self.base.wait_s()
        return at_base_s if self.peak is None else max(at_base_s, self.peak.wait_s())

    @property
    def is_at_base(self) -> bool:
        """Return whether a request waits for the rate, and not for the peak."""
        return self.peak is None or self.base.wait_s() >= 0


class _Queue(deque[Request]):
    """Requests that wait."""

    has_timer = False


class WaitingRequests:
    """Requests that wait for tokens, first in, first out."""

    def __init__(
        self, limiter: Limiter, events: Events, chance: Random, admit: Callable[[Request], None]
    ) -> None:
        self._limiter = limiter
        self._events = events
        self._chance = chance
        self._admit = admit
        self._at_once_s = limiter.window_s or LEAKY_DEPTH_S
        self.buckets = [BucketState(bucket, self._at_once_s) for bucket in limiter.buckets]
        self._queues = [_Queue() for _ in range(2 if limiter.apart else 1)]
        self.level = Level()
        """How many wait."""
        self._last: Request | None = None
        self._filled_s = self._phase_s = 0.0
        self._used = tuple(
            [state for state in self.buckets if state.op[kind] or state.byte[kind]]
            for kind in (READ, WRITE)
        )
        if limiter.window_s is not None:
            first_s = limiter.window_s + ROUNDING_S
            self._phase_s = first_s if limiter.phase_s is None else limiter.phase_s
            events.at(self._phase_s, self._next_window, 1)
        for at_s, buckets in limiter.changes:
            events.at(at_s, self._change, buckets)

    def send(self, request: Request) -> None:
        """Admit the request, or make it wait."""
        queue = self._queues[request.kind if self._limiter.apart else 0]
        self.level.change(1, self._events.now_s)
        queue.append(request)
        if len(queue) == 1:
            self._admit_waiting(queue)

    @property
    def is_leaky(self) -> bool:
        """Return whether it has no windows."""
        return self._limiter.window_s is None

    def fill_to_now(self) -> None:
        """Fill leaky buckets; those with windows are filled at each."""
        if self.is_leaky:
            self._fill(self._events.now_s - self._filled_s)
            self._filled_s = self._events.now_s

    def throttled_by(self) -> tuple[ThrottledAt, LimitName]:
        """Return what the next request waits for, or the last one waited for."""
        request = next((queue[0] for queue in self._queues if queue), self._last)
        assert request is not None
        kind = request.kind
        blocking = max(self._used[kind], key=BucketState.wait_s)
        of_bytes = blocking.byte[kind] * request.bytes > blocking.op[kind]
        return "base" if blocking.is_at_base else "burst", "bandwidth" if of_bytes else "iops"

    def _admit_waiting(self, queue: _Queue) -> None:
        if queue:
            self.fill_to_now()
        now_s = self._events.now_s
        while queue:
            request = queue[0]
            wait_s = max((state.wait_s() for state in self._used[request.kind]), default=-1.0)
            if wait_s >= 0:
                if self.is_leaky and not queue.has_timer:
                    queue.has_timer = True
                    self._events.at(now_s + wait_s + self._lateness_s(), self._on_timer, queue)
                return
            queue.popleft()
            kind, size = request.kind, request.bytes
            for state in self.buckets:
                state.spend(state.op[kind] + state.byte[kind] * size)
            self._last = request
            self._admit(request)
            self.level.change(-1, now_s)

    def _on_timer(self, queue: _Queue) -> None:
        queue.has_timer = False
        self._admit_waiting(queue)

    def _next_window(self, number: int) -> None:
        """Fill the buckets; windows follow a clock, so a late one does not delay the next."""
        window_s = self._limiter.window_s or 0.0
        self._fill(window_s)
        for queue in self._queues:
            self._admit_waiting(queue)
        due_s = self._phase_s + number * window_s
        self._events.at(due_s + self._lateness_s(), self._next_window, number + 1)

    def _change(self, buckets: tuple[Bucket, ...]) -> None:
        self.fill_to_now()
        for state, bucket in zip(self.buckets, buckets, strict=True):
            state.change(bucket, self._at_once_s)

    def _fill(self, seconds: float) -> None:
        for state in self.buckets:
            state.fill(seconds)

    def _lateness_s(self) -> float:
        if not self._limiter.lateness_s:
            return ROUNDING_S
        return ROUNDING_S + self._chance.expovariate(1 / self._limiter.lateness_s)
