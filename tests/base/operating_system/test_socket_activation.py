"""Socket activation: sockets inherited from systemd."""

import os
import socket
from contextlib import closing

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.systemd import inherited_sockets


def listen_variables(count: object, pid: int | None = None) -> dict[str, str]:
    return {
        "LISTEN_PID": str(os.getpid() if pid is None else pid),
        "LISTEN_FDS": str(count),
        "LISTEN_FDNAMES": "disksla",
    }


def test_inherited_socket_is_used_and_not_passed_to_children() -> None:
    environment = listen_variables(1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        os.set_inheritable(server.fileno(), True)
        (passed,) = inherited_sockets(environment, first=server.detach())
    with closing(passed):
        assert environment == {}
        assert not passed.get_inheritable()
        with socket.create_connection(passed.getsockname(), timeout=5):
            passed.accept()[0].close()


@pytest.mark.parametrize(
    "environment", [{}, listen_variables(1, pid=1), listen_variables("none"), listen_variables(0)]
)
def test_no_sockets_without_matching_variables(environment: dict[str, str]) -> None:
    assert inherited_sockets(environment, first=10_000) == ()


def test_closed_descriptor_is_rejected() -> None:
    with pytest.raises(DiskslaError, match="cannot use descriptor 10000 from systemd: Bad file"):
        inherited_sockets(listen_variables(1), first=10_000)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
    ],
)
def test_socket_that_does_not_listen_on_tcp_is_rejected(family: int, kind: int) -> None:
    descriptor = socket.socket(family, kind).detach()
    with pytest.raises(DiskslaError, match=r"not a listening TCP socket; .*Accept=no"):
        inherited_sockets(listen_variables(1), first=descriptor)
