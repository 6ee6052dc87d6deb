"""The server, over real sockets; also where the process has no descriptors left."""

import errno
import http.client
import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from disksla.base.errors import DiskslaError
from disksla.serve.http_server.connection import ListenAddress, parse_listen_address
from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.server import DEFAULT_TIMEOUTS, Timeouts, WebServer
from support.log_events import events
from support.waiting import eventually

Logged = pytest.LogCaptureFixture

LOOPBACK = ListenAddress("127.0.0.1", 0)
ENDLESS = Timeouts(head_s=3600.0, answer_s=3600.0, idle_s=3600.0)
"""A server that waited for a client would be noticed."""
LARGE = b"x" * 4_000_000
"""More than the kernel buffers for a client that reads nothing."""


def application(request: RequestHead) -> Reply:
    if request.path == "/broken":
        raise RuntimeError("broken on purpose")
    return Reply(LARGE if request.path == "/large" else f"{request.path}\n".encode())


@contextmanager
def serving(
    *listen: ListenAddress, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> Iterator[tuple[ListenAddress, ...]]:
    server = WebServer(application, listen, timeouts)
    bound = server.start()
    try:
        yield bound
    finally:
        server.stop()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(LOOPBACK) as (bound,):
        yield bound.port


def get(port: int, path: str = "/hello", timeout: float = 20) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def connect_without_reading(port: int) -> socket.socket:
    """Return a client that requests a large response and does not read it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def read_to_end(client: socket.socket) -> bytes:
    received = b""
    while chunk := client.recv(65536):
        received += chunk
    return received


def exchange(port: int, request: bytes) -> bytes:
    with connect(port) as client:
        client.sendall(request)
        return read_to_end(client)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":10056", "", 10056),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:9100", "::1", 9100),
        ("localhost:80", "localhost", 80),
    ],
)
def test_listen_address_round_trip(text: str, host: str, port: int) -> None:
    address = parse_listen_address(text)
    assert address == ListenAddress(host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10056",
        "::1:80",
        "host:",
        "host:65536",
        "[::1]",
        "[80%1]:80",
        "a:b:80",
        "a b:80",
        "a\0:80",
        "\u0661:80",
        ":\u0661",
    ],
)
def test_listen_address_rejects_other_text(text: str) -> None:
    with pytest.raises(DiskslaError, match=r"invalid listen address '.*': expected HOST:PORT"):
        parse_listen_address(text)


def test_start_names_an_address_in_use() -> None:
    with serving(LOOPBACK) as (bound,), pytest.raises(DiskslaError) as error:
        WebServer(application, [LOOPBACK, bound]).start()
    assert str(error.value) == f"cannot listen on 127.0.0.1:{bound.port}: Address already in use"


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("no-such-host.invalid", r"cannot listen on no-such-host\.invalid:80: "),
        ("a" * 64, r"cannot listen on a{64}:80: .*label too long"),
    ],
)
def test_start_rejects_a_host_that_is_not_known(host: str, message: str) -> None:
    with pytest.raises(DiskslaError, match=message):
        WebServer(application, [ListenAddress(host, 80)]).start()


def test_several_addresses_are_served() -> None:
    with serving(LOOPBACK, LOOPBACK) as (one, other):
        assert one.port != other.port
        assert get(one.port)[0] == get(other.port)[0] == 200


def test_empty_host_is_every_address() -> None:
    with serving(ListenAddress("", 0)) as (bound,):
        assert get(bound.port) == (200, b"/hello\n")
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", bound.port), timeout=5) as client:
                client.sendall(b"GET /six HTTP/1.0\r\n\r\n")
                assert read_to_end(client).endswith(b"/six\n")


def test_connection_is_kept_for_further_requests(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.connect()
    first = connection.sock
    for method in ("GET", "HEAD", "GET"):
        connection.request(method, "/again")
        response = connection.getresponse()
        assert response.getheader("Server") == "disksla"
        assert response.getheader("Content-Length") == str(len("/again\n"))
        assert response.read() == (b"" if method == "HEAD" else b"/again\n")
        assert connection.sock is first
    connection.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 4000 + b"\r\n", b"431"),
        (b"GET /%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"200"),
    ],
)
def test_odd_request_is_answered_and_disconnected(
    port: int, request_bytes: bytes, status: bytes
) -> None:
    assert exchange(port, request_bytes).split()[1] == status
    assert get(port)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 1000000\r\n\r\npart of it",
        b"Content-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n",
    ],
)
def test_body_is_not_read_as_a_request(port: int, body: bytes) -> None:
    received = exchange(port, b"POST /posted HTTP/1.1\r\nHost: x\r\n" + body)
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert received.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in received


def test_application_error_is_500_and_logged(port: int, caplog: Logged) -> None:
    assert get(port, "/broken")[0] == 500
    assert get(port)[0] == 200
    assert "broken on purpose" in caplog.text
    assert {record.name for record in caplog.records} == {"disksla.web"}


def test_slow_and_idle_clients_do_not_block_others() -> None:
    with serving(LOOPBACK, timeouts=ENDLESS) as (bound,), ExitStack() as opened:
        for begun in (b"", b"G") * 150:
            opened.enter_context(connect(bound.port)).sendall(begun)
        for _ in range(40):
            opened.enter_context(connect_without_reading(bound.port))
        assert [get(bound.port, "/metrics")[0] for _ in range(30)] == [200] * 30


def test_head_timeout_holds_for_the_whole_head() -> None:
    with (
        serving(LOOPBACK, timeouts=Timeouts(head_s=0.3)) as (bound,),
        connect(bound.port) as client,
    ):
        client.settimeout(0.05)
        begun_s = time.monotonic()
        assert eventually(lambda: is_disconnected_after_a_byte(client), 20)
        assert time.monotonic() - begun_s > 0.25


def is_disconnected_after_a_byte(client: socket.socket) -> bool:
    try:
        client.sendall(b"G")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_idle_connection_is_closed_after_the_timeout() -> None:
    with (
        serving(LOOPBACK, timeouts=Timeouts(idle_s=0.2)) as (bound,),
        connect(bound.port) as client,
    ):
        client.sendall(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_to_end(client).endswith(b"/one\n")


def test_response_that_is_not_read_is_abandoned() -> None:
    with (
        serving(LOOPBACK, timeouts=Timeouts(answer_s=0.2)) as (bound,),
        connect_without_reading(bound.port) as client,
    ):
        assert client.recv(1) == b"H"
        time.sleep(0.4)
        with suppress(ConnectionResetError):
            assert len(read_to_end(client)) < len(LARGE)


def test_stop_before_start_and_twice_is_harmless() -> None:
    server = WebServer(application, [LOOPBACK])
    server.stop()
    server.start()
    server.stop()
    server.stop()


def test_stop_closes_open_connections() -> None:
    server = WebServer(application, [LOOPBACK], ENDLESS)
    (bound,) = server.start()
    with connect(bound.port) as idle, connect_without_reading(bound.port) as not_reading:
        assert not_reading.recv(1) == b"H"
        server.stop()
        assert idle.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(bound.port)


def test_stop_frees_the_port() -> None:
    with serving(LOOPBACK) as (bound,):
        assert get(bound.port)[0] == 200
    with serving(bound) as (again,):
        assert again == bound
        assert get(bound.port)[0] == 200


PATIENCE_S = 20
FEW = 4


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Let this process open a few more files only."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened:
        used = [os.open("/dev/null", os.O_RDONLY) for _ in range(FEW)]
        for descriptor in used:
            opened.callback(os.close, descriptor)
        limit = max(used) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_used_up_descriptors_are_logged_once_and_counted(caplog: Logged) -> None:
    caplog.set_level("INFO", "disksla.web")
    server = WebServer(lambda _: Reply(b"here\n"), [ListenAddress("127.0.0.1", 0)])
    [bound] = server.start()
    with ExitStack() as opened:
        opened.callback(server.stop)
        clients = [opened.enter_context(socket.socket()) for _ in range(40)]
        assert server.health.works
        with socket.create_connection(("127.0.0.1", bound.port), PATIENCE_S) as first:
            first.sendall(b"GET / HTTP/1.0\r\n\r\n")  # the server has opened its own files
            assert first.recv(100).startswith(b"HTTP/1.1 200")
        with few_descriptors():
            for client in clients:
                client.settimeout(PATIENCE_S)
                client.connect(("127.0.0.1", bound.port))
            clients[-1].sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert clients[-1].recv(100).startswith(b"HTTP/1.1 200")
            assert eventually(lambda: server.health.errors >= len(clients) - FEW, PATIENCE_S)
        health = server.health
    reason = os.strerror(errno.EMFILE)
    assert health.works is False
    assert health.problem == f"cannot accept connections: {reason}"
    assert events(caplog) == [("warning", "cannot accept connections", {"err": reason})]
