"""The thread that has events opened, and closes them: both may take long.

The sampler says which events it wants, takes them when they are there, and gives back those that
it does not need any more.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields, traceback_of
from disksla.kernel.performance_events.opened import NoHelperError, OpenedEvents
from disksla.kernel.performance_events.protocol import EventKind, EventsRequest

FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 60.0
BETWEEN_S = 1.0  # least time between two openings
_CLOSING_S = 0.05  # within which the events before are given back: a user has one set of each kind
STOP_TIMEOUT_S = 2.0
_MAX_BYTES = 4096  # an attribute of sysfs is at most one page

log = logging.getLogger("disksla.events")


Numbers = Mapping[str, tuple[int, int]]  # major and minor number by device


class Wish(NamedTuple):
    """Events that are wanted."""

    request: EventsRequest
    online: str  # list of the online CPUs
    renewal: int = 0  # another number asks for the same events again


OpenEvents = Callable[[EventsRequest, str], OpenedEvents]
"""Opens events, by a helper where there is one. Raises DiskslaError."""


class EventSource:
    """Opens and closes events for one thread, which calls all methods."""

    def __init__(
        self,
        open_events: OpenEvents,
        name: str,
        sysfs: Path,
        *,
        between_s: float = BETWEEN_S,
        retry_s: float = FIRST_RETRY_S,
    ) -> None:
        """Start nothing; `name` is that of the source in the health of the daemon."""
        self._open = open_events
        self._name = name
        self._online = sysfs / "devices" / "system" / "cpu" / "online"
        self._online_descriptor: int | None = None
        self._between_s = between_s
        self._first_retry_s = self._retry_s = retry_s
        self._wait_s = between_s
        self._wish: Wish | None = None
        self._wishes: queue.SimpleQueue[Wish | OpenedEvents | None] = queue.SimpleQueue()
        """What the thread has to do: open or close; None for nothing to open."""
        self._opened: queue.SimpleQueue[tuple[Wish, OpenedEvents]] = queue.SimpleQueue()
        self._errors = 0
        self.why_not: str | None = None
        """Why the events were not opened at the last attempt; None if they were."""
        self._has_helper = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def health(self) -> SourceHealth | None:
        """How events are opened; None if there is no helper, and they need one."""
        if not self._has_helper and not self._errors:
            return None
        works = self.why_not is None if self._has_helper else None
        return SourceHealth(self._name, self._errors, works, self.why_not)

    def want(self, events: EventKind, disks: Numbers, *, again: bool = False) -> bool:
        """Have events of some disks opened; return whether those that are open are not wanted.

        They are opened again if the disks or the CPUs are others, or `again`.
        """
        wish = None
        if disks:
            devices = tuple(f"{major}:{minor}" for major, minor in disks.values())
            renewal = again + (0 if self._wish is None else self._wish.renewal)
            wish = Wish(EventsRequest(events, devices), self._read_online(), renewal)
        if wish == self._wish:
            return False
        self._wish = wish
        if self._thread is None and wish is not None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._wishes.put(wish)
        return True

    @property
    def has_new(self) -> bool:
        """Whether events were opened since the last `take`."""
        return not self._opened.empty()

    def take(self) -> OpenedEvents | None:
        """Return events that were opened since, if they are those that are wanted."""
        found: OpenedEvents | None = None
        while not self._opened.empty():
            wish, opened = self._opened.get()
            if wish == self._wish and found is None:
                found = opened
            else:
                self.give_back(opened)
        return found

    def give_back(self, opened: OpenedEvents) -> None:
        """Close events, later."""
        self._wishes.put(opened)

    def stop(self) -> None:
        """Close what was not taken, and end the thread; `want` starts it again."""
        self._wish = None
        if self._online_descriptor is not None:
            os.close(self._online_descriptor)
            self._online_descriptor = None
        if self._thread is None:
            return
        self._stopping.set()
        self._wishes.put(None)
        self._thread.join(STOP_TIMEOUT_S)
        self._thread = None
        while not self._opened.empty():
            self._opened.get()[1].close()

    def _run(self) -> None:
        wish: Wish | None = None
        due_s = time.monotonic()
        while not self._stopping.is_set() or not self._wishes.empty():
            try:
                task = self._wishes.get(timeout=wish and max(0.0, due_s - time.monotonic()))
            except queue.Empty:
                wish, due_s = self._after(wish), time.monotonic() + self._wait_s
                continue
            if isinstance(task, OpenedEvents):
                self._close(task)
            else:
                wish, self._retry_s = task, self._first_retry_s
                now_s = time.monotonic()
                due_s = min(max(due_s, now_s + _CLOSING_S), now_s + self._between_s)

    def _after(self, wish: Wish | None) -> Wish | None:
        """Try to open events; return what is to be tried again, and set when."""
        if wish is None or self._try(wish):
            self._wait_s = self._between_s
            return None
        self._wait_s = self._retry_s
        self._retry_s = min(2 * self._retry_s, LONGEST_RETRY_S)
        return wish

    def _try(self, wish: Wish) -> bool:
        """Open events; return whether that succeeded, and log it if that has changed."""
        before = self.why_not
        try:
            opened = self._open(wish.request, wish.online)
        except Exception as error:  # also one by a bug: the thread must go on
            self._has_helper = not isinstance(error, NoHelperError)
            self.why_not = str(error)
            self._errors += self._has_helper
            level = logging.WARNING if self._has_helper else logging.INFO
            if self.why_not != before:
                extra = fields(events=wish.request.events, err=error)
                log.log(level, "events not opened", extra=extra, exc_info=traceback_of(error))
            return False
        self.why_not, self._has_helper = None, True
        self._opened.put((wish, opened))
        if before is not None:
            log.info("events opened", extra=fields(events=wish.request.events))
        return True

    def _close(self, opened: OpenedEvents) -> None:
        try:
            opened.close()
        except OSError as error:  # by a bug: the thread must go on
            self._errors += 1
            log.warning("events not closed", extra=fields(err=error))

    def _read_online(self) -> str:
        """Return the list of online CPUs, empty if it cannot be read.

        Opening the file each time would cost ten times more.
        """
        try:
            if self._online_descriptor is None:
                self._online_descriptor = os.open(self._online, os.O_RDONLY | os.O_CLOEXEC)
            content = os.pread(self._online_descriptor, _MAX_BYTES, 0)
        except OSError:
            return ""
        return content.decode("ascii", errors="replace").strip()
