"""A fleet with a day of history, Prometheus, Alertmanager and Grafana on loopback: `make demo`."""

import datetime as dt
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from fleet.backfill import STEP_S, backfill, backfill_rules, steps_of
from fleet.hosts import DISKS_OF_TWO
from fleet.stack import MIXIN, NO_TARGETS, ScrapeConfig, prometheus, serve_fleet
from support.monitoring_stack import alertmanager, free_port

_HOMES = (Path("/usr/share/grafana"), Path("/opt/grafana"))


def write_provisioning(home: Path, prometheus: str) -> Path:
    """Write the provisioning of Grafana: the data source, and the dashboards."""
    provisioning = home / "provisioning"
    documents: dict[str, dict[str, object]] = {
        "datasources": {
            "datasources": [
                {
                    "name": "disksla",
                    "type": "prometheus",
                    "access": "proxy",
                    "url": f"http://{prometheus}",
                    "isDefault": True,
                    "jsonData": {"timeInterval": "60s"},
                }
            ]
        },
        "dashboards": {
            "providers": [
                {
                    "name": "disksla",
                    "folder": "disksla",
                    "type": "file",
                    "options": {"path": str(MIXIN / "dashboards")},
                }
            ]
        },
        "plugins": {"apps": []},
        "alerting": {},
    }
    for name, document in documents.items():
        file = provisioning / name / "disksla.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"apiVersion": 1, **document}, indent=1))  # JSON is YAML
    return provisioning


@contextmanager
def grafana(home: Path, provisioning: Path) -> Iterator[str | None]:
    """Run Grafana without login, and yield its address; None if it is not installed."""
    program = shutil.which("grafana-server")
    share = next(filter(Path.is_dir, _HOMES), None)
    if program is None or share is None:
        yield None
        return
    port = free_port()
    settings = {
        "server.http_addr": "127.0.0.1",
        "server.http_port": port,
        "paths.data": home / "grafana",
        "paths.logs": home / "grafana",
        "paths.provisioning": provisioning,
        "auth.anonymous.enabled": "true",
        "auth.anonymous.org_role": "Admin",
        "analytics.reporting_enabled": "false",
        "analytics.check_for_updates": "false",
    }
    overrides = [f"cfg:default.{name}={value}" for name, value in settings.items()]
    command = [program, f"--homepath={share}", *overrides]
    with (home / "grafana.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


SEED = 1
_RECORDED_S = 86_400
"""The recording rules are evaluated over so much of the history: a month of them takes hours."""
_NO_RECEIVERS = {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}


class Demo(NamedTuple):
    """Size of the fleet, its history, and the scrape interval."""

    hosts: int
    hours: float
    interval_s: float


def show(demo: Demo, home: Path, log: Callable[[str], None]) -> None:
    """Write the history, start all servers, log their addresses, and wait to be interrupted."""
    data = home / "data"
    data.mkdir()
    end_s = _this_minute_s()
    start_s = end_s - round(demo.hours * 3600)
    disks = demo.hosts * DISKS_OF_TWO // 2
    log(f"writing {demo.hours:g} h of history of {disks} disks; a day of 200 takes minutes")
    started_s = time.monotonic()
    backfill(SEED, demo.hosts, start_s, start_s, end_s, data)
    log(f"written in {time.monotonic() - started_s:.0f} s; now evaluating the recording rules")
    started_s = time.monotonic()
    for rules in steps_of(MIXIN / "prometheus_rules.yaml", home):
        with prometheus(NO_TARGETS, home) as server:
            backfill_rules(server, rules, max(start_s, end_s - _RECORDED_S), end_s, data)
    backfill(SEED, demo.hosts, start_s, end_s, _this_minute_s(), data)
    log(f"evaluated in {time.monotonic() - started_s:.0f} s")
    with ExitStack() as stack:
        fleet = stack.enter_context(serve_fleet(SEED, start_s))
        log(f"Host          http://{fleet}/host-0001/metrics")
        pager = None
        if shutil.which("prometheus-alertmanager"):
            config = home / "alertmanager.yml"
            config.write_text(json.dumps(_NO_RECEIVERS))
            pager = stack.enter_context(alertmanager(config, home / "alertmanager")).address
        log(f"Alertmanager  {_at(pager)}")
        scrape_config = ScrapeConfig(str(fleet), demo.hosts, demo.interval_s, alertmanager=pager)
        server = stack.enter_context(prometheus(scrape_config, home))
        log(f"Prometheus    http://{server.address}/alerts")
        log(f"Report        disksla report --prometheus http://{server.address}")
        log(f"                  {_period(start_s, end_s)}")
        provisioning = write_provisioning(home, server.address)
        log(f"Grafana       {_at(stack.enter_context(grafana(home, provisioning)))}")
        log(f"              provisioning is in {provisioning}")
        log("Press Ctrl-C to stop")
        threading.Event().wait()


def _period(*ends_s: int) -> str:
    """Return the options for a report of the history."""
    moments = [dt.datetime.fromtimestamp(each_s, dt.UTC) for each_s in ends_s]
    start, end = (f"{moment:%Y-%m-%dT%H:%M:00Z}" for moment in moments)
    return f"--from {start} --to {end}"


def _this_minute_s() -> int:
    return int(time.time()) // STEP_S * STEP_S


def _at(address: str | None) -> str:
    return f"http://{address}" if address is not None else "not installed"
