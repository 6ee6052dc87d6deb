"""Packets of JSON between the daemon and its helpers, over Unix sockets (SOCK_SEQPACKET).

The helpers have privileges that the daemon must not have: `disksla ebs-statistics` and
`disksla open-events`.
"""

import contextlib
import errno
import logging
import math
import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.operating_system.log import fields

LONGEST_BYTES = 16 * 1024
"""No packet is longer: a reading of two histograms with the largest numbers has 8 kB."""
_RETRY_S = 1.0

Message = TypeVar("Message")
encode = msgspec.json.Encoder().encode

log = logging.getLogger("disksla.helper")


def decode_packet(decoder: msgspec.json.Decoder[Message], packet: bytes) -> Message:
    """Return the message of a packet. Raise DiskslaError if it is none that is expected."""
    try:
        return decoder.decode(packet)
    except DECODE_ERRORS as error:
        raise DiskslaError(
            f"found {packet[:40]!r}; expected a message of the same version: {error}"
        ) from None


def connect(path: Path, timeout_s: float) -> socket.socket:
    """Return a connection with a helper; all that it does may take so long. Raise OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(timeout_s)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def shut_down(connection: socket.socket) -> None:
    """Have whoever waits for a socket, on either side, see its end."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class PacketServer:
    """Serves all clients of a socket in one thread."""

    def __init__(
        self,
        listening: socket.socket,
        receive: Callable[[socket.socket], bool],
        most_clients: int,
        silent_s: float = math.inf,
    ) -> None:
        """Prepare to call `receive` with each client that has sent something, or has gone.

        It returns whether the client is to stay. Those that send nothing for `silent_s` go, and
        then the oldest of too many do; else, one too many is refused.
        """
        self._listening = listening
        self._receive = receive
        self._most_clients = most_clients
        self._silent_s = silent_s
        self._poll = select.poll()
        self._since_s: dict[socket.socket, float] = {}
        """The clients, with the monotonic time at which they were accepted."""
        self.clients: tuple[socket.socket, ...] = ()
        """The same; it is replaced and never changed, so that other threads may read it."""

    def serve(self, once_a: float = 1.0, do: Callable[[], None] = lambda: None) -> None:
        """Serve until the socket is shut down; `do` something once in so many seconds at least."""
        self._poll.register(self._listening, select.POLLIN)
        is_open = True
        while is_open:
            ready = {descriptor for descriptor, _ in self._poll.poll(1000 * once_a)}
            for client, since_s in [*self._since_s.items()]:
                if client.fileno() in ready:
                    if not self._receive(client):
                        self._drop(client)
                elif time.monotonic() - since_s > self._silent_s:
                    self._drop(client, "it sent nothing")
            if self._listening.fileno() in ready:
                is_open = self._accept()
            do()
        for client in self.clients:
            self._drop(client)

    def _accept(self) -> bool:
        """Accept a client; return whether the socket is still open."""
        try:
            client, _ = self._listening.accept()
        except OSError as error:
            if error.errno == errno.EINVAL:  # it was shut down
                return False
            log.warning("cannot accept a client", extra=fields(err=error))
            time.sleep(_RETRY_S)  # too many open files
            return True
        if len(self._since_s) >= self._most_clients:
            if self._silent_s == math.inf:
                log.warning("client refused", extra=fields(err=f"{self._most_clients} are served"))
                client.close()
                return True
            self._drop(next(iter(self._since_s)), "it sent nothing, and others wait")
        self._poll.register(client, select.POLLIN)
        self._since_s[client] = time.monotonic()
        self.clients = tuple(self._since_s)
        return True

    def _drop(self, client: socket.socket, reason: str | None = None) -> None:
        if reason is not None:
            log.warning("client disconnected", extra=fields(err=reason))
        self._poll.unregister(client)
        del self._since_s[client]
        self.clients = tuple(self._since_s)
        client.close()
