"""The example configuration of Alertmanager routes each alert, and inhibits repetitions."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.metric_names import rules
from render import HERE
from support.monitoring_stack import (
    PATIENCE_S,
    Service,
    alertmanager,
    needs_alertmanager,
    needs_amtool,
)
from support.waiting import eventually

EXAMPLE = HERE / "alertmanager.example.yml"
SEVERITIES = {rule["alert"]: rule["labels"]["severity"] for rule in rules() if "alert" in rule}
RECEIVERS = {"critical": "pager", "warning": "team", "info": "journal"}
DISK = {"job": "disksla", "instance": "db1:10056", "device": "vdb"}


def amtool(*arguments: str) -> str:
    done = subprocess.run(["amtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_amtool
def test_amtool_accepts_the_example() -> None:
    assert "SUCCESS" in amtool("check-config", str(EXAMPLE))


@needs_amtool
@pytest.mark.parametrize(("name", "severity"), SEVERITIES.items())
def test_alert_is_routed_by_severity(name: str, severity: str) -> None:
    labels = [f"alertname={name}", f"severity={severity}"]
    receiver = amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels)
    assert receiver.strip() == RECEIVERS[severity]


@needs_amtool
def test_other_alerts_go_to_the_default_receiver() -> None:
    command = ("config", "routes", "test", f"--config.file={EXAMPLE}", "severity=critical")
    assert amtool(*command, "alertname=NodeDown").strip() == "others"


def test_inhibitions_name_existing_alerts() -> None:
    content = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    for rule in content["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            [(operator, value)] = re.findall(r'^alertname (=~|!=|=) "(.+)"$', matcher)
            named = value.split("|") if operator == "=~" else [value]
            assert {name for name in named if name != "Disk.+"} <= SEVERITIES.keys()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with alertmanager(EXAMPLE, tmp_path / "data") as service:
        yield service


def alert(name: str, **labels: str) -> dict[str, Any]:
    return {"labels": {"alertname": name, "severity": SEVERITIES[name], **DISK, **labels}}


def assert_inhibited(service: Service, expected: set[str], *alerts: dict[str, Any]) -> None:
    """Send alerts, and check that exactly the expected ones are inhibited."""
    service.post("/api/v2/alerts", list(alerts))
    received: list[dict[str, Any]] = []

    def as_expected() -> bool:
        received[:] = service.get("/api/v2/alerts")
        return len(received) == len(alerts) and inhibited(received) == expected

    assert eventually(as_expected, PATIENCE_S), inhibited(received) ^ expected


def inhibited(received: list[dict[str, Any]]) -> set[str]:
    return {
        f"{one['labels']['alertname']} of {one['labels']['device']}"
        for one in received
        if one["status"]["inhibitedBy"]
    }


@needs_alertmanager
def test_stalled_inhibits_other_alerts_of_the_disk(running: Service) -> None:
    names = [
        *("DiskThrottled", "DiskBelowPromise", "DiskLatencyAbovePromise"),
        *("DiskProbeFailing", "DiskProbeStale"),
    ]
    others = ["DiskBurstCreditsExhausted", "DiskVerificationFailed", "DiskTermsUnknown"]
    alerts = [alert(name, device=device) for name in names + others for device in ("vdb", "vdc")]
    hurts = alert("DiskThrottlingHurtsHost")
    expected = {f"{name} of vdb" for name in ["DiskThrottlingHurtsHost", *names]}
    assert_inhibited(running, expected, alert("DiskStalled"), hurts, *alerts)


@needs_alertmanager
def test_exporter_down_inhibits_alerts_of_its_host(running: Service) -> None:
    down = alert("DiskSlaExporterDown")
    others = [alert(name) for name in SEVERITIES if name != "DiskSlaExporterDown"]
    elsewhere = alert("DiskBelowPromise", instance="db2:10056", device="vdz")
    expected = {f"{one['labels']['alertname']} of vdb" for one in others}
    assert_inhibited(running, expected, down, elsewhere, *others)


@needs_alertmanager
def test_worse_alerts_inhibit_weaker_ones(running: Service) -> None:
    alerts = [
        alert("DiskBurstCreditsExhausted", resource="iops"),
        alert("DiskBurstCreditsExhaustSoon", resource="iops"),
        alert("DiskBurstCreditsExhaustSoon", resource="bytes", device="vdd"),
        alert("DiskThrottled"),
        alert("DiskThrottlingHurtsHost"),
        alert("DiskThrottlingHurtsHost", device="vdc"),
        alert("DiskNearLimit"),
    ]
    expected = {
        f"{name} of vdb"
        for name in ("DiskBurstCreditsExhaustSoon", "DiskThrottlingHurtsHost", "DiskNearLimit")
    }
    assert_inhibited(running, expected, *alerts)
