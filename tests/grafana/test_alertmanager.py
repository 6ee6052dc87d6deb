"""The example of Alertmanager sends what it should where it should, and nothing twice."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.known import rules
from render import HERE
from support.loop_device import eventually
from support.monitoring_stack import (
    PATIENCE_S,
    Service,
    alertmanager,
    needs_alertmanager,
    needs_amtool,
)

EXAMPLE = HERE / "alertmanager.example.yml"
SEVERITIES = {
    str(rule["alert"]): labels["severity"]
    for rule in rules()
    if "alert" in rule and isinstance(labels := rule["labels"], dict)
}
RECEIVERS = {"critical": "pager", "warning": "team", "info": "journal"}
DISK = {"job": "disksla", "instance": "db1:10056", "device": "vdb"}


def amtool(*words: str) -> str:
    asked = subprocess.run(["amtool", *words], capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    return asked.stdout


@needs_amtool
def test_alertmanager_takes_it() -> None:
    assert "SUCCESS" in amtool("check-config", str(EXAMPLE))


@needs_amtool
@pytest.mark.parametrize(("name", "severity"), SEVERITIES.items())
def test_each_alert_goes_to_those_it_is_for(name: str, severity: str) -> None:
    labels = [f"alertname={name}", f"severity={severity}"]
    where = amtool("config", "routes", "test", f"--config.file={EXAMPLE}", *labels)
    assert where.strip() == RECEIVERS[severity]


@needs_amtool
def test_alerts_of_others_are_not_touched() -> None:
    words = ("config", "routes", "test", f"--config.file={EXAMPLE}", "severity=critical")
    assert amtool(*words, "alertname=NodeDown").strip() == "others"


def test_inhibitions_name_alerts_that_exist() -> None:
    content = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    for rule in content["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            [(operator, value)] = re.findall(r'^alertname (=~|!=|=) "(.+)"$', matcher)
            named = value.split("|") if operator != "=~" or "|" in value else []
            assert set(named) <= SEVERITIES.keys()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with alertmanager(EXAMPLE, tmp_path / "data") as service:
        yield service


def alert(name: str, **labels: str) -> dict[str, Any]:
    return {"labels": {"alertname": name, "severity": SEVERITIES[name], **DISK, **labels}}


def holds(service: Service, silenced: set[str], *alerts: dict[str, Any]) -> None:
    """Send alerts, and see that these and no others are silenced by another."""
    service.post("/api/v2/alerts", list(alerts))
    shown: list[dict[str, Any]] = []

    def as_expected() -> bool:
        shown[:] = service.get("/api/v2/alerts")
        return len(shown) == len(alerts) and named(shown) == silenced

    assert eventually(as_expected, PATIENCE_S), named(shown) ^ silenced


def named(shown: list[dict[str, Any]]) -> set[str]:
    return {
        f"{one['labels']['alertname']} of {one['labels']['device']}"
        for one in shown
        if one["status"]["inhibitedBy"]
    }


@needs_alertmanager
def test_a_stalled_disk_silences_what_is_said_of_the_same_disk(running: Service) -> None:
    names = [
        *("DiskThrottled", "DiskBelowPromise", "DiskLatencyAbovePromise"),
        *("DiskProbeFailing", "DiskProbeStale"),
    ]
    others = ["DiskBurstCreditsExhausted", "DiskVerificationFailed", "DiskTermsUnknown"]
    alerts = [alert(name, device=device) for name in names + others for device in ("vdb", "vdc")]
    hurts = alert("DiskThrottlingHurtsHost")
    expected = {f"{name} of vdb" for name in ["DiskThrottlingHurtsHost", *names]}
    holds(running, expected, alert("DiskStalled"), hurts, *alerts)


@needs_alertmanager
def test_a_daemon_that_is_away_silences_its_host(running: Service) -> None:
    down = alert("DiskSlaExporterDown")
    others = [alert(name) for name in SEVERITIES if name != "DiskSlaExporterDown"]
    elsewhere = alert("DiskBelowPromise", instance="db2:10056", device="vdz")
    said = {f"{one['labels']['alertname']} of vdb" for one in others}
    holds(running, said, down, elsewhere, *others)


@needs_alertmanager
def test_what_has_come_silences_what_was_to_come(running: Service) -> None:
    alerts = [
        alert("DiskBurstCreditsExhausted", resource="iops"),
        alert("DiskBurstCreditsExhaustSoon", resource="iops"),
        alert("DiskBurstCreditsExhaustSoon", resource="bytes", device="vdd"),
        alert("DiskThrottlingHurtsHost"),
        alert("DiskThrottled"),
        alert("DiskThrottled", device="vdc"),
    ]
    expected = {"DiskBurstCreditsExhaustSoon of vdb", "DiskThrottled of vdb"}
    holds(running, expected, *alerts)
