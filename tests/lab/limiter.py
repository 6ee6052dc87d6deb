"""The limiter: admits requests first in, first out, while all buckets that they use have tokens.

Time is an argument.
"""

from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lab.bucket import MeterBuckets
from lab.model import LimitKind, Meter

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


class Binding(NamedTuple):
    """The limit that the first request in a queue waits for."""

    limit: LimitKind
    rate: Literal["base", "burst"]


class Limiter:
    """Requests that wait, and the meters that they wait for.

    Reads and writes have separate queues if no meter is shared by them; otherwise they wait in one
    queue.
    """

    def __init__(self, meters: Sequence[Meter], begun_s: float) -> None:
        self._begun_s = begun_s
        self._meters = [MeterBuckets(meter) for meter in meters]
        read = Request(0, is_write=False, offset=0, size_bytes=1)
        is_shared = any(
            _cost_s(meter, read) and _cost_s(meter, read._replace(is_write=True))
            for meter in self._meters
        )
        self._queues: list[deque[Request]] = [deque()] if is_shared else [deque(), deque()]
        self.fill(begun_s)

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return sum(len(queue) for queue in self._queues)

    def enqueue(self, request: Request) -> None:
        """Queue a request; `admit` returns it when it is admitted."""
        self._queues[-1 if request.is_write else 0].append(request)

    def move_waiting_to(self, successor: "Limiter") -> "Limiter":
        """Queue all requests that wait in another limiter, and return that limiter."""
        for queue in self._queues:
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
        for queue in self._queues:
            while queue and self._admits(queue[0]):
                admitted.append(queue.popleft())
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
            max((meter.ready()[0] for meter in self._used_by(queue[0])), default=0.0)
            for queue in self._queues
            if queue
        ]
        return self._begun_s + min(times) if times else None

    def binding(self) -> Binding | None:
        """Return the limit that the first request waits for; None if none waits."""
        for queue in self._queues:
            if queue:
                meter = max(self._used_by(queue[0]), key=lambda meter: meter.ready()[0])
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


def _cost_s(meter: MeterBuckets, request: Request) -> float:
    return meter.meter.cost_s(is_write=request.is_write, size_bytes=request.size_bytes)
