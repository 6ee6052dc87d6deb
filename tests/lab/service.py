"""The disk behind the limiter: so many requests at once, each for so long."""

import heapq
import math
import random
import sys
from collections import deque

from lab.limiter import Request
from lab.model import Service


class Server:
    """Requests under service. Time is an argument; chance has a seed."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.stalled_until_s = 0.0
        self._random = random.Random(1)
        self._waiting: deque[Request] = deque()
        self._ends: list[tuple[float, Request]] = []

    @property
    def inside(self) -> int:
        """Requests under service or waiting for it."""
        return len(self._ends) + len(self._waiting)

    def take(self, request: Request, now_s: float) -> None:
        """Serve a request as soon as there is room."""
        if self.service.slots is None or len(self._ends) < self.service.slots:
            heapq.heappush(self._ends, (now_s + self._latency_s(), request))
        else:
            self._waiting.append(request)

    def finish(self, now_s: float, most: int = sys.maxsize) -> list[Request]:
        """Give requests whose time is over, the earliest first."""
        finished: list[Request] = []
        if now_s < self.stalled_until_s:
            return finished
        while len(finished) < most and self._ends and self._ends[0][0] <= now_s:
            ended_s, request = heapq.heappop(self._ends)
            finished.append(request)
            if self._waiting:
                self.take(self._waiting.popleft(), max(ended_s, self.stalled_until_s))
        return finished

    def next_s(self) -> float | None:
        """Give the time at which a request will be done; None if there is none."""
        return max(self._ends[0][0], self.stalled_until_s) if self._ends else None

    def _latency_s(self) -> float:
        mean_s, spread = self.service.latency, self.service.spread
        if not mean_s or not spread:
            return mean_s
        return self._random.lognormvariate(math.log(mean_s) - spread**2 / 2, spread)
