"""Bytes sent to the web server."""

import logging
import re
import socket
from functools import cache

from disksla.serve.http_server.connection import ListenAddress
from disksla.serve.http_server.server import Timeouts, WebServer
from disksla.serve.pages.app import App, Controls
from fuzz.target import Target
from support.snapshots import ABOUT, disk_view, view

TIMEOUT_S = 20.0
STATUSES = {200, 400, 404, 405, 431, 501, 503, 505}
"""Statuses of valid responses; 500 would be a bug."""
_HEAD = re.compile(rb"HTTP/1\.[01] (\d{3}) [ -~]+\r\n((?:[!-~]+: [ -~]*\r\n)*)\r\n")
_LENGTH = re.compile(rb"(?i)^content-length: (\d+)\r$", re.MULTILINE)


class _Errors(logging.Handler):
    """Collects the errors that the server logs: unexpected exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@cache
def logged_errors() -> _Errors:
    """Return the errors that were logged since the first call."""
    handler = _Errors()
    for name in ("disksla.web", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    return handler


@cache
def _port() -> int:
    """Serve until this process ends, and return the port."""
    controls = Controls(lambda: True, lambda: True, lambda: None)
    app = App(lambda: view(disk_view()), lambda: ABOUT, controls=controls)
    server = WebServer(app, [ListenAddress("127.0.0.1", 0)], Timeouts(TIMEOUT_S, TIMEOUT_S))
    [bound] = server.start()
    return bound.port


def request(content: bytes) -> bool:
    """Every response is complete and expected, and the next client is served."""
    statuses = statuses_in(_exchange(content))
    assert set(statuses) <= STATUSES, statuses
    assert b"\nhealthy\n" in _exchange(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not logged_errors().lines, logged_errors().lines
    return 200 in statuses


def statuses_in(rest: bytes) -> list[int]:
    """Return the statuses of the responses; fail if they are incomplete or malformed."""
    statuses = []
    while rest:
        head = _HEAD.match(rest)
        assert head, rest[:200]
        statuses.append(int(head[1]))
        length = _LENGTH.search(head[2])
        assert length, head[0]
        # A response to HEAD has the length of the body that it leaves out.
        body = rest[head.end() :]
        rest = body if body.startswith(b"HTTP/1.") else body[int(length[1]) :]
    return statuses


def _exchange(content: bytes) -> bytes:
    """Send everything, then read to the end of the stream."""
    logged_errors()
    received = bytearray()
    with socket.create_connection(("127.0.0.1", _port()), timeout=TIMEOUT_S) as client:
        try:
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
            while chunk := client.recv(65536):
                received += chunk
        except TimeoutError:
            raise
        except OSError:  # disconnected before everything was sent
            pass
    return bytes(received)


def make_request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: x", *headers, "", ""]).encode() + body


def requests() -> list[bytes]:
    openmetrics = "Accept: application/openmetrics-text;version=1.0.0"
    return [
        make_request("GET / HTTP/1.1"),
        make_request("GET /metrics?name[]=disksla_disk_info HTTP/1.1", "Accept-Encoding: gzip"),
        make_request("GET /metrics HTTP/1.0", openmetrics),
        make_request("HEAD /-/ready HTTP/1.1") + make_request("GET /-/healthy HTTP/1.1"),
        make_request("POST /-/reload HTTP/1.1", "Content-Length: 0")
        + make_request("GET / HTTP/1.0"),
        make_request(
            "POST /-/reload HTTP/1.1", "Transfer-Encoding: chunked", body=b"2\r\nhi\r\n0\r\n\r\n"
        ),
    ]


TARGETS = (
    Target(
        "request",
        request,
        requests,
        words=(
            *(b"GET ", b" HTTP/1.1\r\n", b"\r\n\r\n", b"Content-Length: ", b"X: " + b"y" * 9000),
            *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"a: b\r\n" * 500),
            *(b"ffffffffffffffff\r\n", b"%00", b"%2f..%2f", b"//", b"http://[", b"*", b"&" * 2000),
            *(b"Accept: ", b"version=abc", b"?name[]=", b"Connection: keep-alive\r\n"),
            *(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"Host: x\r\n"),
            *(b"\r\n ", b" " * 9000 + b"\x0b", b"Content-Length: 4, 5\r\n", b"Upgrade: h2c\r\n"),
        ),
    ),
)
