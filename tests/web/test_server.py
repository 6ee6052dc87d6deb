"""The server, over real sockets."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Self
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from disksla.errors import DiskslaError
from disksla.web.listen import ListenAddress, parse_listen_address
from disksla.web.server import DEFAULT_TIMEOUTS, Timeouts, WebServer

LOOPBACK = ListenAddress("127.0.0.1", 0)
ENDLESS = Timeouts(head_s=3600.0, answer_s=3600.0, idle_s=3600.0)
"""Whoever waited for a client would be seen to."""
LARGE = b"x" * 4_000_000
"""More than the kernel buffers for a client that reads nothing."""


def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    body = LARGE if environ["PATH_INFO"] == "/large" else f"{environ['PATH_INFO']}\n".encode()
    if environ["PATH_INFO"] == "/broken":
        raise RuntimeError("broken on purpose")
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


@contextmanager
def serving(
    *listen: ListenAddress, patience: Timeouts = DEFAULT_TIMEOUTS
) -> Iterator[tuple[ListenAddress, ...]]:
    server = WebServer(application, listen, patience)
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


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def deaf(port: int) -> socket.socket:
    """Give a client that asks for much and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def said_until_closed(client: socket.socket) -> bytes:
    said = b""
    while chunk := client.recv(65536):
        said += chunk
    return said


def exchange(port: int, request: bytes) -> bytes:
    with connected(port) as client:
        client.sendall(request)
        return said_until_closed(client)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":10056", "", 10056),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:9100", "::1", 9100),
        ("localhost:80", "localhost", 80),
    ],
)
def test_listen_addresses_are_read_and_written_alike(text: str, host: str, port: int) -> None:
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
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(DiskslaError, match=r"is not an address to listen on: expected HOST:PORT"):
        parse_listen_address(text)


def test_an_address_in_use_is_refused_by_name() -> None:
    with serving(LOOPBACK) as (bound,), pytest.raises(DiskslaError) as refused:
        WebServer(application, [LOOPBACK, bound]).start()
    assert str(refused.value) == f"cannot listen on 127.0.0.1:{bound.port}: Address already in use"


def test_a_name_that_is_not_known_is_refused() -> None:
    with pytest.raises(DiskslaError, match=r"cannot listen on no-such-host\.invalid:80: "):
        WebServer(application, [ListenAddress("no-such-host.invalid", 80)]).start()


def test_a_name_that_no_name_server_could_have_is_refused() -> None:
    with pytest.raises(DiskslaError, match=r"cannot listen on a{64}:80: .*label too long"):
        WebServer(application, [parse_listen_address(f"{'a' * 64}:80")]).start()


def test_several_addresses_are_served_at_once() -> None:
    with serving(LOOPBACK, LOOPBACK) as (one, other):
        assert one.port != other.port
        assert get(one.port)[0] == get(other.port)[0] == 200


def test_an_empty_host_is_every_address() -> None:
    with serving(ListenAddress("", 0)) as (bound,):
        assert get(bound.port) == (200, b"/hello\n")
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", bound.port), timeout=5) as client:
                client.sendall(b"GET /six HTTP/1.0\r\n\r\n")
                assert said_until_closed(client).endswith(b"/six\n")


def test_a_connection_serves_many_requests(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.connect()
    first = connection.sock
    for method in ("GET", "HEAD", "GET"):
        connection.request(method, "/again")
        response = connection.getresponse()
        assert response.getheader("Server") == "disksla"
        assert response.read() == (b"" if method == "HEAD" else b"/again\n")
        assert connection.sock is first
    connection.close()


def test_requests_sent_together_are_answered_in_turn(port: int) -> None:
    request = b"GET /%d HTTP/1.1\r\nHost: x\r\n%s\r\n"
    said = exchange(port, request % (1, b"") + request % (2, b"Connection: close\r\n"))
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert said.index(b"/1\n") < said.index(b"/2\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 4000 + b"\r\n", b"431"),
        (b"GET /\xff HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n folded: from nothing\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\ty\r\n\r\n", b"400"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /%ff HTTP/1.1\r\nConnection: close\r\n\r\n", b"200"),
    ],
)
def test_odd_requests_are_answered_and_dropped(
    port: int, request_bytes: bytes, status: bytes
) -> None:
    assert exchange(port, request_bytes).split()[1] == status
    assert get(port)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"Content-Length: 4\r\n\r\nbody",
        b"Content-Length: 1000000\r\n\r\npart of it",
        b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    ],
)
def test_nothing_is_taken_for_a_request_that_is_a_body(port: int, body: bytes) -> None:
    said = exchange(port, b"POST /posted HTTP/1.1\r\nHost: x\r\n" + body)
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert said.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in said


