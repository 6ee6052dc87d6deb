"""Alerts fire on a real Prometheus that scrapes pages of the real program.

Each daemon has one disk, whose limiter and load are simulated. The rules are those of the project
with shorter windows and durations (`support.alerting`), so that seconds are enough.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from grafana.queried import served
from render import render_rules, write
from support.alerting import SHORT
from support.machine_facts import configuration_of
from support.monitoring_stack import Prometheus, needs_prometheus, prometheus
from support.real_page import page_of
from support.simulated_limiter import DEVICE, Closed, Limiter, Load, Open, Scenario, run, summed
from support.waiting import eventually

pytestmark = [needs_prometheus, pytest.mark.xdist_group("test_real_alerts")]

SECONDS = 60
POSTGRESQL = Closed(depth=8, write_share=0.5)
"""The depth of a database with eight clients: less than most types need for their promise."""


class Daemon(NamedTuple):
    """The terms of a disk, what limits and loads it, and the alerts on it."""

    terms: str
    iops: float
    load: Load
    alerts: set[str]


DAEMONS: Mapping[str, Daemon] = {
    "below": Daemon("{budget: sum, iops: 250}", 120, POSTGRESQL, {"DiskBelowPromise"}),
    "machine-unknown": Daemon(
        "aws.gp3", 120, POSTGRESQL, {"DiskThrottled", "DiskLimitNotExplained"}
    ),
    "throttled": Daemon("{budget: sum, iops: 250}", 250, POSTGRESQL, {"DiskThrottled"}),
    "near": Daemon("{budget: sum, iops: 250}", 250, Open(per_second=225), {"DiskNearLimit"}),
    "credits": Daemon(
        "{budget: sum, iops: 100, burst: {iops: 300, iops_credits: 30000}}",
        *(300, Open(per_second=200), {"DiskBurstCreditsExhaustSoon"}),
    ),
    "far": Daemon("{budget: sum, iops: 250}", 250, Open(per_second=60), set()),
}


def pages_of(daemon: Daemon) -> dict[int, str]:
    """Return the page of each second."""
    limiter = Limiter(buckets=summed(daemon.iops))
    scenario = Scenario(limiter=limiter, loads=(daemon.load,), seconds=SECONDS)
    terms = f"disks: [{{match: {{device: {DEVICE}}}, terms: {daemon.terms}}}]"
    state = State(configuration_of(terms))
    pages = {}
    for number, tick in enumerate(run(scenario).ticks):
        state = advance(state, tick)
        if number % 10 == 0 and number:
            pages[number // 10] = page_of(Snapshot(state))
    return pages


@pytest.fixture(scope="module")
def alerts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    write(render_rules(SHORT), directory)
    pages = {name: pages_of(daemon) for name, daemon in DAEMONS.items()}
    with ExitStack() as undo:
        targets = [
            {"targets": [undo.enter_context(served(each))], "labels": {"instance": name}}
            for name, each in pages.items()
        ]
        config = {
            "global": {"scrape_interval": "1s"},
            "rule_files": ["prometheus_rules.yaml", "prometheus_alerts.yaml"],
            "scrape_configs": [{"job_name": "disksla", "static_configs": targets}],
        }
        (directory / "prometheus.yml").write_text(json.dumps(config))
        yield undo.enter_context(prometheus(directory / "prometheus.yml", directory / "data"))


def test_each_alert_fires_and_no_disk_is_accused_of_more(alerts: Prometheus) -> None:
    def firing() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {name: set() for name in DAEMONS}
        for each in alerts.query('ALERTS{alertstate="firing"}'):
            found[each["metric"]["instance"]].add(each["metric"]["alertname"])
        return found

    expected = {name: daemon.alerts for name, daemon in DAEMONS.items()}
    assert eventually(lambda: firing() == expected, SECONDS), firing()
    accused = alerts.query('count_over_time(ALERTS{alertname="DiskBelowPromise"}[5m])')
    assert {each["metric"]["instance"] for each in accused} == {"below"}
    described: list[dict[str, Any]] = alerts.get("/api/v1/alerts")["data"]["alerts"]
    [text] = [
        each["annotations"]["description"]
        for each in described
        if each["labels"]["instance"] == "throttled"
    ]
    assert " You: iops " in text
    assert " Requests waited " in text
    assert " Bought: 250 IOPS. Served: 2" in text
    assert text.endswith(", terms written out.")
