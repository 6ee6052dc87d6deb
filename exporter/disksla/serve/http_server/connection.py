"""Listen addresses, accepted connections of clients, and their byte streams.

Connections are accepted also where no descriptors are left. A stream is unencrypted; `TlsStream`
in tls.py encrypts it.
"""

import asyncio
import errno
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from disksla import DEFAULT_PORT
from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.serve.http_server.turns import KnownClients, Waiting, client_of

_LOG = logging.getLogger("disksla.web")

_NO_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_S = 1.0
_RECOVERED_S = 10.0
"""After this time without a failure, connections can be accepted again."""
CHUNK_BYTES = 16 * 1024
"""The most that is received at once."""
_SEND_BYTES = 64 * 1024
"""The most that asyncio copies while the kernel does not take it."""


class HandshakeError(DiskslaError):
    """A TLS handshake failed."""

    def __init__(self, message: str, *, is_http: bool = False) -> None:
        """Set what OpenSSL says, and whether the client sent an unencrypted request."""
        super().__init__(message)
        self.is_http = is_http


class ByteStream:
    """An unencrypted connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Wrap a connection that was just accepted."""
        self._reader = reader
        self._writer = writer
        self.transport = writer.transport
        self.transport.set_write_buffer_limits(0)  # drain() waits until the kernel has it all

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context of the connection; None if it is unencrypted."""
        return None

    @property
    def peer(self) -> str:
        """IP address of the client; empty for a Unix socket."""
        address = self._writer.get_extra_info("peername")
        return str(address[0]) if isinstance(address, tuple) else ""

    async def do_handshake(self) -> None:
        """Do the TLS handshake. Raise HandshakeError if it fails, after sending the alert."""

    def client_names(self) -> set[str]:
        """Return the alternative names of the client's certificate; empty without one."""
        return set()

    async def receive(self) -> bytes:
        """Return the next bytes, at least one. Raise EOFError at the end of the stream."""
        received = await self._reader.read(CHUNK_BYTES)
        if not received:
            raise EOFError
        return received

    async def send(self, data: bytes) -> None:
        """Send, and return when the kernel has all of it."""
        remaining = memoryview(data)
        while remaining:
            self._writer.write(remaining[:_SEND_BYTES])
            await self._writer.drain()
            remaining = remaining[_SEND_BYTES:]

    async def send_unencrypted(self, data: bytes) -> None:
        """Send to a client that does not use TLS."""
        await ByteStream.send(self, data)

    def close(self) -> None:
        """Close the connection; what was not sent yet is lost."""
        self.transport.abort()


class Acceptor:
    """Accepts connections from listening sockets; for use from one event loop.

    asyncio's own servers log each failed attempt, up to a thousand at once (Python 3.11).
    """

    def __init__(self, make_room: Callable[[], bool]) -> None:
        """`make_room` closes a connection, and returns whether there was one."""
        self._make_room = make_room
        self._errors = 0
        self._problem: str | None = None
        self._recovery: asyncio.TimerHandle | None = None

    @property
    def health(self) -> SourceHealth:
        """How many attempts failed, and why if one did in the last ten seconds."""
        return SourceHealth("connections", self._errors, self._problem is None, self._problem)

    async def accept(
        self, listening: socket.socket, handle: Callable[[socket.socket], None]
    ) -> None:
        """Accept connections until this is cancelled, and pass them on."""
        listening.settimeout(0.0)
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionError:  # the client has closed it already
                continue
            except OSError as error:
                await self._failed(error)
            else:
                handle(connection)
                await asyncio.sleep(0)  # let what was accepted before go on

    async def _failed(self, error: OSError) -> None:
        """Count a failed attempt, and return when another may succeed."""
        self._errors += 1
        if self._problem is None:
            self._problem = f"cannot accept connections: {error.strerror}"
            _LOG.warning("cannot accept connections", extra=fields(err=error.strerror))
        if self._recovery is not None:
            self._recovery.cancel()
        self._recovery = asyncio.get_running_loop().call_later(_RECOVERED_S, self._recovered)
        has_room = error.errno in _NO_RESOURCES and self._make_room()
        await asyncio.sleep(0.0 if has_room else _RETRY_S)

    def _recovered(self) -> None:
        self._problem = None
        _LOG.info("connections are accepted again", extra=fields(failed=self._errors))