def test_an_empty_body_keeps_the_connection(port: int) -> None:
    with connected(port) as client:
        for _ in range(2):
            client.sendall(b"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            said = b""
            while not said.endswith(b"/p\n"):
                said += client.recv(4096)


def test_a_broken_application_answers_500_and_goes_on(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert get(port, "/broken")[0] == 500
    assert get(port)[0] == 200
    assert "broken on purpose" in caplog.text
    assert {record.name for record in caplog.records} == {"disksla.web"}


def test_a_head_sent_byte_by_byte_is_understood(port: int) -> None:
    with connected(port) as client:
        for byte in b"GET /slow HTTP/1.0\r\n\r\n":
            client.sendall(bytes([byte]))
        assert said_until_closed(client).endswith(b"/slow\n")


class SlowClients:
    """Clients that send a byte now and then and come back when dropped."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._count = count
        self._stop = threading.Event()
        self.connections_made = 0
        self._thread = threading.Thread(target=self._bother)

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.connections_made >= self._count)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _bother(self) -> None:
        clients: list[socket.socket] = []
        while not self._stop.is_set():
            while len(clients) < self._count:
                clients.append(connected(self._port))
                self.connections_made += 1
            for client in list(clients):
                try:
                    client.sendall(b"G")
                except OSError:
                    clients.remove(client)
                    client.close()
            self._stop.wait(0.2)
        for client in clients:
            client.close()


def wait_until(condition: Callable[[], Any], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_slow_and_idle_and_deaf_clients_disturb_nobody() -> None:
    with (
        serving(LOOPBACK, patience=ENDLESS) as (bound,),
        ExitStack() as opened,
        SlowClients(bound.port, 50),
    ):
        for _ in range(300):
            opened.enter_context(connected(bound.port))
        for _ in range(40):
            opened.enter_context(deaf(bound.port))
        assert [get(bound.port)[0] for _ in range(30)] == [200] * 30


def test_a_flood_of_requests_is_told_to_come_back() -> None:
    gate = threading.Event()

    def waiting(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        gate.wait(20)
        return application(environ, start_response)

    server = WebServer(waiting, [LOOPBACK])
    (bound,) = server.start()
    with ExitStack() as opened:
        opened.callback(server.stop)
        opened.callback(gate.set)
        flood = [opened.enter_context(connected(bound.port)) for _ in range(128)]
        for client in flood:
            client.sendall(b"GET /in HTTP/1.0\r\n\r\n")
        wait_until(lambda: get(bound.port)[0] == 503)
        gate.set()
        assert all(said_until_closed(client).endswith(b"/in\n") for client in flood)


def test_a_head_has_so_long_in_all_however_its_bytes_come() -> None:
    with (
        serving(LOOPBACK, patience=Timeouts(head_s=0.3)) as (bound,),
        connected(bound.port) as client,
    ):
        client.settimeout(0.05)
        begun_s = time.monotonic()
        wait_until(lambda: dropped_after_another_byte(client))
        assert time.monotonic() - begun_s > 0.25


def dropped_after_another_byte(client: socket.socket) -> bool:
    try:
        client.sendall(b"G")
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_connection_may_be_idle_for_so_long_between_requests() -> None:
    with (
        serving(LOOPBACK, patience=Timeouts(idle_s=0.2)) as (bound,),
        connected(bound.port) as client,
    ):
        client.sendall(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
        assert said_until_closed(client).endswith(b"/one\n")


def test_an_answer_that_is_not_taken_is_given_up() -> None:
    with (
        serving(LOOPBACK, patience=Timeouts(answer_s=0.2)) as (bound,),
        deaf(bound.port) as client,
    ):
        assert client.recv(1) == b"H"
        begun_s = time.monotonic()
        with suppress(ConnectionResetError):
            wait_until(lambda: time.monotonic() - begun_s > 0.4)
            assert len(said_until_closed(client)) < len(LARGE)


def test_stopping_twice_or_before_the_start_is_harmless() -> None:
    server = WebServer(application, [LOOPBACK])
    server.stop()
    server.start()
    server.stop()
    server.stop()


def test_stopping_closes_what_is_open() -> None:
    server = WebServer(application, [LOOPBACK], ENDLESS)
    (bound,) = server.start()
    with connected(bound.port) as idle, deaf(bound.port) as reading_nothing_more:
        assert reading_nothing_more.recv(1) == b"H"
        server.stop()
        assert idle.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(bound.port)


def test_the_port_is_free_again_after_a_stop() -> None:
    with serving(LOOPBACK) as (bound,):
        assert get(bound.port)[0] == 200
    with serving(bound) as (again,):
        assert again == bound
        assert get(bound.port)[0] == 200
