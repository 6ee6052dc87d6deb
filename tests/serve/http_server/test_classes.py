"""Who waits for whom: classes of requests over real sockets, without clocks."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from disksla.serve.http_server.connection import ListenAddress
from disksla.serve.http_server.http_protocol import Reply, RequestHead, ServiceClass
from disksla.serve.http_server.server import DEFAULT_TIMEOUTS, Timeouts, WebServer
from disksla.serve.http_server.turns import MOST_SCRAPES
from support.waiting import eventually

PATIENCE_S = 20
CLASSES: tuple[ServiceClass, ...] = ("health", "scrape", "page", "change")
WORKED: tuple[ServiceClass, ...] = ("scrape", "page", "change")


class Blocking:
    """An application that blocks in `/CLASS/blocked` until the gate is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.blocked = 0

    def __call__(self, request: RequestHead) -> Reply:
        if request.path.endswith("/blocked"):
            self.blocked += 1
            assert self.gate.wait(PATIENCE_S)
        return Reply(f"{request.path}\n".encode())


def class_of(request: RequestHead) -> ServiceClass:
    name = request.path.split("/")[1]
    return next(each for each in CLASSES if each == name)


class Client:
    """A running server, and clients of it."""

    def __init__(self, port: int, application: Blocking, opened: ExitStack) -> None:
        self.application = application
        self.port, self._opened = port, opened

    def begin(self, path: str, source: str = "127.0.0.1") -> http.client.HTTPConnection:
        """Send a request from an address of loopback."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE_S, source_address=(source, 0)
        )
        self._opened.callback(connection.close)
        connection.request("GET", path)
        return connection

    def get(self, path: str, source: str = "127.0.0.1") -> int:
        response = self.begin(path, source).getresponse()
        response.read()
        return response.status

    def block(self, service_class: str) -> http.client.HTTPConnection:
        """Send a request that blocks, and wait until its worker has it."""
        before = self.application.blocked
        connection = self.begin(f"/{service_class}/blocked")
        assert eventually(lambda: self.application.blocked > before, PATIENCE_S)
        return connection


@contextmanager
def serving(
    most_scrapes: int = MOST_SCRAPES, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> Iterator[Client]:
    application, listen = Blocking(), [ListenAddress("127.0.0.1", 0)]
    server = WebServer(application, listen, timeouts, class_of=class_of, most_scrapes=most_scrapes)
    [bound] = server.start()
    with ExitStack() as opened:
        opened.callback(server.stop)
        opened.callback(application.gate.set)
        yield Client(bound.port, application, opened)


@pytest.mark.parametrize("blocked", WORKED)
def test_no_class_waits_for_another(blocked: ServiceClass) -> None:
    with serving() as client:
        client.block(blocked)
        others = [each for each in CLASSES if each != blocked]
        assert [client.get(f"/{each}/free") for each in others] == [200, 200, 200]


@pytest.mark.parametrize("service_class", WORKED)
def test_beyond_a_few_that_wait_is_503_with_a_time(service_class: ServiceClass) -> None:
    with serving() as client:
        client.block(service_class)
        waiting = [client.begin(f"/{service_class}/free") for _ in range(60)]
        refused = waiting[-1].getresponse()  # while the first is still blocked
        assert (refused.status, refused.getheader("Retry-After")) == (503, "1")
        assert refused.read() == b"Too many requests wait already; retry later.\n"
        client.application.gate.set()
        assert waiting[0].getresponse().status == 200


@pytest.mark.parametrize("service_class", WORKED)
def test_a_client_with_many_requests_takes_no_place_of_another(
    service_class: ServiceClass,
) -> None:
    with serving(most_scrapes=4) as client:
        client.block(service_class)
        many = [client.begin(f"/{service_class}/free", "127.0.0.2") for _ in range(60)]
        one = client.begin(f"/{service_class}/free", "127.0.0.3")
        assert many[-1].getresponse().status == 503  # while the first is still blocked
        client.application.gate.set()
        assert one.getresponse().status == 200
        assert many[0].getresponse().status == 200


def test_without_a_limit_scrapes_are_answered() -> None:
    with serving(most_scrapes=0) as client:
        assert client.get("/scrape/free") == 200


def test_a_response_that_is_not_ready_in_time_is_503() -> None:
    with serving(timeouts=Timeouts(work_s=0.2)) as client:
        blocked = client.block("change")
        assert blocked.getresponse().status == 503
        assert client.get("/change/free") == 503  # the first still has the worker
        client.application.gate.set()
        assert eventually(lambda: client.get("/change/free") == 200, PATIENCE_S)


def test_many_connections_of_an_address_disconnect_none_of_another() -> None:
    with serving(timeouts=Timeouts(head_s=3600.0)) as client, ExitStack() as opened:
        port = client.port
        slow = opened.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        slow.sendall(b"GET /health/slow HTTP/1.0\r\n")
        for _ in range(300):
            opened.enter_context(
                socket.create_connection(("127.0.0.1", port), PATIENCE_S, ("127.0.0.2", 0))
            )
        assert client.get("/health/free") == 200
        slow.sendall(b"\r\n")
        assert slow.recv(12) == b"HTTP/1.1 200"
