"""An HTTP server for tests that answers what a function returns, and keeps what was requested."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}  # noqa: RUF012 -- never changed


Answer = Callable[[Received], Reply | Iterable[bytes]]
"""Returns a reply, or the bytes of an answer that is no reply."""


class Server:
    """Answers in threads of its own until it is stopped."""

    def __init__(self, listening: socket.socket, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Received] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.command, self.path, headers, body)
                outer.requests.append(received)
                reply = outer.answer(received)
                with contextlib.suppress(OSError):  # the client may have left
                    self.send(reply)

            do_CONNECT = do_GET = do_POST = do_PUT = handle_any  # noqa: N815 -- names of the base class

            def send(self, reply: Reply | Iterable[bytes]) -> None:
                self.close_connection = True
                if not isinstance(reply, Reply):
                    for part in reply:
                        self.wfile.write(part)
                        self.wfile.flush()
                    return
                self.send_response_only(reply.status)
                for name, value in {
                    "content-length": str(len(reply.body)),
                    **reply.headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listening
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def serving(
    listening: socket.socket, answer: Answer, tls: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Yield a server on a listening socket."""
    if tls is not None:
        listening = tls.wrap_socket(listening, server_side=True, do_handshake_on_connect=False)
    server = Server(listening, answer)
    try:
        yield server
    finally:
        server.stop()
