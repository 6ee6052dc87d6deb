"""The medium of a simulated disk: how long it serves a request, and a flush."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Literal

from population.events import Events, Request

Law = Literal["constant", "gamma", "lognormal", "bimodal", "hdd", "drifting"]
HDD_SECONDS = (0.004, 0.012)
"""Seek and half a rotation, uniform between these."""
DRIFT_STEP_S = 0.05


@dataclass(frozen=True)
class ServiceTime:
    """Distribution of a time; `mean_s` is its mean."""

    law: Law
    mean_s: float
    spread: float = 0.0
    """Standard deviation as a share of the mean; of the logarithm, for a drift."""
    slow_share: float = 0.0
    """Bimodal: share of requests that take `slow_factor` times as long as the others."""
    slow_factor: float = 1.0
    drift_s: float = 1.0
    """Drifting: time after which a slow disk has forgotten that it is slow (AR(1))."""

    def sampler(self, chance: Random, events: Events) -> Callable[[], float]:
        """Return a function that draws a time."""
        mean_s = self.mean_s
        match self.law:
            case "constant":
                return lambda: mean_s
            case "gamma":
                shape = self.spread**-2
                return lambda: chance.gammavariate(shape, mean_s / shape)
            case "lognormal":
                sigma = math.sqrt(math.log1p(self.spread**2))
                mu = math.log(mean_s) - sigma**2 / 2
                return lambda: chance.lognormvariate(mu, sigma)
            case "bimodal":
                fast_s = mean_s / (1 + self.slow_share * (self.slow_factor - 1))
                slow_s = fast_s * self.slow_factor
                slow = self.slow_share
                return lambda: (
                    (slow_s if chance.random() < slow else fast_s) * chance.uniform(0.9, 1.1)
                )
            case "hdd":
                least_s, most_s = HDD_SECONDS
                return lambda: chance.uniform(least_s, most_s)
            case "drifting":
                return _Drift(self, chance, events).draw


class _Drift:
    """A service time whose logarithm is AR(1), besides a gamma spread of 0.15."""

    def __init__(self, time: ServiceTime, chance: Random, events: Events) -> None:
        self._time = time
        self._chance = chance
        self._events = events
        self._level = chance.gauss(0, time.spread)
        self._until_s = 0.0
        self._kept = math.exp(-DRIFT_STEP_S / time.drift_s)
        self._step = time.spread * math.sqrt(1 - self._kept**2)

    def draw(self) -> float:
        while self._until_s <= self._events.now_s:
            self._level = self._level * self._kept + self._chance.gauss(0, self._step)
            self._until_s += DRIFT_STEP_S
        own = self._chance.gammavariate(44.4, 1 / 44.4)
        return self._time.mean_s * own * math.exp(self._level - self._time.spread**2 / 2)


@dataclass(frozen=True)
class MediumSpec:
    """Parameters of a medium."""

    service: ServiceTime
    flush: ServiceTime
    servers: int = 1
    byte_s: float = 0.0
    """Service time that each byte adds."""
    stalls: tuple[tuple[float, float], ...] = ()
    """Start and end of each time in which nothing is served."""


class Medium:
    """Serves as many requests at a time as it has servers, and one flush beside them.

    Flushes that arrive while one runs are merged into the next, as the kernel does.
    """

    def __init__(
        self,
        spec: MediumSpec,
        events: Events,
        chance: Random,
        complete: Callable[[float, list[Request]], None],
    ) -> None:
        """`complete` is called with the end of a service, and the requests that it served."""
        self._events = events
        self._byte_s = spec.byte_s
        self._stalls = spec.stalls
        self._service_s = spec.service.sampler(chance, events)
        self._flush_s = spec.flush.sampler(chance, events)
        self._free_s = [0.0] * spec.servers
        self._complete = complete
        self._flushes: list[Request] = []
        self._is_flushing = False

    def serve(self, request: Request) -> None:
        """Serve a read or write."""
        start_s = max(self._events.now_s, heappop(self._free_s))
        end_s = start_s + self._service_s() + request.bytes * self._byte_s
        for stall_start_s, stall_end_s in self._stalls:
            if start_s < stall_end_s and end_s > stall_start_s:
                end_s += stall_end_s - max(stall_start_s, start_s)
        heappush(self._free_s, end_s)
        self._complete(end_s, [request])

    def flush(self, request: Request) -> None:
        """Serve a flush."""
        self._flushes.append(request)
        if not self._is_flushing:
            self._start_flush()

    def _start_flush(self) -> None:
        self._is_flushing = True
        merged, self._flushes = self._flushes, []
        end_s = self._events.now_s + self._flush_s()
        self._complete(end_s, merged)
        self._events.at(end_s, self._end_flush)

    def _end_flush(self, _: None) -> None:
        self._is_flushing = False
        if self._flushes:
            self._start_flush()
