"""The web server: asyncio moves the bytes, cheroot reads requests, a few workers answer them.

A server that hands each connection to a worker, which then reads from the socket, is stopped by
as many slow clients as it has workers, and no time-out helps: they come back. So nobody here ever
waits for a client but one event loop, to which a waiting client costs a few kilobytes:

- A worker is given a request only when the last byte of its head has come, and hands back the
  whole answer. Its work is bounded by our own code.
- A client has only so long, in all, to send the head of a request and to take the answer
  (`Patience`), however its bytes are spread over that time.
- When too many clients are waited for, the one that has been waited for longest is dropped, so
  that a newcomer, such as a scrape, always gets in. Agreeing on TLS counts as waiting.
- Whether a request is to be answered (`Access`) is settled before a worker has it. Passwords are
  held against their hashes by a thread that does nothing else.

Bodies are not read: nothing here takes one. An answer to a request that announced a body is the
last of its connection.
"""

import asyncio
import io
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from wsgiref.types import WSGIApplication

from cheroot.server import HTTPConnection, HTTPRequest
from cheroot.wsgi import Server

from disksla.errors import DiskslaError
from disksla.system.log import fields
from disksla.web.access import AccessControl, AccessPolicy, HeaderLines
from disksla.web.basic_auth import TooManyAttemptsError
from disksla.web.connection import Connection, TlsConnection
from disksla.web.listen import BACKLOG, Listen, ListenAddress, bind, bound_address
from disksla.web.tls import names_of

_LOG = logging.getLogger("disksla.web")

_STOP_S = 1.0

_LARGEST_HEAD_BYTES = 16 * 1024
_MOST_RECEIVING = 200
_MOST_SENDING = 16
"""Fewer, since each holds an answer in memory."""
_MOST_ANSWERING = 128
"""Requests with a worker or waiting for one; more than this are told to come back (503)."""
_WORKERS = 2
"""One for a scrape and one for the rest: more would only contend with the sampler for the GIL."""

_TLS_INTERNAL_ERROR = bytes.fromhex("15 0303 0002 02 50")
"""An alert record with the fatal alert 80 (RFC 8446): what Go's servers say in such a case."""
_IN_CLEAR = "This port speaks HTTPS, and the request was sent in clear.\n"
_BAD_WEB_CONFIG = "The web configuration is wrong; the log says what.\n"
_FOLDED = re.compile(rb"\r\n[ \t]")
"""A header that goes on in the next line, which nobody sends and RFC 9112 (5.2) lets us refuse."""


class Timeouts(NamedTuple):
    """How long a client is waited for, in seconds."""

    handshake_s: float = 5.0
    """For agreeing on TLS."""
    head_s: float = 5.0
    """For the whole head of a request, of a new connection or from its first byte on."""
    answer_s: float = 10.0
    """For the whole answer to be taken."""
    idle_s: float = 90.0
    """For the next request; longer than usual scrape intervals, to let Prometheus stay."""


DEFAULT_TIMEOUTS = Timeouts()


class ScrapeLimit(NamedTuple):
    """How many scrapes are answered at once."""

    path: str = "/metrics"
    most: int = 40
    """As node_exporter has it; 0 for no limit of its own."""


DEFAULT_SCRAPE_LIMIT = ScrapeLimit()


