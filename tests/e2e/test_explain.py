"""`disksla explain` beside a real daemon, and without one."""

import json
import socket
from collections.abc import Callable

import pytest

from support.daemon_process import PATIENCE_S, Daemon, run
from support.waiting import eventually

StartDaemon = Callable[..., Daemon]


def words(text: str) -> str:
    return " ".join(text.split())


def test_daemon_is_asked_for_the_last_minutes(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    if not daemon.devices():
        pytest.skip("NOT TESTED: this machine has no disk that is monitored")
    device = min(daemon.devices())

    def assessed_s() -> float:
        disks = json.loads(daemon.get("/api/v1/disks")[1])["disks"]
        found = next(disk for disk in disks if disk["device"] == device)
        return float(sum(found["verdict_seconds"].values()))

    assert eventually(lambda: assessed_s() > 2, PATIENCE_S)
    explained = run("explain", device, f"--url=http://{daemon.address}")
    assert "Nothing was measured" not in explained.stdout
    sampled = words(run("explain", device, "--duration=300ms").stdout)
    assert "of the last 0." in sampled
    assert "of the last 0." not in words(explained.stdout)


def test_without_a_daemon_the_disk_is_sampled() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    discovered = json.loads(run("discover", "--json").stdout)
    device = next((disk["device"] for disk in discovered if disk["terms"]), None)
    if device is None:
        pytest.skip("NOT TESTED: this machine has no disk that is monitored")
    explained = words(run("explain", device, f"--url={url}").stdout)
    assert " of the last 4." in explained or " of the last 5 s" in explained


def test_daemon_on_another_machine_is_not_asked() -> None:
    refused = run("explain", "vda", "--url=http://192.0.2.1:10056", status=2)
    assert "expected an address of this machine" in refused.stderr or "vda" in refused.stderr
