"""The Unix socket: its permissions, what is replaced, and the requests that it answers."""

import http.client
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bcrypt
import pytest

from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.serve.http_server.access import AccessControl
from disksla.serve.http_server.connection import ListenAddress
from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.server import WebServer
from support.log_events import events

LOOPBACK = ListenAddress("127.0.0.1", 0)
USERS = f"basic_auth_users: {{alice: {bcrypt.hashpw(b'x', bcrypt.gensalt(4)).decode()}}}\n"
Captured = pytest.LogCaptureFixture


@contextmanager
def with_umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def left_by_a_killed_daemon(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))


@contextmanager
def opened(path: Path) -> Iterator[socket.socket | None]:
    unix_socket = UnixSocket(path)
    listening = unix_socket.open()
    try:
        yield listening
    finally:
        if listening is not None:
            listening.close()
        unix_socket.close()


def get(path: Path, target: str = "/hello") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(20)
        connection.sock.connect(str(path))
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_user_and_group_may_connect(mask: int, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with with_umask(mask), opened(path) as listening:
        assert listening is not None
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert not path.exists()


def test_without_its_directory_there_is_no_socket(tmp_path: Path, caplog: Captured) -> None:
    caplog.set_level("INFO")
    with opened(tmp_path / "none" / "socket") as listening:
        assert listening is None
    [event] = events(caplog)
    assert (event.level, event.message) == ("info", "no Unix socket")
    assert "does not exist" in event.fields["reason"]
    assert list(tmp_path.iterdir()) == []


def test_socket_of_a_killed_daemon_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    left_by_a_killed_daemon(path)
    with pytest.raises(ConnectionRefusedError):
        get(path)
    with opened(path) as listening:
        assert listening is not None
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_socket_of_a_running_daemon_is_not_taken(tmp_path: Path, caplog: Captured) -> None:
    path = tmp_path / "socket"
    with opened(path) as first:
        assert first is not None
        inode = path.stat().st_ino
        with opened(path) as second:
            assert second is None
        assert path.stat().st_ino == inode
        [event] = events(caplog)
        assert (event.level, event.fields["err"]) == ("warning", "another process listens on it")
    with opened(path) as third:
        assert third is not None


def test_other_files_are_not_replaced(tmp_path: Path, caplog: Captured) -> None:
    path = tmp_path / "socket"
    path.write_text("precious")
    with opened(path) as listening:
        assert listening is None
    assert path.read_text() == "precious"
    assert events(caplog)[0].fields["err"] == "Address already in use"


def test_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "socket.lock").symlink_to(tmp_path / "elsewhere")
    with opened(tmp_path / "socket") as listening:
        assert listening is None
    assert not (tmp_path / "elsewhere").exists()


def test_path_that_is_too_long(tmp_path: Path, caplog: Captured) -> None:
    with opened(tmp_path / ("x" * 200)) as listening:
        assert listening is None
    assert "too long" in events(caplog)[0].fields["err"]


def test_access_of_the_port_does_not_apply(tmp_path: Path) -> None:
    path, web = tmp_path / "socket", tmp_path / "web.yml"
    web.write_text(USERS + "rate_limit: {interval: 1h, burst: 1}\n")

    def application(request: RequestHead) -> Reply:
        return Reply(request.path.encode())

    server = WebServer(
        application, [LOOPBACK], access=AccessControl(web), unix_socket=UnixSocket(path)
    )
    (bound,) = server.start()
    try:
        of_port = http.client.HTTPConnection("127.0.0.1", bound.port, timeout=20)
        of_port.request("GET", "/hello")
        assert of_port.getresponse().status == 401
        of_port.close()
        assert [get(path), get(path)] == [(200, b"/hello")] * 2
        web.write_text("nonsense: 1\n")
        assert get(path) == (200, b"/hello")
    finally:
        server.stop()
    assert not path.exists()
