"""The helper: opens events for one client, hands their descriptors over, and keeps nothing.

It has the privilege that the daemon must not have. It opens three fixed tracepoints with filters
that it writes itself, so a client chooses only the disks.
"""

import logging
import socket
from collections.abc import Callable
from pathlib import Path

from disksla.errors import DiskslaError
from disksla.events.opening import Plan, record_of
from disksla.events.protocol import (
    LONGEST_BYTES,
    MOST_DESCRIPTORS,
    Batch,
    End,
    EventsRequest,
    Refusal,
    decode_request,
    encode,
)
from disksla.system.log import fields
from disksla.system.perf_events import close_all

TIMEOUT_S = 2.0
"""How long a client may take to send its request, and to receive each message."""

log = logging.getLogger("disksla.events")


def answer(connection: socket.socket, plan: Callable[[EventsRequest], Plan]) -> None:
    """Answer the request of a client; log why it got nothing."""
    connection.settimeout(TIMEOUT_S)
    try:
        try:
            request = decode_request(connection.recv(LONGEST_BYTES))
            _send_events(connection, plan(request))
        except DiskslaError as error:
            log.warning("events not opened", extra=fields(err=error))
            connection.send(encode(Refusal(str(error)[: LONGEST_BYTES // 4])))
    except OSError as error:  # silent, does not read, or gone
        log.warning("client disconnected", extra=fields(err=error))


def serve(listening: socket.socket, plan: Callable[[EventsRequest], Plan]) -> None:
    """Answer one client after the other, until the socket is shut down."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            answer(connection, plan)


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


def listen(path: Path) -> socket.socket:
    """Return a socket that listens for the group of this process. Raise DiskslaError."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        if path.is_socket():
            path.unlink(missing_ok=True)
        listening.bind(str(path))
        path.chmod(0o660)
        listening.listen()
    except OSError as error:
        listening.close()
        raise DiskslaError(f"cannot listen on {path}: {error.strerror}") from error
    return listening


def _send_events(connection: socket.socket, plan: Plan) -> None:
    """Open and send the events, CPU by CPU. Raise OSError, DiskslaError."""
    record = record_of(plan.tracepoints)
    for cpu, descriptors in plan.open():
        try:
            for first in range(0, len(descriptors), MOST_DESCRIPTORS):
                part = descriptors[first : first + MOST_DESCRIPTORS]
                socket.send_fds(connection, [encode(Batch(cpu, len(part)))], part)
        finally:
            close_all(descriptors)
    connection.send(encode(End(plan.online, record)))
