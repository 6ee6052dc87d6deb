"""Sockets that were passed on."""

import os
import socket
from contextlib import closing

import pytest

from disksla.errors import DiskslaError
from disksla.system.systemd import inherited_sockets


def told(count: object, pid: int | None = None) -> dict[str, str]:
    return {
        "LISTEN_PID": str(os.getpid() if pid is None else pid),
        "LISTEN_FDS": str(count),
        "LISTEN_FDNAMES": "disksla",
    }


def test_a_socket_that_was_passed_is_taken_and_no_child_gets_it() -> None:
    environment = told(1)
    with socket.create_server(("127.0.0.1", 0)) as made:
        os.set_inheritable(made.fileno(), True)
        (passed,) = inherited_sockets(environment, first=made.detach())
    with closing(passed):
        assert environment == {}
        assert not passed.get_inheritable()
        with socket.create_connection(passed.getsockname(), timeout=5):
            passed.accept()[0].close()


@pytest.mark.parametrize("environment", [{}, told(1, pid=1), told("none"), told(0)])
def test_without_sockets_for_us_there_are_none(environment: dict[str, str]) -> None:
    assert inherited_sockets(environment, first=10_000) == ()


def test_what_is_not_even_open_is_refused() -> None:
    with pytest.raises(DiskslaError, match="systemd passed descriptor 10000: Bad file descriptor"):
        inherited_sockets(told(1), first=10_000)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
    ],
)
def test_what_no_scraper_can_connect_to_is_refused(family: int, kind: int) -> None:
    descriptor = socket.socket(family, kind).detach()
    with pytest.raises(DiskslaError, match=r"on which nobody can connect by TCP; .*Accept=no"):
        inherited_sockets(told(1), first=descriptor)
