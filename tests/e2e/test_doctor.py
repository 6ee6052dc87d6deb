"""`disksla doctor` beside a real daemon."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon_process import Daemon, run
from support.fake_host import FakeMachine

StartDaemon = Callable[..., Daemon]


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    machine = FakeMachine(tmp_path)
    machine.state.mkdir()
    return machine


def examine(daemon: Daemon, *options: str, status: int) -> dict[tuple[str, str | None], str]:
    """Return the statuses, by check and subject."""
    url = f"--url=http://{daemon.address}"
    document = json.loads(run("doctor", "--json", url, *options, status=status).stdout)
    return {(each["check"], each["subject"]): each["status"] for each in document["checks"]}


def test_daemon_that_works(start_daemon: StartDaemon, machine: FakeMachine) -> None:
    daemon = start_daemon(*machine.options)
    first = examine(daemon, *machine.options, status=0)
    assert first["daemon.running", None] == "ok"
    assert first["daemon.version", None] == "ok"
    assert first["daemon.configuration", None] == "ok"
    assert first["daemon.parts", None] == "ok"
    assert first["daemon.scraped", None] == "note"
    daemon.get("/metrics")
    assert examine(daemon, *machine.options, status=0)["daemon.scraped", None] == "ok"
    printed = run("doctor", f"--url=http://{daemon.address}", *machine.options).stdout
    assert printed.splitlines()[-1].endswith("0 wrong")


def test_configuration_that_the_daemon_does_not_have(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    daemon = start_daemon(*machine.options)
    os.utime(machine.config, (time.time() + 1, time.time() + 1))
    found = examine(daemon, *machine.options, status=0)
    assert found["daemon.configuration", None] == "note"
    machine.config.write_text("nonsense: 1\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    found = examine(daemon, *machine.options, status=1)
    assert found["daemon.configuration", None] == "wrong"
    assert found["configuration.file", None] == "wrong"
