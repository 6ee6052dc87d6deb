"""The limiter: admits requests while all buckets that they use have tokens.

Requests of one disk are admitted first in, first out. Disks that share a limiter take turns,
request by request, as in a throttle group of QEMU (block/throttle-groups.c): a disk with few
requests does not wait until the queue of another is empty. Time is an argument.
"""

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from lab.model import LimitKind, Meter
from support.token_bucket import ROUNDING_S, TokenBucket

DEPTH_S = 0.1
"""Depth of a continuous bucket without credits, and of the one that limits a burst."""


class Bucket(TokenBucket):
    """Seconds of service that may be spent, up to a time."""

    __slots__ = ("_filled_until_s", "window_s")

    def __init__(self, rate: float, depth_s: float, level_s: float, window_s: float) -> None:
        super().__init__(rate, depth_s, level_s)
        self.window_s = window_s
        self._filled_until_s = 0.0

    def fill_until(self, now_s: float) -> None:
        """Add the tokens up to a time."""
        if self.window_s:
            now_s = math.floor(now_s / self.window_s + ROUNDING_S) * self.window_s
        if now_s > self._filled_until_s:
            self.fill(now_s - self._filled_until_s)
            self._filled_until_s = now_s

    def is_ready(self) -> bool:
        """Return whether tokens may be spent."""
        return self.tokens > ROUNDING_S

    def ready_s(self) -> float:
        """Return the time at which tokens may be spent if none are spent before."""
        if self.is_ready():
            return self._filled_until_s
        missing_s = (ROUNDING_S - self.tokens) / self.per_second
        if self.window_s:
            missing_s = (math.floor(missing_s / self.window_s + ROUNDING_S) + 1) * self.window_s
        return self._filled_until_s + missing_s


class MeterBuckets:
    """The token buckets of one meter.

    `base` limits use at the base rate. Credits with a fill rate are a `reserve`, which pays for
    use above the base rate; otherwise the base bucket is as deep as the credits. `peak` limits the
    rate of a burst.
    """

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.per_second = meter.unit_per_second
        depth_s = meter.window or DEPTH_S
        credits_s = (meter.credits or 0.0) / self.per_second
        level_s = credits_s if meter.level is None else meter.level / self.per_second
        self.reserve: Bucket | None = None
        if meter.fill is not None:
            fill = meter.fill / self.per_second
            self.reserve = Bucket(fill, credits_s, level_s, meter.window)
        if self.reserve is not None or meter.credits is None:
            self.base = Bucket(1.0, depth_s, depth_s, meter.window)
        else:
            self.base = Bucket(1.0, max(credits_s, depth_s), level_s, meter.window)
        self.peak: Bucket | None = None
        if meter.peak is not None:
            peak = meter.peak / self.per_second
            self.peak = Bucket(peak, peak * depth_s, peak * depth_s, meter.window)

    @property
    def credits(self) -> float:
        """Level of the credits, in the unit of the limit."""
        return (self.reserve or self.base).tokens * self.per_second

    def fill(self, now_s: float) -> None:
        for bucket in (self.base, self.reserve, self.peak):
            if bucket is not None:
                bucket.fill_until(now_s)

    def is_ready(self) -> bool:
        has_tokens = self.base.is_ready() or (self.reserve is not None and self.reserve.is_ready())
        return has_tokens and (self.peak is None or self.peak.is_ready())

    def spend(self, cost_s: float) -> None:
        self.base.tokens -= cost_s
        if self.peak is not None:
            self.peak.tokens -= cost_s
        if self.reserve is not None and self.base.tokens < 0:
            paid_s = min(-self.base.tokens, max(self.reserve.tokens, 0.0))
            self.base.tokens += paid_s
            self.reserve.tokens -= paid_s

    def ready(self) -> tuple[float, Literal["base", "burst"]]:
        """Return the time at which tokens may be spent, and the rate that limits it."""
        ready_s = self.base.ready_s()
        if self.reserve is not None:
            ready_s = min(ready_s, self.reserve.ready_s())
        if self.peak is not None and self.peak.ready_s() > ready_s:
            return self.peak.ready_s(), "burst"
        return ready_s, "base"


