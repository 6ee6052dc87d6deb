"""Every query of every dashboard, asked of a real Prometheus that holds an hour of a fleet."""

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from grafana.boards import filled_in, targets_of
from grafana.history import JOB, STATES, openmetrics
from grafana.promtool import needs_promtool
from render import OUT
from support.loop_device import eventually
from support.monitoring_stack import PATIENCE_S, Prometheus, needs_prometheus, prometheus

pytestmark = [needs_prometheus, needs_promtool]

BOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(OUT.glob("dashboards/*.json"))
}
QUERIES = [
    pytest.param(name, target, id=f"{name}-{panel['title']}-{target['refId']}".replace(" ", "-"))
    for name, board in BOARDS.items()
    for panel, target in targets_of(board)
]
"""All have to give data. A query that cannot would be left out here, with its reason."""
LAST_RECORDED = (
    "provider_terms:disksla_sla_compliance:ratio30d",
    "instance_device:disksla_sla_compliance:ratio30d",
    "instance_device:disksla_state:worst5m",
)
ANYWHERE = {
    "$__rate_interval": "1m",
    "$__range": "30m",
    "$job": JOB,
    "$instance": ".+",
    "$device": ".+",
}
SHOWN = {
    "fleet": [ANYWHERE],
    "probes": [ANYWHERE],
    "disk": [
        {**ANYWHERE, "$instance": instance, "$device": "vda"}
        for instance in ("db-1:10056", "db-2:10056")
    ],
}
"""What is chosen on each dashboard. No disk has everything: the second one has credits."""


def hurried_rules() -> str:
    """Give our rules, each evaluated every second."""
    rules = yaml.safe_load((OUT / "prometheus_rules.yaml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        group["interval"] = "1s"
    return yaml.safe_dump(rules)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    room = tmp_path_factory.mktemp("prometheus")
    (room / "history.txt").write_text(openmetrics(int(time.time())))
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"],
        cwd=room,
        check=True,
        capture_output=True,
    )
    (room / "rules.yml").write_text(hurried_rules())
    (room / "prometheus.yml").write_text("rule_files: [rules.yml]\n")
    with prometheus(room / "prometheus.yml", room / "data") as found:
        assert eventually(lambda: all(map(found.query, LAST_RECORDED)), PATIENCE_S)
        yield found


@pytest.mark.parametrize(("name", "target"), QUERIES)
def test_it_gives_data(fleet: Prometheus, name: str, target: dict[str, Any]) -> None:
    def is_answered() -> bool:
        return any(answer(fleet, target, values) for values in SHOWN[name])

    assert eventually(is_answered, PATIENCE_S), "groups of rules take turns, so this may wait"


def answer(
    fleet: Prometheus, target: dict[str, Any], values: dict[str, str]
) -> list[dict[str, Any]]:
    expr = filled_in(target["expr"], values)
    if target["instant"]:
        return fleet.query(expr)
    now_s = time.time()
    span = {"start": str(now_s - 1800), "end": str(now_s), "step": "15"}
    found: list[dict[str, Any]] = fleet.get("/api/v1/query_range", query=expr, **span)["data"][
        "result"
    ]
    return found


def first_target(name: str, title: str) -> dict[str, Any]:
    return next(target for panel, target in targets_of(BOARDS[name]) if panel["title"] == title)


@pytest.mark.parametrize(
    ("name", "title"), [("disk", "Is it me or the disk?"), ("fleet", "Worst first")]
)
def test_what_is_said_of_each_disk(fleet: Prometheus, name: str, title: str) -> None:
    assert {
        (one["metric"]["instance"], one["metric"]["device"]): int(float(one["value"][1]))
        for one in answer(fleet, first_target(name, title), ANYWHERE)
    } == STATES


def test_the_fleet_counts_each_disk_once(fleet: Prometheus) -> None:
    counted = {
        "Give less than promised": 1,
        "Stalled": 1,
        "Out of credits": 1,
        "Held at their limit": 2,
        "Fine": 2,
    }
    for title, count in {**counted, "Nothing promised": 1}.items():
        found = answer(fleet, first_target("fleet", title), ANYWHERE)
        assert found[0]["value"][1] == str(count), title
    assert sum(counted.values()) == len(STATES)


def test_without_disks_nothing_is_counted(fleet: Prometheus) -> None:
    nowhere = {**ANYWHERE, "$instance": "nobody"}
    for panel, target in targets_of(BOARDS["fleet"]):
        if panel["gridPos"]["y"] == 0:
            assert not answer(fleet, target, nowhere)


def test_lines_of_a_table_agree_on_their_labels(fleet: Prometheus) -> None:
    """Grafana makes two lines of a disk where two columns disagree on a label that both have."""
    for name, board in BOARDS.items():
        for panel in board["panels"]:
            if panel["type"] != "table":
                continue
            columns = [answer(fleet, target, SHOWN[name][0]) for target in panel["targets"]]
            shared = set.intersection(
                *(set(one["metric"]) for column in columns for one in column)
            )
            every = set.union(*(set(one["metric"]) for column in columns for one in column))
            brought = [
                {label for one in column for label in one["metric"]} - shared for column in columns
            ]
            assert sum(len(labels) for labels in brought) == len(every - shared), panel["title"]
