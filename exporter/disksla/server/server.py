"""The HTTP server: asyncio moves bytes, h11 parses requests, two workers compute responses.

A server that gives each connection to a worker, which then reads from the socket, is blocked by as
many slow clients as it has workers, and timeouts do not help: the clients connect again. Here only
the event loop waits for clients, and a waiting client costs a few kilobytes:

- A worker gets a request when its head is complete, and returns the whole response. Its work
  depends on the product's code only.
- A client has a fixed time (`Timeouts`) to send the head of a request, and to receive the
  response, however it spreads the bytes over that time.
- If too many clients are waited for, the one that was waited for longest is disconnected, so a new
  client, such as a scrape, is always accepted. A TLS handshake counts as waiting.
- Access (`AccessControl`) is checked before a worker gets the request. Passwords are verified by
  a thread of their own. Over the Unix socket, file permissions have decided it.

Request bodies are not read. After the response to a request with a body, the connection is closed.
"""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

from disksla.errors import DiskslaError
from disksla.server.access import AccessControl, AccessPolicy
from disksla.server.basic_auth import TooManyAttemptsError
from disksla.server.connection import ByteStream, HandshakeError
from disksla.server.http import (
    MAX_HEAD_BYTES,
    PLAIN_TEXT,
    BadRequestError,
    HeaderLines,
    HttpConnection,
    Reply,
    RequestHead,
)
from disksla.server.listen import BACKLOG, Listen, ListenAddress, bind, bound_address
from disksla.system.log import fields
from disksla.system.unix_socket import UnixSocket

Application = Callable[[RequestHead], Reply]
"""Called by several threads."""

_LOG = logging.getLogger("disksla.web")

_STOP_S = 1.0

_MAX_RECEIVING = 200
_MAX_SENDING = 16
"""Fewer than receiving, since each keeps a response in memory."""
_MAX_ANSWERING = 128
"""Requests with a worker or queued for one."""
_WORKERS = 2
"""One for a scrape and one for the rest; more would contend with the sampler for the GIL."""

_TLS_INTERNAL_ERROR = bytes.fromhex("15 0303 0002 02 50")
"""A TLS record with the fatal alert 80 (RFC 8446), which Go's servers send in this case."""
_UNENCRYPTED = Reply(b"This port requires HTTPS; the request was unencrypted.\n", 400)
_BAD_WEB_CONFIG = Reply(b"Invalid web configuration; see the log of disksla.\n", 500)
_FAILED = Reply(b"Internal error; see the log of disksla.\n", 500)
_AUTHENTICATE: HeaderLines = (("WWW-Authenticate", 'Basic realm="disksla"'),)


class Timeouts(NamedTuple):
    """How long a client is waited for, in seconds."""

    handshake_s: float = 5.0
    """For the TLS handshake."""
    head_s: float = 5.0
    """For the whole head of a request, since the connection was accepted or its first byte."""
    answer_s: float = 10.0
    """For the client to receive the whole response."""
    idle_s: float = 90.0
    """For the next request; longer than usual scrape intervals, so Prometheus stays connected."""


DEFAULT_TIMEOUTS = Timeouts()


class ScrapeLimit(NamedTuple):
    """How many scrapes are answered at once."""

    path: str = "/metrics"
    most: int = 40
    """The default of node_exporter; 0 for no limit."""


DEFAULT_SCRAPE_LIMIT = ScrapeLimit()


