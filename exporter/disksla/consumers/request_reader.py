"""The thread that attributes the requests of disks while one is throttled or busy.

It reads samples four times a second, and posts what consumers used once a second.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from disksla.consumers.attribution import Attribution, Names, added, attributed
from disksla.consumers.consumption import Consumption
from disksla.events import Taken
from disksla.events.request_sampler import RequestSampler

EVERY_S, POST_EVERY_S = 0.25, 1.0
BUSY_FOR_S = 60.0
"""Requests are sampled for this time after a disk was throttled or busy."""
_STOP_TIMEOUT_S = 2.0


class Wanted(NamedTuple):
    """What is to be sampled."""

    disks: Mapping[str, tuple[int, int]]
    """The monitored disks, by their numbers."""
    is_busy: bool
    """One of them is throttled or busy now."""
    with_bytes: bool
    """Their bytes are not known otherwise, by io.stat."""


class RequestReader:
    """Posts what consumers used of disks, from `start` until `stop`."""

    def __init__(
        self,
        sampler: RequestSampler,
        wanted: Callable[[], Wanted],
        names: Names,
        post: Callable[[tuple[Consumption, ...], float], None],
    ) -> None:
        """Prepare to read; `post` gets what was used, and in how many seconds."""
        self.sampler = sampler
        self._wanted = wanted
        self._names = names
        self._post = post
        self._before = Attribution()
        self._parts: list[tuple[Consumption, ...]] = []
        self._counted = (0, 0)
        self._since_s: float | None = None
        """When what is not posted yet begins; None while nothing is sampled."""
        self._busy_s = -BUSY_FOR_S
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, anew after `stop`."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, name="requests", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and close the events."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stopping.wait(POST_EVERY_S if self._since_s is None else EVERY_S):
            self._read(self._wanted(), time.monotonic())
        self.sampler.close()

    def _read(self, wanted: Wanted, now_s: float) -> None:
        if wanted.is_busy:
            self._busy_s = now_s
        if now_s - self._busy_s >= BUSY_FOR_S:
            self.sampler.pause()
            self._since_s = None
            return
        taken = self.sampler.take()
        self.sampler.watch(wanted.disks, with_bytes=wanted.with_bytes)
        if taken is None or self._since_s is None:  # what was sampled before is of another time
            self._begin(None if taken is None else now_s)
        else:
            self._add(taken, wanted)
            if now_s - self._since_s >= POST_EVERY_S:
                self.sampler.adapt(self._counted, now_s - self._since_s)
                self._post(added(self._parts), now_s - self._since_s)
                self._begin(now_s, self._before)

    def _begin(self, now_s: float | None, before: Attribution | None = None) -> None:
        self._since_s, self._before = now_s, before or Attribution()
        self._parts, self._counted = [], (0, 0)

    def _add(self, taken: Taken, wanted: Wanted) -> None:
        self._before, used = attributed(
            self._before, taken, wanted.disks, self._names, with_bytes=wanted.with_bytes
        )
        self._parts.append(used)
        requests, sizes = self._counted
        self._counted = requests + taken.counted[0], sizes + taken.counted[1]
