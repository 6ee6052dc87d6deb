"""Alerts end to end: throttled disk, daemon, Prometheus, Alertmanager, webhook.

The daemon monitors a disk of the lab that is throttled at its promise, then below it, then at it
again, and then not at all. Prometheus scrapes the daemon and evaluates the recording and alerting
rules at short intervals. Alertmanager, with the example configuration, notifies a webhook.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.disk import made
from lab.scenario import read_scenario
from support.alerting import alertmanager_config, prometheus_config
from support.daemon_process import Daemon, StartDaemon
from support.monitoring_stack import (
    Pager,
    Prometheus,
    alertmanager,
    needs_alertmanager,
    needs_prometheus,
    pager,
    prometheus,
)
from support.waiting import eventually

pytestmark = [
    pytest.mark.alone,
    pytest.mark.in_check,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/fuse").exists(),
        reason="NOT TESTED: a disk of the lab needs root and /dev/fuse",
    ),
    pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing"),
    needs_prometheus,
    needs_alertmanager,
]

SCENARIO = """
caption: throttled at the promise, then below it, then at it again, then not at all
disks:
  - disk:
      meters: [{limit: iops, iops: 1000}]
      service: {latency: 1ms}
      changes:
        - {at: 15s, meters: [{limit: iops, iops: 400}]}
        - {at: 35s, meters: [{limit: iops, iops: 1000}]}
        - {at: 50s, meters: []}
    load: [{for: 1s}]
"""
TERMS = {"budget": "sum", "iops": 1000}
LOAD_S = 180
PATIENCE_S = 60.0


@contextmanager
def loaded(device: str) -> Iterator[None]:
    """Read from a disk with queue depth 32 until the end of the block."""
    command = [
        *("fio", "--output=/dev/null", "--name=load", f"--filename=/dev/{device}"),
        *("--ioengine=libaio", "--direct=1", "--iodepth=32", "--rw=randread", "--bs=4k"),
        *("--time_based", f"--runtime={LOAD_S}", "--thread"),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def daemon_config(device: str, directory: Path) -> str:
    config = directory / "disksla.yml"
    entry = {"match": {"device": device}, "terms": TERMS}
    config.write_text(
        json.dumps({"discovery": {"include": [f"^{device}$"]}, "disks": [entry]}), encoding="utf-8"
    )
    return str(config)


def received(receiver: Pager, name: str, status: str) -> bool:
    return eventually(lambda: bool(receiver.alerts(name, status)), PATIENCE_S)


def history(receiver: Pager) -> list[tuple[str, str]]:
    return [
        (alert["labels"]["alertname"], alert["status"])
        for message in receiver.messages
        for alert in message["alerts"]
    ]


def test_disk_below_its_promise_fires_and_resolves_an_alert(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario.yml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    with (
        pager() as receiver,
        alertmanager(
            alertmanager_config(receiver.address, tmp_path), tmp_path / "alerts"
        ) as alerting,
        made(scenario, 0, read_scenario(scenario).disks[0], tmp_path) as disk,
    ):
        daemon = start_daemon("--config.file", daemon_config(disk.device, tmp_path))
        config = prometheus_config(daemon.address, alerting.address, tmp_path)
        with prometheus(config, tmp_path / "series") as server, loaded(disk.device):
            disk.begin()
            assert received(receiver, "DiskThrottled", "firing"), receiver.messages
            assert receiver.alerts("DiskBelowPromise", "firing") == []
            assert received(receiver, "DiskBelowPromise", "firing"), receiver.messages
            check_alert(receiver, daemon, disk.device)
            assert received(receiver, "DiskBelowPromise", "resolved"), receiver.messages
            check_compliance(server, disk.device)
            check_proven_seconds(server)
            assert eventually(lambda: no_alert_fires(server), PATIENCE_S), history(receiver)
    alerts = history(receiver)
    throttled, below = ("DiskThrottled", "resolved"), ("DiskBelowPromise", "resolved")
    assert alerts.index(throttled) < alerts.index(below)
    assert {name for name, _ in alerts} <= {"DiskThrottled", "DiskBelowPromise"}, alerts


def check_alert(receiver: Pager, daemon: Daemon, device: str) -> None:
    alert = receiver.alerts("DiskBelowPromise", "firing")[0]
    assert alert["labels"] == {
        "alertname": "DiskBelowPromise",
        "job": "disksla",
        "instance": daemon.address,
        "device": device,
        "severity": "warning",
        "terms": "custom",
    }
    description = alert["annotations"]["description"]
    assert description.startswith(f"Disk {device} on {daemon.address} gave less than promised for")
    assert " Serial unknown, terms written out." in description
    assert "Reads promised: 1k/s." in description
    runbook = f"http://{daemon.address}/runbook#DiskBelowPromise"
    assert alert["annotations"]["runbook_url"] == runbook
    [message] = [each for each in receiver.messages if alert in each["alerts"]]
    assert message["path"] == "/team"


def check_compliance(server: Prometheus, device: str) -> None:
    """Check that compliance of the day shows the failure after the alert is resolved."""
    [compliance] = server.query("instance_device:disksla_sla_compliance:ratio1d")
    assert compliance["metric"]["device"] == device
    assert 0.2 < float(compliance["value"][1]) < 0.8


def check_proven_seconds(server: Prometheus) -> None:
    """Check that the sum over steps equals the counters, except for the step at either end."""
    [added] = server.query("sum_over_time(instance_device:disksla_proven_seconds:increase5s[1h])")
    [counted] = server.query('sum(disksla_verdict_seconds_total{verdict=~"met|throttled|below"})')
    assert abs(float(added["value"][1]) - float(counted["value"][1])) < 12


def no_alert_fires(server: Prometheus) -> bool:
    return server.query('ALERTS{alertstate="firing"}') == []