class WebServer:
    """Serves a WSGI application on some addresses, from a thread of its own."""

    def __init__(
        self,
        application: WSGIApplication,
        listen: Sequence[Listen],
        patience: Timeouts = DEFAULT_TIMEOUTS,
        access: AccessControl | None = None,
        scrapes: ScrapeLimit = DEFAULT_SCRAPE_LIMIT,
    ) -> None:
        """Prepare to serve `application`; nothing is bound before `start`."""
        self._listen = listen
        self._patience = patience
        self._access = access or AccessControl()
        self._scrapes = scrapes
        self._answerer = _Answerer(application)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="web-worker")
        self._receiving = _ClientPool(_MOST_RECEIVING)
        self._sending = _ClientPool(_MOST_SENDING)
        self._answering = 0
        self._scraping = 0
        self._stop: Future[None] = Future()
        self._thread: threading.Thread | None = None

    def start(self) -> tuple[ListenAddress, ...]:
        """Bind and begin to serve; give the addresses bound, with the ports the kernel chose.

        Raises Refusal, naming the address, where one cannot be had.
        """
        sockets: list[socket.socket] = []
        try:
            for place in self._listen:
                sockets.append(bind(place))  # noqa: PERF401 -- those bound must be closed
        except DiskslaError:
            for bound in sockets:
                bound.close()
            raise
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._serve(sockets),), name="web", daemon=True
        )
        self._thread.start()
        return tuple(
            bound_address(place, bound) for place, bound in zip(self._listen, sockets, strict=True)
        )

    def stop(self) -> None:
        """Close every connection, and return when that is done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set_result(None)
            thread.join(_STOP_S)

    async def _serve(self, sockets: list[socket.socket]) -> None:
        servers = [
            await asyncio.start_server(
                self._converse, sock=bound, limit=_LARGEST_HEAD_BYTES, backlog=BACKLOG
            )
            for bound in sockets
        ]
        await asyncio.wrap_future(self._stop)
        for server in servers:
            server.close()
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._access.passwords.stop()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        guard = self._access.guard()
        wire = Connection(reader, writer)
        if guard.is_open and guard.context is not None:
            wire = TlsConnection(reader, writer, guard.context)
        try:
            with suppress(OSError, TimeoutError, EOFError, asyncio.CancelledError):
                keep = not self._access.speaks_tls or await self._agree(wire, guard)
                idle_s = 0.0
                while keep:
                    keep = await self._exchange(wire, idle_s)
                    idle_s = self._patience.idle_s
        finally:
            wire.close()

    async def _agree(self, wire: Connection, guard: AccessPolicy) -> bool:
        """Agree with a client on TLS; say whether it may ask for something."""
        with self._receiving.joined_by(wire.transport):
            async with asyncio.timeout(self._patience.handshake_s):
                if not isinstance(wire, TlsConnection):
                    await wire.receive()
                    await wire.send(_TLS_INTERNAL_ERROR)
                    return False
                try:
                    await wire.shake_hands()
                except ssl.SSLError as error:
                    _LOG.debug("TLS handshake failed", extra=fields(client=wire.peer, err=error))
                    if error.reason == "HTTP_REQUEST":
                        await wire.send_in_clear(_brief_answer("400 Bad Request", _IN_CLEAR))
                    return False
        if guard.allowed_names is None:
            return True
        names = names_of(wire.certificate())
        if names & guard.allowed_names:
            return True
        _LOG.debug(
            "client certificate not allowed",
            extra=fields(client=wire.peer, names=sorted(names)),
        )
        return False

    async def _exchange(self, wire: Connection, idle_s: float) -> bool:
        """Answer one request; say whether another may follow."""
        head = await self._receive(wire, idle_s)
        guard = self._access.guard()
        if not self._access.covers(wire.context):
            return False  # it was made before TLS was asked for, or by other certificates
        try:
            exchange = await self._admit(head, wire, guard)
        except _RejectedError as turned_away:
            await self._send(wire, turned_away.answer)
            return turned_away.keeps
        with self._counted(exchange):
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._workers, exchange.answer)
            await self._send(wire, answer)
        return not exchange.request.close_connection

    async def _receive(self, wire: Connection, idle_s: float) -> bytes:
        """Give the head of the next request; empty where it is too large."""
        with self._receiving.joined_by(wire.transport):
            if idle_s:
                async with asyncio.timeout(idle_s):
                    await wire.begun()
            async with asyncio.timeout(self._patience.head_s):
                return await wire.head(_LARGEST_HEAD_BYTES)

    async def _send(self, wire: Connection, answer: bytes) -> None:
        with self._sending.joined_by(wire.transport):
            async with asyncio.timeout(self._patience.answer_s):
                await wire.send(answer)

    async def _admit(self, head: bytes, wire: Connection, guard: AccessPolicy) -> "_Exchange":
        """Give the request that a head is, if it is to be answered; raises _TurnedAway."""
        if not head:
            raise _RejectedError(_brief_answer("431 Request Header Fields Too Large"))
        if guard.config is None:
            raise _RejectedError(_brief_answer("500 Internal Server Error", _BAD_WEB_CONFIG))
        if not self._access.within_rate(guard.config.rate_limit, time.monotonic()):
            raise _RejectedError(_brief_answer("429 Too Many Requests"))
        exchange = _Exchange(self._answerer, head, wire.peer, guard.headers)
        exchange.understand()
        if guard.config.users:
            await self._know(exchange, guard.config.users, guard.headers)
        if self._answering >= _MOST_ANSWERING:
            raise _RejectedError(_brief_answer("503 Service Unavailable", "", guard.headers))
        if self._is_scrape(exchange) and 0 < self._scrapes.most <= self._scraping:
            text = f"{self._scrapes.most} scrapes are being answered; come back later.\n"
            raise _RejectedError(_brief_answer("503 Service Unavailable", text, guard.headers))
        return exchange

    async def _know(
        self, exchange: "_Exchange", users: Mapping[str, bytes], headers: HeaderLines
    ) -> None:
        """Turn away whoever does not show that it is one of `users`."""
        try:
            is_known = await self._access.passwords.accept(
                users, exchange.request.inheaders.get(b"Authorization", b""), exchange.remote_addr
            )
        except TooManyAttemptsError:
            is_known = None
        if is_known:
            return
        asked = (b"WWW-Authenticate", b'Basic realm="disksla"')
        status, said = (
            ("503 Service Unavailable", headers)
            if is_known is None
            else ("401 Unauthorized", (*headers, asked))
        )
        keeps = not exchange.request.close_connection  # to make another costs more than to ask
        raise _RejectedError(_brief_answer(status, "", said, keeps=keeps), keeps=keeps)

    def _is_scrape(self, exchange: "_Exchange") -> bool:
        path: bytes = exchange.request.path
        return path == self._scrapes.path.encode()

    @contextmanager
    def _counted(self, exchange: "_Exchange") -> Iterator[None]:
        """Count a request among those that are being answered."""
        is_scrape = self._is_scrape(exchange)
        self._answering += 1
        self._scraping += is_scrape
        try:
            yield
        finally:
            self._answering -= 1
            self._scraping -= is_scrape


class _ClientPool:
    """Connections whose client is waited for; above `most`, the oldest is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waited_for: dict[asyncio.WriteTransport, None] = {}

    @contextmanager
    def joined_by(self, transport: asyncio.WriteTransport) -> Iterator[None]:
        if len(self._waited_for) >= self._most:
            oldest = next(iter(self._waited_for))
            del self._waited_for[oldest]
            oldest.abort()
        self._waited_for[transport] = None
        try:
            yield
        finally:
            self._waited_for.pop(transport, None)