class WebServer:
    """Serves an application on some addresses, from a thread of its own."""

    def __init__(
        self,
        application: Application,
        listen: Sequence[Listen],
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        access: AccessControl | None = None,
        scrapes: ScrapeLimit = DEFAULT_SCRAPE_LIMIT,
        unix_socket: UnixSocket | None = None,
    ) -> None:
        """Prepare to serve `application`; `start` binds the addresses and the Unix socket."""
        self._application = application
        self._listen = listen
        self._timeouts = timeouts
        self._access = access or AccessControl()
        self._unix_socket = unix_socket
        self._scrapes = scrapes
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="web-worker")
        self._receiving = _ClientPool(_MAX_RECEIVING)
        self._sending = _ClientPool(_MAX_SENDING)
        self._answering = 0
        self._scraping = 0
        self._stop: Future[None] = Future()
        self._thread: threading.Thread | None = None

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
        servers = [
            await asyncio.start_server(
                partial(self._handle_connection, access),
                sock=bound,
                limit=MAX_HEAD_BYTES,
                backlog=BACKLOG,
            )
            for bound, access in listening
        ]
        await asyncio.wrap_future(self._stop)
        for server in servers:
            server.close()
        self._workers.shutdown(wait=False, cancel_futures=True)
        for _, access in listening:
            access.passwords.stop()

    async def _handle_connection(
        self, access: AccessControl, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the requests of one connection, one after the other."""
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
        with self._receiving.add(stream.transport):
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
        with self._receiving.add(stream.transport):
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
        try:
            request = await self._accept_request(access, stream, http, policy)
        except _RejectedError as rejected:
            await self._send(stream, http, rejected.response, policy, close=rejected.closes)
        else:
            with self._count(request):
                response = await self._answer(request)
                await self._send(stream, http, response, policy, close=response is _FAILED)
        return http.is_reusable

    async def _answer(self, request: RequestHead) -> Reply:
        """Return the response of the application, which a worker calls."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._workers, self._application, request)
        except Exception:  # noqa: BLE001 -- a bug must not affect other requests
            _LOG.exception("cannot answer request", extra=fields(path=request.path))
            return _FAILED

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
        with self._sending.add(stream.transport):
            async with asyncio.timeout(self._timeouts.answer_s):
                await stream.send(head)
                await stream.send(body)

    async def _accept_request(
        self, access: AccessControl, stream: ByteStream, http: HttpConnection, policy: AccessPolicy
    ) -> RequestHead:
        """Return the request that was received. Raise _RejectedError if it is not answered."""
        if policy.config is None:
            raise _RejectedError(_BAD_WEB_CONFIG)
        if not access.within_rate(policy.config.rate_limit, time.monotonic()):
            raise _RejectedError(Reply(b"", 429))
        try:
            request = http.next_request()
        except BadRequestError as error:
            raise _RejectedError(Reply(b"", error.status)) from error
        if policy.config.users:
            await self._authenticate(access, request, policy.config.users, stream.peer)
        if self._answering >= _MAX_ANSWERING:
            raise _RejectedError(Reply(b"", 503))
        if self._is_scrape(request) and 0 < self._scrapes.most <= self._scraping:
            text = f"{self._scrapes.most} scrapes are already in progress; retry later.\n"
            raise _RejectedError(Reply(text.encode(), 503))
        return request

    async def _authenticate(
        self, access: AccessControl, request: RequestHead, users: Mapping[str, bytes], peer: str
    ) -> None:
        """Raise _RejectedError if the request has no password of one of `users`.

        The connection stays open: a new one costs more than another attempt.
        """
        authorization = request.headers.get("authorization", "").encode("latin-1")
        try:
            is_authenticated = await access.passwords.accept(users, authorization, peer)
        except TooManyAttemptsError as error:
            raise _RejectedError(Reply(b"", 503), closes=False) from error
        if not is_authenticated:
            response = Reply(b"", 401, (*PLAIN_TEXT, *_AUTHENTICATE))
            raise _RejectedError(response, closes=False)

    def _is_scrape(self, request: RequestHead) -> bool:
        return request.path == self._scrapes.path

    @contextmanager
    def _count(self, request: RequestHead) -> Iterator[None]:
        """Count a request as being answered."""
        is_scrape = self._is_scrape(request)
        self._answering += 1
        self._scraping += is_scrape
        try:
            yield
        finally:
            self._answering -= 1
            self._scraping -= is_scrape


class _ClientPool:
    """Connections whose client is waited for; above `most`, the oldest is disconnected."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[asyncio.WriteTransport, None] = {}

    @contextmanager
    def add(self, transport: asyncio.WriteTransport) -> Iterator[None]:
        """Keep a connection in the pool during the block."""
        if len(self._waiting) >= self._most:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.abort()
        self._waiting[transport] = None
        try:
            yield
        finally:
            self._waiting.pop(transport, None)


class _RejectedError(DiskslaError):
    """A request is answered without calling the application."""

    def __init__(self, response: Reply, *, closes: bool = True) -> None:
        super().__init__()
        self.response = response
        self.closes = closes
        """Whether the connection is closed after the response."""
