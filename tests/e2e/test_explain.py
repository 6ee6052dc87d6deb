"""`disksla explain` and `disksla doctor` beside a real daemon, and without one."""

import json
import os
import pty
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, StartDaemon, run
from support.fake_host import FakeMachine
from support.waiting import eventually


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.nightly
def test_disk_that_the_daemon_does_not_monitor_is_sampled(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    machine = FakeMachine(tmp_path)
    daemon = start_daemon(*machine.options)
    options = (f"--url=http://{daemon.address}", *machine.options)
    assert json.loads(run("explain", "vdx", "--json", *options).stdout)["source"] == "daemon"
    machine.config.write_text(machine.config.read_text().replace("iops: 300", "iops: 400"))
    ended = run("explain", "vdx", *options)
    assert "the daemon has other limits of vdx than the files on this machine" in ended.stderr
    assert re.search(r"limits +300 IOPS", ended.stdout)
    machine.config.write_text("discovery: {exclude: [vdx]}\n")  # the daemon has not read it
    ended = run("explain", "vdx", *options)
    assert re.search(r"monitored +yes", ended.stdout)
    assert re.search(r"limits +300 IOPS", ended.stdout)
    [known] = json.loads(run("explain", "vdx", "--json", *options).stdout)["disks"]
    assert (known["monitored"], known["limits"]["read_iops"]) == (True, 300)
    machine.config.write_text("discovery: {exclude: [vdx]}\n")
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert eventually(lambda: not daemon.devices(), PATIENCE_S)
    machine.config.write_text("disks: []\n")
    ended = run("explain", "vdx", *options)
    assert ended.stderr == "disksla: the daemon does not monitor vdx; sampling instead\n"
    assert " of the last 4." in words(ended.stdout) or " of the last 5 s" in words(ended.stdout)


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    machine = FakeMachine(tmp_path)
    master, slave = pty.openpty()
    command = [str(DISKSLA), "explain", "--for=1s", *machine.options]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, check=True)
    os.close(slave)
    shown = b""
    with suppress(OSError), os.fdopen(master, "rb", buffering=0) as terminal:
        while part := terminal.read(65536):
            shown += part
    assert b"sampling" in shown
    assert b"sampling" not in ended.stdout
    piped = run("explain", "--for=300ms", *machine.options)
    headline = piped.stdout.partition("\n")[0]
    assert (piped.stderr, headline) == ("", "No problem was seen in the last 300 ms.")


def test_daemon_of_another_machine_that_does_not_answer_is_an_error() -> None:
    refused = run("explain", "vda", "--url=http://192.0.2.1:10056", status=2)
    assert "disksla: cannot ask the daemon: http://192.0.2.1:10056: " in refused.stderr
    assert refused.stdout == ""


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