class _RejectedError(DiskslaError):
    """The application is not to see a request."""

    def __init__(self, answer: bytes, *, keeps: bool = False) -> None:
        super().__init__()
        self.answer = answer
        self.keeps = keeps
        """Whether another request may follow."""


class _Answerer(Server):
    """cheroot without its sockets and threads."""

    def __init__(self, application: WSGIApplication) -> None:
        super().__init__(("localhost", 0), application, server_name="disksla")
        self.software = "disksla"
        self.max_request_header_size = _LARGEST_HEAD_BYTES

    @property
    def can_add_keepalive_connection(self) -> bool:
        return True

    def error_log(
        self,
        msg: str = "",
        level: int = logging.INFO,
        traceback: bool = False,  # noqa: FBT001, FBT002 -- cheroot calls it so
    ) -> None:
        _LOG.log(level, "%s", msg, exc_info=traceback)


class _Request(HTTPRequest):
    """A request whose body stays unread, so that none can follow it."""

    def read_request_line(self) -> bool:
        try:
            understood: bool = super().read_request_line()  # type: ignore[no-untyped-call]  # same
        except ValueError:  # of the standard library, about http://[
            self.simple_response("400 Bad Request")
            return False
        return understood

    def read_request_headers(self) -> bool:
        if _FOLDED.search(self.conn.rfile.getvalue()):
            self.simple_response("400 Bad Request")
            return False
        understood: bool = super().read_request_headers()  # type: ignore[no-untyped-call]  # same
        if self.chunked_read or self.inheaders.get(b"Content-Length", b"0") != b"0":
            self.close_connection = True
        return understood

    def send_headers(self) -> None:
        """Let what the web configuration says stand in place of our own."""
        said = {name.lower() for name, _ in self.conn.headers}
        own = [pair for pair in self.outheaders if pair[0].lower() not in said]
        self.outheaders = [*own, *self.conn.headers]
        super().send_headers()


class _Exchange(HTTPConnection):
    """One request and its answer, in memory."""

    def __init__(self, server: Server, head: bytes, peer: Any, headers: HeaderLines) -> None:
        files = {"rb": io.BytesIO(head), "wb": io.BytesIO()}
        super().__init__(server, None, lambda _socket, mode, _size: files[mode])
        self.remote_addr = ""
        if isinstance(peer, tuple):
            self.remote_addr, self.remote_port = peer[:2]
        self.headers = headers
        self.request = _Request(server, self)

    def understand(self) -> None:
        """Read the head; raises _TurnedAway where it is none."""
        try:
            self.request.parse_request()
        except Exception as error:
            raise _RejectedError(self._failed(error)) from error
        if not self.request.ready:
            raise _RejectedError(self._said())

    def answer(self) -> bytes:
        """Let the application answer."""
        try:
            self.request.respond()
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, others are answered
            return self._failed(error)
        return self._said()

    def _said(self) -> bytes:
        said: bytes = self.wfile.getvalue()
        self.wfile.close()  # cheroot's objects point at each other and live on for a while
        return said

    def _failed(self, error: Exception) -> bytes:
        self.server.error_log(repr(error), level=logging.ERROR, traceback=True)
        self.request.close_connection = True
        return _brief_answer("500 Internal Server Error")


def _brief_answer(
    status: str, text: str = "", headers: HeaderLines = (), *, keeps: bool = False
) -> bytes:
    """Give an answer of few words; with any, it is to be the last of its connection."""
    own = (
        (b"Content-Type", b"text/plain; charset=utf-8"),
        (b"Content-Length", str(len(text)).encode()),
        (b"Connection", b"keep-alive" if keeps else b"close"),
    )
    lines = [b"HTTP/1.1 " + status.encode(), *(b": ".join(pair) for pair in (*headers, *own))]
    return b"\r\n".join([*lines, b"", text.encode()])
