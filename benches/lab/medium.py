"""The medium behind the limiter: a number of requests at a time, each with a latency."""

import heapq
import math
import random
import sys
from collections import deque

from lab.limiter import Request
from lab.model import Service


class Medium:
    """Requests in service. Time is an argument; the random generator has a fixed seed."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.stalled_until_s = 0.0
        self._random = random.Random(1)
        self._waiting: deque[Request] = deque()
        self._ends: list[tuple[float, Request]] = []

    @property
    def inflight(self) -> int:
        """Requests in service or waiting for a slot."""
        return len(self._ends) + len(self._waiting)

    def submit(self, request: Request, now_s: float) -> None:
        """Serve a request as soon as a slot is free."""
        if self.service.slots is None or len(self._ends) < self.service.slots:
            heapq.heappush(self._ends, (now_s + self._random_s(self.service.latency), request))
        else:
            self._waiting.append(request)

    def flush_s(self) -> float:
        """Return the latency of a flush of the write cache."""
        return self._random_s(self.service.flush)

    def complete(self, now_s: float, most: int = sys.maxsize) -> list[Request]:
        """Return requests whose latency has passed, the earliest first."""
        completed: list[Request] = []
        if now_s < self.stalled_until_s:
            return completed
        while len(completed) < most and self._ends and self._ends[0][0] <= now_s:
            ended_s, request = heapq.heappop(self._ends)
            completed.append(request)
            if self._waiting:
                self.submit(self._waiting.popleft(), max(ended_s, self.stalled_until_s))
        return completed

    def next_s(self) -> float | None:
        """Return the time of the next completion; None if nothing is in service."""
        return max(self._ends[0][0], self.stalled_until_s) if self._ends else None

    def _random_s(self, mean_s: float) -> float:
        spread = self.service.spread
        if not mean_s or not spread:
            return mean_s
        return self._random.lognormvariate(math.log(mean_s) - spread**2 / 2, spread)
