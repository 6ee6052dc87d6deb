"""Thanos Rule and vmalert evaluate the committed rules, and alert as Prometheus does.

The rules are evaluated now, on a history that ends later. Their intervals and the durations in
`for` are thirtieths of those in the files; the expressions are not changed.
"""

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from engines.answers import answer_of
from engines.programs import THANOS, needs_engines
from engines.stores import Stores
from grafana.metric_names import recorded
from grafana.promql import seconds_of
from render import OUT
from support.monitoring_stack import Service, needs_alertmanager
from support.waiting import eventually

pytestmark = [needs_engines, needs_alertmanager, pytest.mark.alone]

COMMITTED = [OUT / "prometheus_rules.yaml", OUT / "prometheus_alerts.yaml"]
HISTORY_S = 3 * 3600
FASTER = 30
INTERVAL = "2s"
DEDUPLICATED = "2s"
SETTLED_S = 120
PATIENCE_S = 60
NUMBER = re.compile(r"-?\d[\d.]*[^\s,:]*")


class Rulers(NamedTuple):
    stores: Stores
    thanos: list[Service]
    vmalert: list[Service]
    alertmanager: Service


def faster(home: Path) -> list[Path]:
    """Write the rules with short intervals."""
    files = []
    for committed in COMMITTED:
        content = yaml.safe_load(committed.read_text(encoding="utf-8"))
        for group in content["groups"]:
            group["interval"] = INTERVAL
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = f"{seconds_of(rule['for']) / FASTER:.0f}s"
        files.append(home / committed.name)
        files[-1].write_text(yaml.safe_dump(content), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def rulers(
    make_stores: Callable[[int, str], Stores], tmp_path_factory: pytest.TempPathFactory
) -> Rulers:
    stores = make_stores(HISTORY_S, DEDUPLICATED)
    programs = stores.programs
    rules = faster(tmp_path_factory.mktemp("rules"))
    pager = programs.alertmanager()
    config = {
        "rule_files": [str(file) for file in rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [pager.address]}]}]},
    }
    programs.write("prometheus.json", config)
    stores.prometheus.process.send_signal(signal.SIGHUP)
    query, victoria = stores.thanos.address, stores.victoria.api.address
    thanos = [
        programs.ruler(f"rule-{number}", grpc, query, pager.address, rules)
        for number, grpc in enumerate(stores.endpoints[2:])
    ]
    vmalert = [
        programs.vmalert(f"vmalert-{number}", victoria, pager.address, rules) for number in (0, 1)
    ]
    time.sleep(SETTLED_S)
    return Rulers(stores, thanos, vmalert, pager)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_thanos_accepts_the_committed_rules() -> None:
    output = run(str(THANOS), "tools", "rules-check", *(f"--rules={file}" for file in COMMITTED))
    assert "error" not in output.lower()


def test_vmalert_accepts_the_committed_rules() -> None:
    run("vmalert", "-dryRun", *(f"-rule={file}" for file in COMMITTED))


def series_of(stores: Stores, name: str) -> dict[str, set[frozenset[tuple[str, str]]]]:
    """Return the recorded series of a name that each engine has now."""
    engines = {
        "prometheus": stores.prometheus.api,
        "thanos": stores.thanos,
        "victoria": stores.victoria.api,
    }
    return {
        engine: set(answer_of(api.get("/api/v1/query", query=name)))
        for engine, api in engines.items()
    }


@pytest.mark.parametrize("name", sorted(recorded()))
def test_recorded_series_are_the_same(rulers: Rulers, name: str) -> None:
    def are_same() -> bool:
        prometheus, thanos, victoria = series_of(rulers.stores, name).values()
        return bool(prometheus) and prometheus == thanos == victoria

    assert eventually(are_same, PATIENCE_S, 1.0), {
        engine: sorted(map(sorted, series))[:3]
        for engine, series in series_of(rulers.stores, name).items()
    }


def firing(ruler: Service) -> dict[frozenset[tuple[str, str]], dict[str, str]]:
    """Return the annotations of firing alerts by labels; numbers in them differ in time."""
    [alerts] = ruler.get("/api/v1/alerts")["data"].values()  # `alerts`, and `Alerts` of Thanos
    return {
        frozenset(alert["labels"].items()): {
            name: NUMBER.sub("#", text) for name, text in alert["annotations"].items()
        }
        for alert in alerts
        if alert["state"] == "firing"
    }


@pytest.mark.parametrize("engine", ["thanos", "vmalert"])
def test_the_same_alerts_fire(rulers: Rulers, engine: str) -> None:
    [ruler, *_] = rulers.thanos if engine == "thanos" else rulers.vmalert
    reference = rulers.stores.prometheus.api
    assert eventually(lambda: firing(ruler) == firing(reference), PATIENCE_S, 1.0), {
        "only prometheus": firing(reference).keys() - firing(ruler).keys(),
        "only here": firing(ruler).keys() - firing(reference).keys(),
        "texts": [
            (text, firing(ruler)[labels])
            for labels, text in firing(reference).items()
            if firing(ruler).get(labels, text) != text
        ][:2],
    }
    assert len({dict(labels)["alertname"] for labels in firing(ruler)}) > 8


def test_alertmanager_gets_one_alert_of_all_rulers(rulers: Rulers) -> None:
    """Labels of replicas are dropped, and no ruler adds its own."""

    def labels() -> list[frozenset[tuple[str, str]]]:
        alerts = rulers.alertmanager.get("/api/v2/alerts")
        return [frozenset(alert["labels"].items()) for alert in alerts]

    expected = firing(rulers.stores.prometheus.api).keys()
    assert eventually(lambda: set(labels()) == expected, PATIENCE_S, 1.0)


def test_two_rulers_record_one_series(rulers: Rulers) -> None:
    name = "provider_terms:disksla_disks:count"
    stores = rulers.stores
    for api in (stores.prometheus.api, stores.thanos, stores.victoria.api):
        [found] = api.query(f"max(count_over_time({name}[20s]))")
        assert 8 <= float(found["value"][1]) <= 11, api.address
