"""Queries of dashboards are right on a real Prometheus with an hour of a small fleet."""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from grafana.dashboard_lint import ANY_VALUE, filled_in, targets_of
from grafana.promtool import needs_promtool
from grafana.queried import fast_rules, result
from grafana.sample_history import JOB, STATES, openmetrics
from render import OUT
from support.monitoring_stack import PATIENCE_S, Prometheus, needs_prometheus, prometheus
from support.waiting import eventually

pytestmark = [needs_prometheus, needs_promtool]

DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(OUT.glob("dashboards/*.json"))
}
LAST_RECORDS = (
    "provider_terms:disksla_sla_compliance:ratio30d",
    "instance_device:disksla_sla_compliance:ratio30d",
    "instance_device:disksla_state:worst5m",
)
ANYWHERE = {**ANY_VALUE, "$__rate_interval": "1m", "$__range": "30m", "$job": JOB}
SELECTED = {
    "fleet": [ANYWHERE],
    "probes": [ANYWHERE],
    "disk": [
        {**ANYWHERE, "$instance": instance, "$device": "vda"}
        for instance in ("db-1:10056", "db-2:10056")
    ],
}
"""Values of the variables of each dashboard. Only the second disk of `disk` has credits."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    (directory / "history.txt").write_text(openmetrics(int(time.time())))
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    (directory / "rules.yml").write_text(fast_rules())
    (directory / "prometheus.yml").write_text("rule_files: [rules.yml]\n")
    with prometheus(directory / "prometheus.yml", directory / "data") as server:
        assert eventually(lambda: all(map(server.query, LAST_RECORDS)), PATIENCE_S)
        yield server


def first_target(name: str, title: str) -> dict[str, Any]:
    return next(
        target for panel, target in targets_of(DASHBOARDS[name]) if panel["title"] == title
    )


@pytest.mark.parametrize(("name", "title"), [("disk", "State"), ("fleet", "Worst disks")])
def test_state_of_each_disk(fleet: Prometheus, name: str, title: str) -> None:
    assert {
        (one["metric"]["instance"], one["metric"]["device"]): int(float(one["value"][1]))
        for one in result(fleet, first_target(name, title), ANYWHERE)
    } == STATES


def test_fleet_counts_each_disk_once(fleet: Prometheus) -> None:
    [targets] = [
        panel["targets"]
        for panel in DASHBOARDS["fleet"]["panels"]
        if panel["title"] == "Disks by state"
    ]
    counts = [
        int(one["value"][1]) for target in targets for one in result(fleet, target, ANYWHERE)
    ]
    assert len(counts) == len(set(STATES.values()))
    assert sum(counts) == len(STATES)
    [without] = result(fleet, first_target("fleet", "Without limits"), ANYWHERE)
    assert without["value"][1] == "1"


def test_disks_are_selected_by_their_claim(fleet: Prometheus) -> None:
    """Not by host and device: those of several claims would be combined."""
    selected = {**ANYWHERE, "$namespace": "db", "$persistentvolumeclaim": "data-pg-1"}
    for title in ("Worst disks", "Least compliant disks of the last day"):
        found = result(fleet, first_target("fleet", title), selected)
        disks = {(one["metric"]["instance"], one["metric"]["device"]) for one in found}
        assert disks == {("db-1:10056", "vdd")}, title


def test_claim_of_a_disk(fleet: Prometheus) -> None:
    selected = {**ANYWHERE, "$instance": "db-1:10056", "$device": "vdd"}
    [found] = result(fleet, first_target("disk", "Claim"), selected)
    assert found["metric"]["claim"] == "db/data-pg-1"


def test_variables_select_the_disk_of_a_claim(fleet: Prometheus) -> None:
    """As Grafana does: the series of `label_values`, with what was selected before."""
    selected = {**ANYWHERE, "$persistentvolumeclaim": "data-pg-1"}
    for name, expected in (("instance", "db-1:10056"), ("device", "vdd")):
        [query] = [
            each["query"]["query"]
            for each in DASHBOARDS["disk"]["templating"]["list"]
            if each["name"] == name
        ]
        selector, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        found = fleet.query(filled_in(selector, selected))
        assert {one["metric"][label] for one in found} == {expected}
        selected[f"${name}"] = expected


def test_machines_at_their_limit(fleet: Prometheus) -> None:
    shares = result(fleet, first_target("fleet", "Machines at their limit"), ANYWHERE)
    assert {
        (one["metric"]["instance"], one["metric"]["group"]): round(float(one["value"][1]), 3)
        for one in shares
    } == {("db-2:10056", "ebs"): 0.6}
    counts = result(fleet, first_target("fleet", "Number of machines at their limit"), ANYWHERE)
    assert {value for _, value in counts[0]["values"]} == {"1"}


@pytest.mark.parametrize(
    ("instance", "device", "compliance", "shares"),
    [
        # Of the tested time, the disk was below its promise for 0.04 / (0.04 + 0.06).
        (
            *("db-2:10056", "vdd", 0.6),
            {
                "The disk: less than promised": 0.04,
                "The machine: throttled": 0.6,
                "OK": 0.06,
                "Idle": 0.3,
            },
        ),
        ("db-1:10056", "vdd", 1 / 3, {"The disk: hung": 0.2, "OK": 0.1, "Idle": 0.7}),
        ("db-2:10056", "vdb", None, {"Unknown limit": 0.5, "Idle": 0.5}),
        ("db-2:10056", "vde", None, {"The disk: slow": 1 / 3, "OK": 1 / 6, "Idle": 0.5}),
        ("db-1:10056", "vdc", 1.0, {"You: throttled": 0.4, "OK": 0.5, "Idle": 0.1}),
    ],
)
def test_what_held_and_for_how_long(
    fleet: Prometheus,
    instance: str,
    device: str,
    compliance: float | None,
    shares: Mapping[str, float],
) -> None:
    """Panels have only what happened; the compliance only time in which the promise was tested."""
    selected = {**ANYWHERE, "$instance": instance, "$device": device}
    found = result(fleet, first_target("disk", "SLA compliance"), selected)
    expected = [] if compliance is None else [pytest.approx(compliance)]
    assert [float(one["value"][1]) for one in found] == expected
    shown = {
        target["legendFormat"]: float(one["value"][1])
        for panel, target in targets_of(DASHBOARDS["disk"])
        if panel["title"] == "Share of the time"
        for one in result(fleet, target, selected)
    }
    assert shown == pytest.approx(shares, rel=0.05)


def test_disks_that_broke_their_promise_today_are_listed(fleet: Prometheus) -> None:
    least = first_target("fleet", "Least compliant disks of the last day")
    found = result(fleet, least, ANYWHERE)
    assert {(one["metric"]["instance"], one["metric"]["device"]) for one in found} == {
        (instance, device) for (instance, device), state in STATES.items() if state in {7, 8}
    } | {("db-2:10056", "vdd")}


def test_alerts_and_problems_are_annotated(fleet: Prometheus) -> None:
    """Each query is valid; that of alerts selects those of the disk and of its machine."""
    for dashboard in DASHBOARDS.values():
        alerts, *problems = dashboard["annotations"]["list"]
        assert 'device=~"vda|"' in filled_in(alerts["expr"], {**ANYWHERE, "$device": "vda"})
        for query in (alerts, *problems):
            assert fleet.query(filled_in(query["expr"], {**ANYWHERE, "$device": "idle"})) == []


def test_panels_of_a_machine_show_all_disks_of_the_group(fleet: Prometheus) -> None:
    selected = {**ANYWHERE, "$instance": "db-2:10056", "$device": "vdd"}
    traffic = result(fleet, first_target("disk", "IOPS of these disks"), selected)
    assert {one["metric"]["device"] for one in traffic} == {"vda", "vdd"}
    [about] = result(fleet, first_target("disk", "Disks that share the limit"), selected)
    assert about["metric"]["machine"] == "m5.large"


def test_columns_of_tables_share_their_labels(fleet: Prometheus) -> None:
    """Grafana makes two rows of a disk if two columns have different values of a shared label."""
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            if panel["type"] != "table":
                continue
            columns = [result(fleet, target, SELECTED[name][0]) for target in panel["targets"]]
            shared = set.intersection(
                *(set(one["metric"]) for column in columns for one in column)
            )
            every = set.union(*(set(one["metric"]) for column in columns for one in column))
            own = [
                {label for one in column for label in one["metric"]} - shared for column in columns
            ]
            assert sum(len(labels) for labels in own) == len(every - shared), panel["title"]
