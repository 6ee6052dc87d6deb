"""The HTTP server: asyncio moves bytes, h11 parses requests, workers compute responses.

A server that gives each connection to a worker, which then reads from the socket, is blocked by as
many slow clients as it has workers, and timeouts do not help: the clients connect again. Here only
the event loop waits for clients, and a waiting client costs a few kilobytes:

- A worker gets a request when its head is complete, and returns the whole response. Its work
  depends on the product's code only. Each class of requests has a worker (`Services`), which
  clients use in turns; health is answered by the event loop itself.
- A client has a fixed time (`Timeouts`) to send the head of a request, and to receive the
  response, however it spreads the bytes over that time.
- If too many clients are waited for, one is disconnected: the one that was waited for longest, of
  the address with the most (`ClientPool`). So a new client, such as a scrape, is always accepted.
  A TLS handshake counts as waiting.
- Access (`AccessControl`) is checked before a worker gets the request. Passwords are verified by
  a thread of their own. Over the Unix socket, file permissions have decided it.

Request bodies are not read. After the response to a request with a body, the connection is closed.
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.serve.http_server.access import AccessControl, AccessPolicy, RejectedError
from disksla.serve.http_server.basic_auth import MAX_IN_PROGRESS
from disksla.serve.http_server.connection import (
    Acceptor,
    ByteStream,
    ClientPool,
    HandshakeError,
    Listen,
    ListenAddress,
    bind,
    bound_address,
    streams_of,
)
from disksla.serve.http_server.http_protocol import (
    MAX_HEAD_BYTES,
    HttpConnection,
    Reply,
    RequestHead,
    ServiceClass,
)
from disksla.serve.http_server.turns import BUSY, MOST_SCRAPES, Application, Services, client_of

_LOG = logging.getLogger("disksla.web")

_STOP_S = 1.0

_MAX_RECEIVING = 200
_MAX_SENDING = 16
"""Fewer than receiving, since each keeps a response in memory."""

_TLS_INTERNAL_ERROR = bytes.fromhex("15 0303 0002 02 50")
"""A TLS record with the fatal alert 80 (RFC 8446), which Go's servers send in this case."""
_UNENCRYPTED = Reply(b"This port requires HTTPS; the request was unencrypted.\n", 400)
_FAILED = Reply(b"Internal error; see the log of disksla.\n", 500)
_TOO_LATE = Reply(b"The response was not ready in time; retry later.\n", 503)


class Timeouts(NamedTuple):
    """How long a client is waited for, in seconds."""

    handshake_s: float = 5.0
    """For the TLS handshake."""
    head_s: float = 5.0
    """For the whole head of a request, since the connection was accepted or its first byte."""
    work_s: float = 30.0
    """Until the response is known: for the turn of the client, its password and the worker."""
    answer_s: float = 10.0
    """For the client to receive the whole response."""
    idle_s: float = 90.0
    """For the next request; longer than usual scrape intervals, so Prometheus stays connected."""


DEFAULT_TIMEOUTS = Timeouts()


