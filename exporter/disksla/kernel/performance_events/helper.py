"""The helper: opens events for one client, hands their descriptors over, and keeps nothing.

It has the privilege that the daemon must not have. It opens three fixed tracepoints with filters
that it writes itself, so a client chooses only the disks.
"""

import ctypes
import logging
import os
import select
import socket
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.packets import (
    LONGEST_BYTES,
    PacketServer,
    decode_packet,
    encode,
)
from disksla.base.operating_system.perf_events import close_all
from disksla.kernel.performance_events import protocol
from disksla.kernel.performance_events.opening import Plan, record_of

MOST_SETS = 4  # of all clients. disksla-events.socket has the same number as MaxConnections=
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


TIMEOUT_S = 2.0  # how long a client may take to send its request, and to receive each message
MOST_SILENT = 100  # clients that have sent nothing yet

_CREDENTIALS = struct.Struct("iII")  # struct ucred: process, user, group

log = logging.getLogger("disksla.events")


def answer(
    connection: socket.socket, plan: Callable[[protocol.EventsRequest], Plan], open_sets: OpenSets
) -> None:
    """Answer the request of a client; log why it got nothing.

    Its events are in `open_sets`, also of one that is gone before it has all of them.
    """
    connection.settimeout(TIMEOUT_S)
    try:
        try:
            request = decode_packet(protocol.REQUESTS, connection.recv(LONGEST_BYTES))
            prepared = plan(request)
            _send_events(
                connection, prepared, open_sets.begin(_user_of(connection), request.events)
            )
        except DiskslaError as error:
            log.warning("events not opened", extra=fields(err=error))
            connection.send(encode(protocol.Refusal(str(error)[: LONGEST_BYTES // 4])))
    except OSError as error:  # silent, does not read, or gone
        log.warning("client disconnected", extra=fields(err=error))


def _user_of(connection: socket.socket) -> int:
    """Return the user id of the process that connected (unix(7))."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return int(user)


def serve(listening: socket.socket, plan: Callable[[protocol.EventsRequest], Plan]) -> None:
    """Answer clients until the socket is shut down; those that are silent keep nobody waiting."""
    open_sets = OpenSets()

    def answer_once(connection: socket.socket) -> bool:
        answer(connection, plan, open_sets)
        return False

    PacketServer(listening, answer_once, MOST_SILENT, TIMEOUT_S).serve()


def passed_connection(descriptor: int) -> socket.socket:
    """Return the connection that systemd passed. Raise DiskslaError."""
    try:
        connection = socket.socket(fileno=descriptor)
    except OSError as error:
        raise DiskslaError(f"cannot use the socket from systemd: {error.strerror}") from error
    if (connection.family, connection.type) != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
        connection.close()
        raise DiskslaError(
            "cannot use the socket from systemd: not a Unix socket of packets; the socket unit"
            " needs ListenSequentialPacket=, and Accept=yes"
        )
    return connection


def _send_events(connection: socket.socket, plan: Plan, opened: EventSet) -> None:
    """Open and send the events, CPU by CPU. Raise OSError, DiskslaError."""
    record = record_of(plan.tracepoints)
    for cpu, descriptors in plan.open():
        try:
            opened.add(descriptors)
            for first in range(0, len(descriptors), protocol.MOST_DESCRIPTORS):
                part = descriptors[first : first + protocol.MOST_DESCRIPTORS]
                socket.send_fds(connection, [encode(protocol.Batch(cpu, len(part)))], part)
        finally:
            close_all(descriptors)
    connection.send(encode(protocol.End(plan.online, record)))
