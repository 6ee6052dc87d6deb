"""systemd: sd_notify messages over real sockets, and sockets that it passes on."""

import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.systemd import ServiceManager, inherited_sockets
from support.log_events import events
from support.notify_socket import NotifySocket, notify_socket

MAX_UNREAD = 100_000


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[NotifySocket]:
    with notify_socket(tmp_path / "notify") as systemd:
        yield systemd


def test_messages_follow_sd_notify(systemd: NotifySocket) -> None:
    manager = ServiceManager(systemd.address)
    manager.ready()
    before_us = time.monotonic_ns() // 1000
    with manager.reloading():
        reloading = systemd.messages()[-1]
    manager.status("two\nlines")
    manager.stopping()
    assert systemd.messages() == [
        "READY=1",
        reloading,
        "READY=1",
        "STATUS=two lines",
        "STOPPING=1",
    ]
    match = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", reloading)
    assert match is not None
    assert before_us <= int(match[1]) <= time.monotonic_ns() // 1000


def test_failed_reload_ends_with_ready(systemd: NotifySocket) -> None:
    manager = ServiceManager(systemd.address)
    manager.ready()
    with pytest.raises(RuntimeError), manager.reloading():
        raise RuntimeError
    assert systemd.messages()[-1] == "READY=1"


def test_reload_before_ready_sends_nothing(systemd: NotifySocket) -> None:
    with ServiceManager(systemd.address).reloading():
        pass
    assert systemd.messages() == []


def test_abstract_socket_is_supported() -> None:
    with notify_socket(f"@disksla-test-{os.getpid()}") as systemd:
        ServiceManager(systemd.address).ready()
        assert systemd.messages() == ["READY=1"]


def test_status_is_sent_when_it_changes(systemd: NotifySocket) -> None:
    manager = ServiceManager(systemd.address)
    for line in ("1 disk", "1 disk", "2 disks", "1 disk"):
        manager.status(line)
    assert systemd.messages() == ["STATUS=1 disk", "STATUS=2 disks", "STATUS=1 disk"]


def test_watchdog_is_fed_four_times_per_timeout(systemd: NotifySocket) -> None:
    manager = ServiceManager(systemd.address, watchdog_s=30.0)
    for tick in range(601):
        manager.feed_watchdog(now_s=1000.0 + tick / 10)
    assert systemd.messages() == ["WATCHDOG=1"] * 9


def test_variables_are_read_and_removed(systemd: NotifySocket) -> None:
    environment = {
        "NOTIFY_SOCKET": systemd.address,
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    manager = ServiceManager.from_environment(environment)
    assert environment == {"HOME": "/"}
    assert manager.is_present
    manager.feed_watchdog(now_s=1000.0)
    assert systemd.messages() == ["WATCHDOG=1"]


@pytest.mark.parametrize(
    "watchdog",
    [
        {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {},
    ],
)
def test_watchdog_of_another_process_is_ignored(
    systemd: NotifySocket, watchdog: dict[str, str]
) -> None:
    manager = ServiceManager.from_environment({"NOTIFY_SOCKET": systemd.address, **watchdog})
    manager.feed_watchdog(now_s=1000.0)
    manager.ready()
    assert systemd.messages() == ["READY=1"]


def test_nothing_is_sent_without_systemd(caplog: pytest.LogCaptureFixture) -> None:
    manager = ServiceManager.from_environment({"WATCHDOG_USEC": "30000000"})
    manager.ready()
    manager.status("1 disk")
    manager.feed_watchdog(now_s=1000.0)
    assert not manager.is_present
    assert (manager.errors, manager.problem, caplog.records) == (0, None, [])


def test_full_socket_does_not_block_and_ready_is_resent(
    systemd: NotifySocket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    manager = ServiceManager(systemd.address)
    for number in range(MAX_UNREAD):
        manager.status(str(number))
        if manager.errors:
            break
    manager.ready()
    assert manager.errors == 2
    assert "READY=1" not in systemd.messages()
    manager.feed_watchdog(now_s=1000.0)
    assert systemd.messages()[-1] == "READY=1"
    manager.feed_watchdog(now_s=1001.0)
    assert systemd.messages().count("READY=1") == 1
    assert events(caplog) == [
        ("warning", "cannot notify systemd", {"err": "Resource temporarily unavailable"}),
        ("info", "systemd notifications restored", {}),
    ]


def test_missing_socket_is_counted_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ServiceManager(str(tmp_path / "nothing"), watchdog_s=1.0)
    manager.ready()
    for tick in range(3):
        manager.feed_watchdog(now_s=1000.0 + tick)
    assert manager.errors == 7
    assert len(caplog.records) == 1


def test_invalid_address_is_a_problem() -> None:
    manager = ServiceManager("/" + "long" * 100)
    manager.ready()
    assert manager.problem == "AF_UNIX path too long"


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
