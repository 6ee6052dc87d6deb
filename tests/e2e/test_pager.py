"""From a disk that is really held back to the pager, with all that lies between.

The daemon watches a disk of the lab that is held at what was promised, then below it, then at it
again, and then is free. Prometheus scrapes it and evaluates our rules at short intervals, and
Alertmanager, with our example, sends what comes of it to a webhook.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from lab.disk import made
from lab.scenario import read_scenario
from render import HERE, render_rules, write
from support.daemon_process import Daemon
from support.loop_device import eventually
from support.monitoring_stack import (
    Pager,
    Prometheus,
    alertmanager,
    needs_alertmanager,
    needs_prometheus,
    pager,
    prometheus,
)

StartDaemon = Callable[..., Daemon]

pytestmark = [
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/fuse").exists(),
        reason="NOT TESTED: a disk of the lab needs root and /dev/fuse",
    ),
    pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing"),
    needs_prometheus,
    needs_alertmanager,
]

SCENARIO = """
caption: held at what was promised, then below it, then at it again, then free
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
SHORT = """
{
  projectUrl: 'https://disksla.test',
  ruleInterval: '1s',
  longRuleInterval: '1s',
  rateWindow: '5s',
  stepWindow: '5s',
  belowAtLeastSeconds: 3,
  belowFor: '1s',
  throttledWindow: '5s',
  throttledFor: '1s',
  throttledShare: 0.5,
}
"""
LOAD_S = 180
PATIENCE_S = 60.0


@contextmanager
def loaded(device: str) -> Iterator[None]:
    """Read from a disk, 32 requests deep, for as long as somebody looks."""
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


def config_of_the_daemon(device: str, room: Path) -> str:
    config = room / "disksla.yml"
    entry = {"match": {"device": device}, "terms": TERMS}
    config.write_text(
        json.dumps({"discovery": {"include": [f"^{device}$"]}, "disks": [entry]}), encoding="utf-8"
    )
    return str(config)


def config_of_alertmanager(receiver: str, room: Path) -> Path:
    """Take our example as it is, but send quickly, and to us."""
    content = yaml.safe_load((HERE / "alertmanager.example.yml").read_text(encoding="utf-8"))
    for named in content["receivers"]:
        for hook in named.get("webhook_configs", []):
            hook["url"] = f"http://{receiver}/{named['name']}"
    [ours] = content["route"]["routes"]
    for route in (ours, *ours["routes"]):
        route.update(group_wait="1s", group_interval="1s")
    config = room / "alertmanager.yml"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return config


def config_of_prometheus(daemon: str, alerting: str, room: Path) -> Path:
    write(render_rules(SHORT), room / "rules")
    content = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(room / "rules" / "*.yaml")],
        "scrape_configs": [
            {"job_name": "disksla", "static_configs": [{"targets": [daemon]}]},
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerting]}]}]},
    }
    config = room / "prometheus.yml"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return config


def has_come(to: Pager, name: str, status: str) -> bool:
    return eventually(lambda: bool(to.alerts(name, status)), PATIENCE_S)


def story(to: Pager) -> list[tuple[str, str]]:
    return [
        (alert["labels"]["alertname"], alert["status"])
        for message in to.messages
        for alert in message["alerts"]
    ]


def test_a_disk_below_its_promise_reaches_the_pager_and_leaves_it(
    start_daemon: StartDaemon, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario.yml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    with (
        pager() as receiver,
        alertmanager(
            config_of_alertmanager(receiver.address, tmp_path), tmp_path / "alerts"
        ) as alerting,
        made(scenario, 0, read_scenario(scenario).disks[0], tmp_path) as disk,
    ):
        daemon = start_daemon("--config.file", config_of_the_daemon(disk.device, tmp_path))
        config = config_of_prometheus(daemon.address, alerting.address, tmp_path)
        with prometheus(config, tmp_path / "series") as asked, loaded(disk.device):
            disk.begin()
            assert has_come(receiver, "DiskThrottled", "firing"), receiver.messages
            assert receiver.alerts("DiskBelowPromise", "firing") == []
            assert has_come(receiver, "DiskBelowPromise", "firing"), receiver.messages
            is_told_in_full(receiver, daemon, disk.device)
            assert has_come(receiver, "DiskBelowPromise", "resolved"), receiver.messages
            stays_in_memory(asked, disk.device)
            counts_every_second_once(asked)
            assert eventually(lambda: is_over(asked), PATIENCE_S), story(receiver)
    told = story(receiver)
    assert told.index(("DiskThrottled", "resolved")) < told.index(("DiskBelowPromise", "resolved"))
    assert {name for name, _ in told} <= {"DiskThrottled", "DiskBelowPromise"}


def is_told_in_full(receiver: Pager, daemon: Daemon, device: str) -> None:
    alert = receiver.alerts("DiskBelowPromise", "firing")[0]
    assert alert["labels"] == {
        "alertname": "DiskBelowPromise",
        "job": "disksla",
        "instance": daemon.address,
        "device": device,
        "severity": "warning",
        "terms": "configuration",
    }
    description = alert["annotations"]["description"]
    assert description.startswith(f"Disk {device} on {daemon.address} (serial unknown, model")
    assert "Reads promised: 1k/s." in description
    assert alert["annotations"]["runbook_url"].endswith("/runbook.md#diskbelowpromise")
    [message] = [one for one in receiver.messages if alert in one["alerts"]]
    assert message["path"] == "/team"


def stays_in_memory(asked: Prometheus, device: str) -> None:
    """The pager is silent again; compliance of the day is not what it was."""
    [shown] = asked.query("instance_device:disksla_sla_compliance:ratio1d")
    assert shown["metric"]["device"] == device
    assert 0.2 < float(shown["value"][1]) < 0.8


def counts_every_second_once(asked: Prometheus) -> None:
    """What was added up in steps is what the counters say, but for the step at either end."""
    [added] = asked.query("instance_device:disksla_proven_seconds:sum1h")
    [counted] = asked.query('sum(disksla_verdict_seconds_total{verdict=~"met|throttled|below"})')
    assert abs(float(added["value"][1]) - float(counted["value"][1])) < 12


def is_over(asked: Prometheus) -> bool:
    return asked.query('ALERTS{alertstate="firing"}') == []
