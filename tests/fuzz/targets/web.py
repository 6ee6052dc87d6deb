"""What comes over the network, and the addresses that are listened on."""

import logging
import re
import socket
from collections.abc import Callable
from functools import cache

from disksla.errors import DiskslaError
from disksla.web.app import App
from disksla.web.listen import ListenAddress, parse_listen_address
from disksla.web.server import Timeouts, WebServer
from fuzz.target import Target
from support.snapshots import ABOUT, disk_view, view

PATIENCE_S = 20.0
STATUSES = {200, 400, 404, 405, 411, 413, 414, 417, 431, 501, 503, 505}
"""What a client may be told; 500 would be a fault of ours."""
_HEAD = re.compile(rb"HTTP/1\.[01] (\d{3}) [ -~]+\r\n((?:[!-~]+: [ -~]*\r\n)*)\r\n")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""What a client may ask to be told before it sends a body."""
_LENGTH = re.compile(rb"(?i)^content-length: (\d+)\r$", re.MULTILINE)


class _Errors(logging.Handler):
    """Keeps what the server logs as an error: an exception that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


@cache
def logged() -> _Errors:
    """Give the errors that were logged since this was first called."""
    handler = _Errors()
    for name in ("disksla.web", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    return handler


def a_site() -> App:
    """Give something to serve."""
    return App(
        lambda: view(disk_view()),
        lambda: ABOUT,
        healthy=lambda: True,
        ready=lambda: True,
        reload=lambda: None,
    )


@cache
def _port() -> int:
    """Begin to serve, until this process ends."""
    server = WebServer(a_site(), [ListenAddress("127.0.0.1", 0)], Timeouts(PATIENCE_S, PATIENCE_S))
    [bound] = server.start()
    return bound.port


def request(content: bytes) -> bool:
    """Every answer is whole and foreseen, and the next client is served."""
    statuses = statuses_in(_exchange(content))
    assert set(statuses) <= STATUSES, statuses
    assert b"\nhealthy\n" in _exchange(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not logged().said, logged().said
    return 200 in statuses


def statuses_in(rest: bytes) -> list[int]:
    """Give the statuses of whole answers, and nothing else."""
    statuses = []
    while rest:
        rest = rest.removeprefix(_CONTINUE)
        head = _HEAD.match(rest)
        assert head, rest[:200]
        statuses.append(int(head[1]))
        length = _LENGTH.search(head[2])
        assert length, head[0]
        # An answer to HEAD names the length of what it leaves out.
        body = rest[head.end() :]
        rest = body if body.startswith(b"HTTP/1.") else body[int(length[1]) :]
    return statuses


def _exchange(content: bytes) -> bytes:
    logged()
    with socket.create_connection(("127.0.0.1", _port()), timeout=PATIENCE_S) as client:
        return heard(client, content, lambda: client.shutdown(socket.SHUT_WR))


def heard(client: socket.socket, content: bytes, end: Callable[[], None]) -> bytes:
    """Send everything, `end` that, then listen to the end."""
    said = bytearray()
    try:
        client.sendall(content)
        end()
        while chunk := client.recv(65536):
            said += chunk
    except TimeoutError:
        raise
    except OSError:  # it was told to go away before it had said all
        pass
    return bytes(said)


def listen_address(content: bytes) -> bool:
    """It is read and written alike, or refused; a host is one that can be looked up."""
    text = content.decode(errors="surrogateescape")
    try:
        address = parse_listen_address(text)
    except DiskslaError as error:
        assert "is not an address to listen on" in str(error)
        return False
    assert parse_listen_address(str(address)) == address
    assert 0 <= address.port <= 65535
    assert address.host.isascii()
    assert address.host.isprintable()
    return True


def a_request(line: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([line, "Host: x", *headers, "", ""]).encode() + body


def requests() -> list[bytes]:
    openmetrics = "Accept: application/openmetrics-text;version=1.0.0"
    return [
        a_request("GET / HTTP/1.1"),
        a_request("GET /metrics?name[]=disksla_disk_info HTTP/1.1", "Accept-Encoding: gzip"),
        a_request("GET /metrics HTTP/1.0", openmetrics),
        a_request("HEAD /-/ready HTTP/1.1") + a_request("GET /-/healthy HTTP/1.1"),
        a_request("POST /-/reload HTTP/1.1", "Content-Length: 0") + a_request("GET / HTTP/1.0"),
        a_request(
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
        ),
    ),
    Target(
        "listen-address",
        listen_address,
        lambda: [b":10056", b"127.0.0.1:0", b"[::1]:9100", b"localhost:80", b"[fe80::1%eth0]:80"],
        words=(b"\xd9\xa1", b"[", b"]", b"%", b"..", b"a" * 64, b"xn--", b"\x00", b":"),
    ),
)
