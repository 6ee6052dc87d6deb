"""Connections where the process has no descriptors left."""

import errno
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from disksla.serve.http_server.http_protocol import Reply
from disksla.serve.http_server.listen import ListenAddress
from disksla.serve.http_server.server import WebServer
from support.log_events import events
from support.waiting import eventually

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


def test_used_up_descriptors_are_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
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
