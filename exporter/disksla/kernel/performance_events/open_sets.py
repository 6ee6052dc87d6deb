"""Which events are still open, whoever has them: the helper hands them over, and counts them.

An epoll lists a file until the last descriptor of it is closed, in any process, and holds none
itself (epoll(7), proc_pid_fdinfo(5)).
"""

import ctypes
import os
import select
from collections.abc import Iterable
from pathlib import Path

from disksla.base.errors import DiskslaError

MOST_SETS = 4
"""Of all clients. disksla-events.socket has the same number as MaxConnections=."""
_WATCH = "while grep -q ^tfd: /proc/$$/fdinfo/$0; do sleep 1; done"
_AMBIENT, _CLEAR_ALL = 47, 4  # PR_CAP_AMBIENT of linux/prctl.h


class EventSet:
    """The events of one request."""

    def __init__(self) -> None:
        """Watch nothing."""
        self._epoll = select.epoll()

    def add(self, descriptors: Iterable[int]) -> None:
        """Watch events, which others have by these descriptors, too."""
        for descriptor in descriptors:
            self._epoll.register(descriptor, 0)

    @property
    def is_open(self) -> bool:
        """Whether any process has one of the events open."""
        return "\ntfd:" in Path(f"/proc/self/fdinfo/{self._epoll.fileno()}").read_text("ascii")

    def close(self) -> None:
        """Watch them no more."""
        self._epoll.close()

    def wait(self) -> None:
        """Become a small program without privileges that ends when all are closed."""
        os.set_inheritable(self._epoll.fileno(), True)  # noqa: FBT003 -- has no keyword
        ctypes.CDLL(None).prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
        os.execv("/bin/sh", ("sh", "-c", _WATCH, str(self._epoll.fileno())))  # noqa: S606 -- fixed


class OpenSets:
    """The events that clients of this process have open."""

    def __init__(self) -> None:
        """Know of none."""
        self._sets: list[tuple[int, str, EventSet]] = []

    def wait(self) -> None:
        """Become a program that ends when all are closed, as that of EventSet; return if none."""
        for *_, each in self._sets:
            each.wait()

    def begin(self, user: int, kind: str) -> EventSet:
        """Return a set for events of a kind for a user. Raise DiskslaError if it has one open."""
        known, self._sets = self._sets, []
        for each in known:
            if each[2].is_open:
                self._sets.append(each)
            else:
                each[2].close()
        if any((user, kind) == each[:2] for each in self._sets):
            raise DiskslaError(
                f"found {kind} events that user {user} has open; expected that they are closed"
            )
        if len(self._sets) >= MOST_SETS:
            raise DiskslaError(f"found {MOST_SETS} sets of events open; expected less")
        found = EventSet()
        self._sets.append((user, kind, found))
        return found