async def streams_of(
    connection: socket.socket, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return the streams of an accepted connection. Raise OSError if it cannot be used."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=limit, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class ClientPool:
    """Connections whose client is waited for: at most `most`.

    Above that, the oldest one of the client with the most is disconnected. So a new client is
    always accepted, and one that opens many connections loses its own only.
    """

    def __init__(self, most: int, known: KnownClients) -> None:
        """Begin without connections."""
        self.most = most
        self._waiting: Waiting[asyncio.WriteTransport] = Waiting(known)

    @contextmanager
    def add(self, stream: ByteStream) -> Iterator[None]:
        """Keep a connection in the pool during the block."""
        client = client_of(stream.peer)
        self._waiting.add(client, stream.transport)
        if len(self._waiting) > self.most:
            self.disconnect_one()
        try:
            yield
        finally:
            self._waiting.discard(client, stream.transport)

    def disconnect_one(self) -> bool:
        """Disconnect the oldest one of the client with the most; return whether there was one."""
        if not self._waiting:
            return False
        self._waiting.take_oldest_of_most().abort()
        return True


DEFAULT_LISTEN_ADDRESS = f":{DEFAULT_PORT}"
BACKLOG = 1024
"""Connections that the kernel queues until they are accepted; clients retry others after 1 s."""

_ADDRESS = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:%[\w.-]+)?)\]|(?P<host>[\w.-]*))"
    r":(?P<port>\d{1,5})",
    re.ASCII,
)
_HIGHEST_PORT = 65535


class ListenAddress(NamedTuple):
    """Host and port to listen on; an empty host is every address, IPv6 and IPv4."""

    host: str
    port: int
    """0 for one that the kernel chooses."""

    def __str__(self) -> str:
        """Return `:10056`, `127.0.0.1:80` or `[::1]:80`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """Parse `HOST:PORT`, `[IPV6]:PORT` or `:PORT`. Raise DiskslaError for anything else."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > _HIGHEST_PORT:
        raise DiskslaError(
            f"invalid listen address '{text}': expected HOST:PORT, [IPV6]:PORT or :PORT,"
            f" such as {DEFAULT_LISTEN_ADDRESS} or 127.0.0.1{DEFAULT_LISTEN_ADDRESS}"
        )
    return ListenAddress(match["ipv6"] or match["host"] or "", int(match["port"]))


Listen = ListenAddress | socket.socket
"""An address to listen on, or a socket that listens already."""


def bind(address: Listen) -> socket.socket:
    """Return a listening socket. Raise DiskslaError if the address cannot be used."""
    if isinstance(address, socket.socket):
        return address
    try:
        if not address.host:
            return _bind_all_addresses(address.port)
        family, _, _, _, resolved = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(resolved, family=family, backlog=BACKLOG)
    except UnicodeError as error:  # a label of the name has more than 63 characters
        raise DiskslaError(f"cannot listen on {address}: {error}") from error
    except socket.gaierror as error:
        raise DiskslaError(f"cannot listen on {address}: {error.strerror}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DiskslaError(f"cannot listen on {address}: {reason}") from error


def bound_address(listen: Listen, bound: socket.socket) -> ListenAddress:
    """Return the address of a bound socket, with the port that the kernel chose."""
    host, port = bound.getsockname()[:2]
    if isinstance(listen, ListenAddress):
        return ListenAddress(listen.host, port)
    return ListenAddress("" if host in {"::", "0.0.0.0"} else host, port)  # noqa: S104 -- compared


def _bind_all_addresses(port: int) -> socket.socket:
    """Return one socket for IPv6 and IPv4, or for IPv4 if the kernel has no IPv6."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    return socket.create_server(("", port), backlog=BACKLOG)