RESOURCES: dict[LimitKind, str] = {
    "iops": "iops",
    "bandwidth": "bytes",
    "service": "service_seconds",
}
"""Resource of the credits of each kind of limit, as in the window records of disksla."""


class Request(NamedTuple):
    """One read or write that is not completed."""

    unique: int
    is_write: bool
    offset: int
    size_bytes: int
    disk: int = 0
    """Number of its disk, from 0, at a limiter that several disks share."""


class Binding(NamedTuple):
    """The limit that the first request in a queue waits for."""

    limit: LimitKind
    rate: Literal["base", "burst"]


class Limiter:
    """Requests that wait, and the meters that they wait for.

    Reads and writes of a disk have separate queues if no meter is shared by them; otherwise they
    wait in one queue. `_turns` has the queues of reads and of writes, each with the disk first
    whose turn is next.
    """

    def __init__(self, meters: Sequence[Meter], begun_s: float, disks: int = 1) -> None:
        self._begun_s = begun_s
        self._meters = [MeterBuckets(meter) for meter in meters]
        read = Request(0, is_write=False, offset=0, size_bytes=1)
        is_shared = any(
            _cost_s(meter, read) and _cost_s(meter, read._replace(is_write=True))
            for meter in self._meters
        )
        self._queues: list[list[deque[Request]]] = [
            [deque() for _ in range(1 if is_shared else 2)] for _ in range(disks)
        ]
        self._turns = [deque(queues) for queues in zip(*self._queues, strict=True)]
        self.fill(begun_s)

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return sum(self.waiting_of(disk) for disk in range(len(self._queues)))

    def waiting_of(self, disk: int) -> int:
        """Return the number of requests of a disk that wait."""
        return sum(len(queue) for queue in self._queues[disk])

    def enqueue(self, request: Request) -> None:
        """Queue a request; `admit` returns it when it is admitted."""
        self._queues[request.disk][-1 if request.is_write else 0].append(request)

    def move_waiting_to(self, successor: "Limiter") -> "Limiter":
        """Queue all requests that wait in another limiter, and return that limiter."""
        for queues in self._queues:
            for queue in queues:
                for request in queue:
                    successor.enqueue(request)
        return successor

    def fill(self, now_s: float) -> None:
        """Add tokens up to a time."""
        for meter in self._meters:
            meter.fill(now_s - self._begun_s)

    def admit(self, now_s: float) -> list[Request]:
        """Return the requests that are admitted now."""
        self.fill(now_s)
        admitted = []
        for turns in self._turns:
            while (request := _first(turns)) is not None and self._admits(request):
                while not turns[0]:
                    turns.rotate(-1)
                admitted.append(turns[0].popleft())
                turns.rotate(-1)
        return admitted

    def _admits(self, request: Request) -> bool:
        meters = self._used_by(request)
        if not all(meter.is_ready() for meter in meters):
            return False
        for meter in meters:
            meter.spend(_cost_s(meter, request))
        return True

    def next_s(self) -> float | None:
        """Return the time at which a request may be admitted; None if none waits."""
        times = [
            max((meter.ready()[0] for meter in self._used_by(request)), default=0.0)
            for turns in self._turns
            if (request := _first(turns)) is not None
        ]
        return self._begun_s + min(times) if times else None

    def binding(self) -> Binding | None:
        """Return the limit that the request waits for which is next; None if none waits."""
        for turns in self._turns:
            request = _first(turns)
            if request is not None:
                meter = max(self._used_by(request), key=lambda meter: meter.ready()[0])
                return Binding(meter.meter.limit, meter.ready()[1])
        return None

    def _used_by(self, request: Request) -> list[MeterBuckets]:
        return [meter for meter in self._meters if _cost_s(meter, request)]

    def credits(self) -> dict[str, float]:
        """Return the level of each meter with credits, by resource, in the unit of the limit."""
        return {
            RESOURCES[meter.meter.limit]: meter.credits
            for meter in self._meters
            if meter.meter.credits is not None
        }


def _first(queues: Iterable[deque[Request]]) -> Request | None:
    """Return the first request of the first queue that has one."""
    return next((queue[0] for queue in queues if queue), None)


def _cost_s(meter: MeterBuckets, request: Request) -> float:
    return meter.meter.cost_s(is_write=request.is_write, size_bytes=request.size_bytes)
