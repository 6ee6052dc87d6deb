"""What systemd is told, over real sockets."""

import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.system.systemd import ServiceManager
from support.log_events import events
from support.notify_socket import Ear, listening

MOST_UNREAD = 100_000


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    with listening(tmp_path / "notify") as ear:
        yield ear


def test_it_says_what_sd_notify_says(ear: Ear) -> None:
    manager = ServiceManager(ear.address)
    manager.ready()
    before_us = time.monotonic_ns() // 1000
    with manager.reloading():
        reloading = ear.listen()[-1]
    manager.status("two\nlines")
    manager.stopping()
    assert ear.listen() == ["READY=1", reloading, "READY=1", "STATUS=two lines", "STOPPING=1"]
    told = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", reloading)
    assert told is not None
    assert before_us <= int(told[1]) <= time.monotonic_ns() // 1000


def test_a_reload_that_fails_is_over_too(ear: Ear) -> None:
    manager = ServiceManager(ear.address)
    manager.ready()
    with pytest.raises(RuntimeError), manager.reloading():
        raise RuntimeError
    assert ear.listen()[-1] == "READY=1"


def test_a_reload_makes_nobody_ready_who_was_not(ear: Ear) -> None:
    with ServiceManager(ear.address).reloading():
        pass
    assert ear.listen() == []


def test_an_abstract_socket_is_found() -> None:
    with listening(f"@disksla-test-{os.getpid()}") as ear:
        ServiceManager(ear.address).ready()
        assert ear.listen() == ["READY=1"]


def test_a_status_is_said_when_it_changes(ear: Ear) -> None:
    manager = ServiceManager(ear.address)
    for line in ("well", "well", "not so well", "well"):
        manager.status(line)
    assert ear.listen() == ["STATUS=well", "STATUS=not so well", "STATUS=well"]


def test_the_watchdog_is_fed_four_times_as_often_as_it_must_be(ear: Ear) -> None:
    manager = ServiceManager(ear.address, watchdog_s=30.0)
    for tick in range(601):
        manager.beat(now_s=1000.0 + tick / 10)
    assert ear.listen() == ["WATCHDOG=1"] * 9


def test_without_a_watchdog_nothing_is_fed(ear: Ear) -> None:
    ServiceManager(ear.address).beat(now_s=1000.0)
    assert ear.listen() == []


def test_the_environment_is_read_and_left_to_no_child(ear: Ear) -> None:
    told = {
        "NOTIFY_SOCKET": ear.address,
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    manager = ServiceManager.of(told)
    assert told == {"HOME": "/"}
    assert manager.is_there
    manager.beat(now_s=1000.0)
    assert ear.listen() == ["WATCHDOG=1"]


@pytest.mark.parametrize(
    "told",
    [
        {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {},
    ],
)
def test_a_watchdog_that_is_not_ours_is_not_fed(ear: Ear, told: dict[str, str]) -> None:
    manager = ServiceManager.of({"NOTIFY_SOCKET": ear.address, **told})
    manager.beat(now_s=1000.0)
    manager.ready()
    assert ear.listen() == ["READY=1"]


def test_without_systemd_nobody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    manager = ServiceManager.of({"WATCHDOG_USEC": "30000000"})
    manager.ready()
    manager.status("well")
    manager.beat(now_s=1000.0)
    assert not manager.is_there
    assert (manager.errors, manager.problem, caplog.records) == (0, None, [])


def test_a_manager_that_does_not_read_is_not_waited_for(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    manager = ServiceManager(ear.address)
    for number in range(MOST_UNREAD):
        manager.status(str(number))
        if manager.errors:
            break
    manager.ready()
    assert manager.errors == 2
    assert "READY=1" not in ear.listen()
    manager.beat(now_s=1000.0)
    assert ear.listen()[-1] == "READY=1"
    manager.beat(now_s=1001.0)
    assert ear.listen().count("READY=1") == 1
    assert events(caplog) == [
        ("warning", "cannot notify systemd", {"err": "Resource temporarily unavailable"}),
        ("info", "systemd notifications restored", {}),
    ]


def test_a_manager_that_is_gone_is_no_reason_to_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ServiceManager(str(tmp_path / "nothing"), watchdog_s=1.0)
    manager.ready()
    for tick in range(3):
        manager.beat(now_s=1000.0 + tick)
    assert manager.errors == 7
    assert len(caplog.records) == 1


def test_an_address_that_is_none_is_trouble_like_any_other() -> None:
    manager = ServiceManager("/" + "long" * 100)
    manager.ready()
    assert manager.problem == "AF_UNIX path too long"