class WebServer:
    """Serves an application on some addresses, from a thread of its own."""

    def __init__(
        self,
        application: Application,
        listen: Sequence[Listen],
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        access: AccessControl | None = None,
        unix_socket: UnixSocket | None = None,
        class_of: Callable[[RequestHead], ServiceClass] = lambda _: "scrape",
        most_scrapes: int = MOST_SCRAPES,
    ) -> None:
        """Prepare to serve `application`; `start` binds the addresses and the Unix socket."""
        self._listen = listen
        self._timeouts = timeouts
        self._access = access or AccessControl()
        self._unix_socket = unix_socket
        self._services = Services(application, class_of, most_scrapes, self._access.known)
        self._receiving = ClientPool(_MAX_RECEIVING, self._access.known)
        self._sending = ClientPool(_MAX_SENDING, self._access.known)
        self._acceptor = Acceptor(self._receiving.disconnect_one)
        self._connections: set[asyncio.Task[None]] = set()
        self._stop: Future[None] = Future()
        self._thread: threading.Thread | None = None

    @property
    def most_connections(self) -> int:
        """How many connections are open at most: each needs a descriptor."""
        return _MAX_RECEIVING + _MAX_SENDING + self._services.most + MAX_IN_PROGRESS

    @property
    def health(self) -> SourceHealth:
        """Whether connections can be accepted."""
        return self._acceptor.health

    def start(self) -> tuple[ListenAddress, ...]:
        """Bind, start to serve, and return the bound addresses, with the ports that were chosen.

        Raise DiskslaError, naming the address, if one cannot be bound. Without the Unix socket,
        the addresses are served.
        """
        sockets: list[socket.socket] = []
        try:
            for listen in self._listen:
                sockets.append(bind(listen))  # noqa: PERF401 -- those bound must be closed
        except DiskslaError:
            for bound in sockets:
                bound.close()
            raise
        listening = [(bound, self._access) for bound in sockets]
        local = None if self._unix_socket is None else self._unix_socket.open()
        if local is not None:
            listening.append((local, AccessControl()))
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._serve(listening),), name="web", daemon=True
        )
        self._thread.start()
        return tuple(
            bound_address(listen, bound)
            for listen, bound in zip(self._listen, sockets, strict=True)
        )

    def stop(self) -> None:
        """Close every connection, and return when that is done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set_result(None)
            thread.join(_STOP_S)
            if self._unix_socket is not None:
                self._unix_socket.close()

    async def _serve(self, listening: Sequence[tuple[socket.socket, AccessControl]]) -> None:
        """Serve on each socket, with its access control, until `stop`."""
        accepting = [
            asyncio.ensure_future(self._acceptor.accept(bound, partial(self._begin, access)))
            for bound, access in listening
        ]
        await asyncio.wrap_future(self._stop)
        for task in accepting:
            task.cancel()
        await asyncio.wait(accepting)
        self._services.stop()
        for bound, access in listening:
            bound.close()
            access.passwords.stop()

    def _begin(self, access: AccessControl, connection: socket.socket) -> None:
        """Begin to handle a connection."""
        task = asyncio.ensure_future(self._handle_connection(access, connection))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle_connection(self, access: AccessControl, connection: socket.socket) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            reader, writer = await streams_of(connection, MAX_HEAD_BYTES)
        except OSError:  # the client has closed it already
            connection.close()
            return
        policy = access.policy()
        stream = ByteStream(reader, writer)
        if policy.is_open and policy.context is not None:
            stream = policy.context.stream(reader, writer)
        try:
            with suppress(OSError, TimeoutError, EOFError, asyncio.CancelledError):
                keep = not access.speaks_tls or await self._handshake(stream, policy)
                http = HttpConnection()
                idle_s: float | None = None
                while keep:
                    await self._receive(stream, http, idle_s)
                    keep = await self._handle_request(access, stream, http)
                    idle_s = self._timeouts.idle_s
        finally:
            stream.close()

    async def _handshake(self, stream: ByteStream, policy: AccessPolicy) -> bool:
        """Do the TLS handshake; return whether the client may send requests."""
        with self._receiving.add(stream):
            async with asyncio.timeout(self._timeouts.handshake_s):
                if stream.context is None:
                    await stream.receive()
                    await stream.send(_TLS_INTERNAL_ERROR)
                    return False
                try:
                    await stream.do_handshake()
                except HandshakeError as error:
                    _LOG.debug("TLS handshake failed", extra=fields(client=stream.peer, err=error))
                    if error.is_http:
                        for part in HttpConnection().encode(_UNENCRYPTED, time.time()):
                            await stream.send_unencrypted(part)
                    return False
        if policy.allowed_names is None:
            return True
        names = stream.client_names()
        if names & policy.allowed_names:
            return True
        _LOG.debug(
            "client certificate not allowed", extra=fields(client=stream.peer, names=sorted(names))
        )
        return False

    async def _receive(
        self, stream: ByteStream, http: HttpConnection, idle_s: float | None
    ) -> None:
        """Receive the head of the next request; wait up to `idle_s` for its first byte."""
        with self._receiving.add(stream):
            if idle_s is not None and http.is_idle:
                async with asyncio.timeout(idle_s):
                    http.receive(await stream.receive())
            async with asyncio.timeout(self._timeouts.head_s):
                while http.needs_data:
                    http.receive(await stream.receive())

    async def _handle_request(
        self, access: AccessControl, stream: ByteStream, http: HttpConnection
    ) -> bool:
        """Answer one request; return whether another may follow."""
        policy = access.policy()
        if not access.covers(stream.context):
            return False  # connected before TLS was configured, or with another certificate
        response, close = await self._response(access, stream.peer, http, policy)
        await self._send(stream, http, response, policy, close=close)
        return http.is_reusable

    async def _response(
        self, access: AccessControl, peer: str, http: HttpConnection, policy: AccessPolicy
    ) -> tuple[Reply, bool]:
        """Return the response to the request that was received; True to close the connection."""
        client = client_of(peer)
        try:
            async with asyncio.timeout(self._timeouts.work_s):
                request = await access.admit(http, policy, client)
                reply = await self._services.answer(request, client)
                if reply is not BUSY:
                    self._access.known.served(client, time.monotonic())
                return reply, False
        except RejectedError as rejected:
            return rejected.response, rejected.closes
        except TimeoutError:
            return _TOO_LATE, True
        except Exception:  # noqa: BLE001 -- a bug must not affect other requests
            _LOG.exception("cannot answer a request")
            return _FAILED, True

    async def _send(
        self,
        stream: ByteStream,
        http: HttpConnection,
        response: Reply,
        policy: AccessPolicy,
        *,
        close: bool,
    ) -> None:
        head, body = http.encode(response, time.time(), policy.headers, close=close)
        with self._sending.add(stream):
            async with asyncio.timeout(self._timeouts.answer_s):
                await stream.send(head)
                await stream.send(body)
