"""What really happened, window by window: written by the disk itself."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from lab.limiter import Limiter, Request
from lab.model import LimitKind

WINDOW_S = 0.1
_JUST_BEFORE_S = 1e-6


class Window(msgspec.Struct, frozen=True):
    """100 ms of one disk, by CLOCK_MONOTONIC."""

    start_s: float
    end_s: float
    reads: int
    writes: int
    read_bytes: int
    written_bytes: int
    """Completed."""
    inflight: int
    """Requests in the disk at the close of the window."""
    held: int
    """Those of them that the limiter held."""
    wait_s: float
    """Seconds that requests were held in this window, added up over requests."""
    holding_s: float
    """Time for which at least one request was held."""
    rate: Literal["base", "burst"] | None = None
    """At which rate the limiter held, at the close."""
    limit: LimitKind | None = None
    """Which meter held."""
    stalled: bool = False
    credits: dict[str, float] = {}
    """Levels at the close, by resource, in I/Os, bytes or seconds of service."""


class Ledger:
    """Adds up what happens, and writes a window whenever one closes."""

    def __init__(self, begun_s: float, write: Callable[[Window], None]) -> None:
        self._begun_s = begun_s
        self._write = write
        self._number = 0
        self._seen_s = begun_s
        self._clear()

    def _clear(self) -> None:
        self._operations = [0, 0]
        self._bytes = [0, 0]
        self._wait_s = 0.0
        self._holding_s = 0.0

    def completed(self, requests: Iterable[Request]) -> None:
        """Add requests that are answered."""
        for request in requests:
            self._operations[request.is_write] += 1
            self._bytes[request.is_write] += request.size_bytes

    @property
    def next_s(self) -> float:
        """When the present window closes."""
        return self._begun_s + (self._number + 1) * WINDOW_S

    def until(self, now_s: float, limiter: Limiter, inside: int, stalled_until_s: float) -> None:
        """Let time pass in which nothing changed; `inside` counts requests under service."""
        while self.next_s <= now_s:
            end_s = self.next_s
            self._hold(end_s, limiter.held)
            binding = limiter.binding()
            limiter.settle(end_s - _JUST_BEFORE_S)
            self._write(
                Window(
                    self._begun_s + self._number * WINDOW_S,
                    end_s,
                    reads=self._operations[0],
                    writes=self._operations[1],
                    read_bytes=self._bytes[0],
                    written_bytes=self._bytes[1],
                    inflight=inside + limiter.held,
                    held=limiter.held,
                    wait_s=self._wait_s,
                    holding_s=self._holding_s,
                    rate=None if binding is None else binding.rate,
                    limit=None if binding is None else binding.limit,
                    stalled=stalled_until_s >= end_s,
                    credits=limiter.credits(),
                )
            )
            self._number += 1
            self._clear()
        self._hold(now_s, limiter.held)

    def _hold(self, now_s: float, held: int) -> None:
        passed_s = now_s - self._seen_s
        self._seen_s = now_s
        self._wait_s += held * passed_s
        self._holding_s += passed_s if held else 0.0
