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


class Level:
    """How many requests are somewhere: for how long there were some, and the sum of their times.

    Times are those of the events.
    """

    __slots__ = ("_changed_s", "_request_s", "_since_s", "_some_s", "count")

    def __init__(self) -> None:
        self.count = 0
        self._some_s = 0.0
        self._since_s = 0.0
        self._request_s = 0.0
        self._changed_s = 0.0

    def change(self, by: int, now_s: float) -> None:
        """Add so many requests."""
        if not self.count:
            self._since_s = now_s
        self._request_s += self.count * (now_s - self._changed_s)
        self._changed_s = now_s
        self.count += by
        if not self.count:
            self._some_s += now_s - self._since_s

    def some_s(self, now_s: float) -> float:
        """Return the seconds until now in which there was at least one."""
        return self._some_s + (now_s - self._since_s if self.count else 0.0)

    def request_s(self, now_s: float) -> float:
        """Return the sum over all requests of the seconds until now that they were there."""
        return self._request_s + self.count * (now_s - self._changed_s)


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
