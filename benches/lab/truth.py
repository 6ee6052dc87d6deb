"""The truth, window by window, as the log of the disk itself."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from lab.limiter import Limiter, Request
from lab.model import MACHINE_LIMITS, LimitKind, MachineLimitKind

WINDOW_S = 0.1
MACHINE_TRUTH = "truth-machine.jsonl"
"""Log of the limiter that the disks of a scenario share."""
_JUST_BEFORE_S = 1e-6


class Window(msgspec.Struct, frozen=True, rename={"waiting": "held", "throttled_s": "holding_s"}):
    """100 ms of one disk, or of all that share a limiter, by CLOCK_MONOTONIC.

    The requests of a disk wait for its own limiter, then for that of the machine, if there is one.
    """

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
    """Requests of them that waited for a limiter."""
    wait_s: float
    """Total time that requests waited for a limiter, in I/O-seconds."""
    throttled_s: float
    """Time in which at least one request waited for a limiter."""
    rate: Literal["base", "burst"] | None = None
    """Rate at which the limiter made requests wait, at the end."""
    limit: LimitKind | MachineLimitKind | None = None
    """Limit that requests waited for, at the end: of the machine if any waited for that."""
    stalled: bool = False
    credits: dict[str, float] = {}
    """Levels at the end, by resource, in I/Os, bytes or seconds of service."""
    own_throttled_s: float = 0.0
    """Time in which at least one request waited for the limiter of the disk itself."""
    machine_throttled_s: float = 0.0
    """Time in which at least one request waited for the limiter of the machine."""


def truth_name(number: int) -> str:
    """Return the name of the log of one disk of a scenario."""
    return f"truth-{number}.jsonl"


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
        self._own_throttled_s = 0.0
        self._machine_throttled_s = 0.0

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
        self,
        now_s: float,
        limiter: Limiter,
        in_service: int,
        stalled_until_s: float,
        machine: Limiter | None = None,
        disk: int = 0,
    ) -> None:
        """Log time in which nothing changed; `in_service` counts the requests of the medium.

        `disk` is the number of the disk at the limiter of the machine.
        """
        own, shared = limiter.waiting, 0 if machine is None else machine.waiting_of(disk)
        while self.next_s <= now_s:
            end_s = self.next_s
            self._add_waiting(end_s, own, shared)
            limit, rate = _binding(limiter, machine if shared else None)
            limiter.fill(end_s - _JUST_BEFORE_S)
            self._write(
                Window(
                    self._begun_s + self._number * WINDOW_S,
                    end_s,
                    reads=self._operations[0],
                    writes=self._operations[1],
                    read_bytes=self._bytes[0],
                    written_bytes=self._bytes[1],
                    inflight=in_service + own + shared,
                    waiting=own + shared,
                    wait_s=self._wait_s,
                    throttled_s=self._throttled_s,
                    rate=rate,
                    limit=limit,
                    stalled=stalled_until_s >= end_s,
                    credits=limiter.credits(),
                    own_throttled_s=self._own_throttled_s,
                    machine_throttled_s=self._machine_throttled_s,
                )
            )
            self._number += 1
            self._clear()
        self._add_waiting(now_s, own, shared)

    def _add_waiting(self, now_s: float, own: int, shared: int) -> None:
        passed_s = now_s - self._logged_until_s
        self._logged_until_s = now_s
        self._wait_s += (own + shared) * passed_s
        self._throttled_s += passed_s if own or shared else 0.0
        self._own_throttled_s += passed_s if own else 0.0
        self._machine_throttled_s += passed_s if shared else 0.0


def _binding(
    limiter: Limiter, machine: Limiter | None
) -> tuple[LimitKind | MachineLimitKind | None, Literal["base", "burst"] | None]:
    """Return the limit that requests wait for and its rate; those of the machine, if given."""
    binding = None if machine is None else machine.binding()
    if binding is not None:
        return MACHINE_LIMITS[binding.limit], binding.rate
    own = limiter.binding()
    return (None, None) if own is None else own
