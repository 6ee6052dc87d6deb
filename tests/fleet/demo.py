"""Everything at once on loopback, with a day behind it: `make demo`."""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from fleet.backfill import STEP_S, backfill, backfill_rules, steps_of
from fleet.grafana import grafana, write_provisioning
from fleet.history import DISKS_PER_HOST
from fleet.measure import time_rules
from fleet.server import served
from fleet.stack import MIXIN, SILENT, Scraping, prometheus
from support.monitoring_stack import alertmanager

SEED = 1
_QUIET_ROUTE = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


class Demo(NamedTuple):
    """What is shown."""

    hosts: int = 20
    hours: float = 24.0
    interval_s: float = 60.0


def show(demo: Demo, home: Path, say: Callable[[str], None], until: Callable[[], None]) -> None:
    """Make the history, start everything, tell where it is, and wait; then end everything."""
    data = home / "data"
    data.mkdir()
    end_s = _this_minute_s()
    start_s = end_s - round(demo.hours * 3600)
    disks = demo.hosts * DISKS_PER_HOST
    say(f"making {demo.hours:g} h of history of {disks} disks; a day of 200 takes minutes")
    begun_s = time.monotonic()
    backfill(SEED, demo.hosts, end_s, start_s, end_s, data)
    say(f"made in {time.monotonic() - begun_s:.0f} s; now what the rules would have recorded")
    begun_s = time.monotonic()
    for rules in steps_of(MIXIN / "prometheus_rules.yaml", home):
        with prometheus(SILENT, home) as server:
            backfill_rules(server, rules, start_s, end_s, data)
    backfill(SEED, demo.hosts, end_s, end_s, _this_minute_s(), data)
    say(f"recorded in {time.monotonic() - begun_s:.0f} s")
    with ExitStack() as stack:
        fleet = stack.enter_context(served(SEED, end_s))
        say(f"a host        http://{fleet}/host-0001/metrics")
        pager = None
        if shutil.which("prometheus-alertmanager"):
            quiet = home / "alertmanager.yml"
            quiet.write_text(json.dumps(_QUIET_ROUTE))
            pager = stack.enter_context(alertmanager(quiet, home / "alertmanager")).address
        say(f"Alertmanager  {_at(pager)}")
        scraping = Scraping(str(fleet), demo.hosts, demo.interval_s, alertmanager=pager)
        server = stack.enter_context(prometheus(scraping, home))
        say(f"Prometheus    http://{server.address}/alerts")
        provisioning = write_provisioning(home, server.address)
        say(f"Grafana       {_at(stack.enter_context(grafana(home, provisioning)))}")
        say(f"              what it is given is in {provisioning}")
        seconds = time_rules(server, scraping.rules)
        slowest = max(seconds, key=lambda group: seconds[group])
        say(
            f"rules         evaluated once over that history in {sum(seconds.values()):.2f} s;"
            f" the slowest group, {slowest}, in {seconds[slowest]:.2f} s"
            f" (load average {os.getloadavg()[0]:.1f})"
        )
        say("Ctrl-C ends all of it")
        until()


def _this_minute_s() -> int:
    return int(time.time()) // STEP_S * STEP_S


def _at(address: str | None) -> str:
    return f"http://{address}" if address is not None else "not installed"
