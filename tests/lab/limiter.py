"""Who is let through when: requests in turn, each when every meter that it draws on has something.

Time is an argument.
"""

from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lab.bucket import Gate
from lab.model import LimitKind, Meter

RESOURCES: dict[LimitKind, str] = {
    "iops": "iops",
    "bandwidth": "bytes",
    "service": "service_seconds",
}
"""What the credits of a meter are called."""


class Request(NamedTuple):
    """One read or write that waits for its answer."""

    unique: int
    is_write: bool
    offset: int
    size_bytes: int


class Binding(NamedTuple):
    """What holds the request at the head of a queue."""

    limit: LimitKind
    rate: Literal["base", "burst"]


class Limiter:
    """Requests that wait for their turn, and the meters that they wait for.

    Directions queue apart where no meter is shared by them; else one request waits for the other.
    """

    def __init__(self, meters: Sequence[Meter], begun_s: float) -> None:
        self._begun_s = begun_s
        self._gates = [Gate(meter) for meter in meters]
        probe = Request(0, is_write=False, offset=0, size_bytes=1)
        shared = any(
            _cost_s(gate, probe) and _cost_s(gate, probe._replace(is_write=True))
            for gate in self._gates
        )
        self._queues: list[deque[Request]] = [deque()] if shared else [deque(), deque()]
        self.settle(begun_s)

    @property
    def held(self) -> int:
        """Requests that wait."""
        return sum(len(queue) for queue in self._queues)

    def take(self, request: Request) -> None:
        """Let a request wait; `release` says when it goes on."""
        self._queues[-1 if request.is_write else 0].append(request)

    def hand_over(self, successor: "Limiter") -> "Limiter":
        """Give all that wait to another, and give that."""
        for queue in self._queues:
            for request in queue:
                successor.take(request)
        return successor

    def settle(self, now_s: float) -> None:
        """Let time pass."""
        for gate in self._gates:
            gate.settle(now_s - self._begun_s)

    def release(self, now_s: float) -> list[Request]:
        """Give the requests that may go on now."""
        self.settle(now_s)
        released = []
        for queue in self._queues:
            while queue and self._admits(queue[0]):
                released.append(queue.popleft())
        return released

    def _admits(self, request: Request) -> bool:
        gates = self._drawn_on(request)
        if not all(gate.is_ready() for gate in gates):
            return False
        for gate in gates:
            gate.spend(_cost_s(gate, request))
        return True

    def next_s(self) -> float | None:
        """Give the time at which a request may go on; None if none waits."""
        times = [
            max((gate.ready()[0] for gate in self._drawn_on(queue[0])), default=0.0)
            for queue in self._queues
            if queue
        ]
        return self._begun_s + min(times) if times else None

    def binding(self) -> Binding | None:
        """Say what holds back the first that waits; None if none does."""
        for queue in self._queues:
            if queue:
                gate = max(self._drawn_on(queue[0]), key=lambda gate: gate.ready()[0])
                return Binding(gate.meter.limit, gate.ready()[1])
        return None

    def _drawn_on(self, request: Request) -> list[Gate]:
        return [gate for gate in self._gates if _cost_s(gate, request)]

    def credits(self) -> dict[str, float]:
        """Give the level of each meter that has credits, by resource, in its own unit."""
        return {
            RESOURCES[gate.meter.limit]: gate.credits
            for gate in self._gates
            if gate.meter.credits is not None
        }


def _cost_s(gate: Gate, request: Request) -> float:
    return gate.meter.cost_s(is_write=request.is_write, size_bytes=request.size_bytes)
