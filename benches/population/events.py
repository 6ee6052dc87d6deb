"""Simulated time: events in their order, and requests that are sent at them."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

READ, WRITE, FLUSH = 0, 1, 2
"""Kinds of requests. A flush has no data."""


class Events:
    """A queue of calls, each at its time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._queue: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._order = count()

    def at(self, at_s: float, act: Callable[[Any], None], argument: object = None) -> None:
        """Call `act` with the argument at that time."""
        heappush(self._queue, (at_s, next(self._order), act, argument))

    def run_until(self, end_s: float) -> None:
        """Make all calls up to that time."""
        queue = self._queue
        while queue and queue[0][0] <= end_s:
            self.now_s, _, act, argument = heappop(queue)
            act(argument)


class Request:
    """One request that was sent to the disk; `done` is called when it completes."""

    __slots__ = ("bytes", "done", "kind", "sent_s")

    def __init__(
        self, kind: int, size_bytes: int, sent_s: float, done: Callable[[], None]
    ) -> None:
        self.kind = kind
        self.bytes = size_bytes
        self.sent_s = sent_s
        self.done = done
