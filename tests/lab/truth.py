"""The truth, window by window, as the log of the disk itself."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from lab.limiter import Limiter, Request
from lab.model import LimitKind

WINDOW_S = 0.1
_JUST_BEFORE_S = 1e-6


class Window(msgspec.Struct, frozen=True, rename={"waiting": "held", "throttled_s": "holding_s"}):
    """100 ms of one disk, by CLOCK_MONOTONIC."""

    start_s: float
    end_s: float
    reads: int
    """Completed, as `writes` and the bytes."""
    writes: int
    read_bytes: int
    written_bytes: int
    inflight: int
    """Requests in the disk at the end of the window."""
    waiting: int
    """Requests of them that waited for the limiter."""
    wait_s: float
    """Total time that requests waited for the limiter, in I/O-seconds."""
    throttled_s: float
    """Time in which at least one request waited for the limiter."""
    rate: Literal["base", "burst"] | None = None
    """Rate at which the limiter made requests wait, at the end."""
    limit: LimitKind | None = None
    """Limit that requests waited for."""
    stalled: bool = False
    credits: dict[str, float] = {}
    """Levels at the end, by resource, in I/Os, bytes or seconds of service."""


class TruthLog:
    """Adds up completions and waiting, and writes each window at its end."""

    def __init__(self, begun_s: float, write: Callable[[Window], None]) -> None:
        self._begun_s = begun_s
        self._write = write
        self._number = 0
        self._logged_until_s = begun_s
        self._clear()

    def _clear(self) -> None:
        self._operations = [0, 0]
        self._bytes = [0, 0]
        self._wait_s = 0.0
        self._throttled_s = 0.0

    def add_completed(self, requests: Iterable[Request]) -> None:
        """Add completed requests."""
        for request in requests:
            self._operations[request.is_write] += 1
            self._bytes[request.is_write] += request.size_bytes

    @property
    def next_s(self) -> float:
        """End of the present window."""
        return self._begun_s + (self._number + 1) * WINDOW_S

    def advance(
        self, now_s: float, limiter: Limiter, in_service: int, stalled_until_s: float
    ) -> None:
        """Log time in which nothing changed; `in_service` counts the requests of the medium."""
        while self.next_s <= now_s:
            end_s = self.next_s
            self._add_waiting(end_s, limiter.waiting)
            binding = limiter.binding()
            limiter.fill(end_s - _JUST_BEFORE_S)
            self._write(
                Window(
                    self._begun_s + self._number * WINDOW_S,
                    end_s,
                    reads=self._operations[0],
                    writes=self._operations[1],
                    read_bytes=self._bytes[0],
                    written_bytes=self._bytes[1],
                    inflight=in_service + limiter.waiting,
                    waiting=limiter.waiting,
                    wait_s=self._wait_s,
                    throttled_s=self._throttled_s,
                    rate=None if binding is None else binding.rate,
                    limit=None if binding is None else binding.limit,
                    stalled=stalled_until_s >= end_s,
                    credits=limiter.credits(),
                )
            )
            self._number += 1
            self._clear()
        self._add_waiting(now_s, limiter.waiting)

    def _add_waiting(self, now_s: float, waiting: int) -> None:
        passed_s = now_s - self._logged_until_s
        self._logged_until_s = now_s
        self._wait_s += waiting * passed_s
        self._throttled_s += passed_s if waiting else 0.0
