"""`disksla doctor` beside a real daemon."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon_process import PATIENCE_S, Daemon, run
from support.fake_host import FakeMachine
from support.loop_device import needs_loop
from support.waiting import eventually

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


def test_parts_of_the_daemon_that_fail(start_daemon: StartDaemon, machine: FakeMachine) -> None:
    daemon = start_daemon(*machine.options)
    terms = machine.config.parent / "terms.d"
    terms.mkdir()
    (terms / "bad.yml").write_text("disks: [")
    assert eventually(
        lambda: daemon.samples(collector="terms").get("disksla_collector_success") == 0, PATIENCE_S
    )
    found = examine(daemon, *machine.options, status=1)
    assert found["daemon.parts", "terms"] == "wrong"
    assert found["configuration.terms", None] == "wrong"


@needs_loop
def test_disk_that_the_kernel_does_not_count(
    start_daemon: StartDaemon, loop_device: str, tmp_path: Path
) -> None:
    config = tmp_path / "disksla.yml"
    (tmp_path / "state").mkdir()
    config.write_text(
        f"discovery: {{include: ['^{loop_device}$']}}\n"
        f"state: {{directory: {tmp_path / 'state'}}}\n"
    )
    daemon = start_daemon("--config.file", str(config))
    switch = Path(f"/sys/class/block/{loop_device}/queue/iostats")
    before = switch.read_text()
    key = ("disks.iostats", loop_device)
    assert key not in examine(daemon, "--config.file", str(config), status=0)
    try:
        switch.write_text("0\n")
        found = examine(daemon, "--config.file", str(config), status=1)
        assert found[key] == "wrong"
    finally:
        switch.write_text(before)
