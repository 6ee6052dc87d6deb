"""Dashboards pass the rules of the linter, the schema of Grafana, and promtool."""

import copy
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from disksla.promise.configuration.settings import Profile
from grafana.dashboard_lint import Dashboard, filled_in, panels_of, targets_of, violations
from grafana.metric_names import is_published, recorded
from grafana.promql import metrics_in
from grafana.promtool import needs_promtool
from render import OUT, evaluate, project_url
from support.real_page import labels_by_name

DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(OUT.glob("dashboards/*.json"))
}


def test_dashboards_link_to_each_other() -> None:
    uids = {dashboard["uid"] for dashboard in DASHBOARDS.values()}
    assert uids == {"disksla-fleet", "disksla-disk", "disksla-probes"}
    for dashboard in DASHBOARDS.values():
        urls = {link["url"] for link in dashboard["links"]}
        pages = {url.partition("?")[0] for url in urls}
        assert pages - {project_url()} == {f"/d/{uid}" for uid in uids - {dashboard["uid"]}}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboard_has_no_violations(name: str) -> None:
    assert violations(DASHBOARDS[name]) == []


@pytest.mark.parametrize("name", DASHBOARDS)
def test_queries_use_series_of_the_default_profile(name: str) -> None:
    """Those of *Fleet* use series of the smallest profile only."""
    profile: Profile = "lean" if name == "fleet" else "default"
    known = {*labels_by_name(profile), *recorded()}
    for _, target in targets_of(DASHBOARDS[name]):
        expr = filled_in(target["expr"])
        assert metrics_in(expr) <= known
        for metric, bound in re.findall(r'(\w+)_bucket\{[^}]*le="([^"]+)"', expr):
            assert is_published(f'{metric}_bucket{{le="{bound}"}}', profile)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panel_that_is_empty_with_the_smallest_profile_says_so(name: str) -> None:
    known = {*labels_by_name("lean"), *recorded()}
    for panel in panels_of(DASHBOARDS[name]):
        needed = [metrics_in(filled_in(target["expr"])) for target in panel["targets"]]
        if not any(metrics <= known for metrics in needed):
            assert "lean" in panel["fieldConfig"]["defaults"]["noValue"], panel["title"]


@needs_promtool
@pytest.mark.parametrize("name", DASHBOARDS)
def test_promtool_accepts_queries(name: str, tmp_path: Path) -> None:
    check_queries(DASHBOARDS[name], tmp_path)


@needs_promtool
def test_dashboards_with_other_settings_pass_too(tmp_path: Path) -> None:
    config = """{
        hostLabels: ['region', 'job', 'instance'],
        rateWindow: '10m',
        projectUrl: 'https://disksla.test',
    }"""
    dashboards = evaluate("grafanaDashboards", config)
    for dashboard in dashboards.values():
        assert violations(dashboard) == []
        check_queries(dashboard, tmp_path)
    fleet = json.dumps(dashboards["fleet.json"])
    assert "max by (region, job, instance, device" in fleet
    assert "instance_device:disksla_state:worst10m" in fleet


def check_queries(dashboard: Dashboard, directory: Path) -> None:
    queries = [
        {"record": f"query:{number}", "expr": filled_in(target["expr"])}
        for number, (_, target) in enumerate(targets_of(dashboard))
    ]
    rules = directory / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": queries}]}))
    check = subprocess.run(
        ["promtool", "check", "rules", "--lint=none", rules],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr
    assert f"{len(queries)} rules found" in check.stdout


def test_rows_that_few_disks_need_are_collapsed() -> None:
    rows = [panel for panel in DASHBOARDS["disk"]["panels"] if panel["type"] == "row"]
    collapsed = {row["title"]: len(row["panels"]) for row in rows if row["collapsed"]}
    assert collapsed == {"Burst credits": 2, "Machine": 7}


def test_the_state_is_first_and_no_panel_counts_what_did_not_happen() -> None:
    assert [panel["title"] for panel in DASHBOARDS["disk"]["panels"][:3]] == [
        *("State", "Share of the time", "State history")
    ]
    assert DASHBOARDS["fleet"]["panels"][0]["title"] == "Disks by state"
    shares = [each["expr"] for each in DASHBOARDS["disk"]["panels"][1]["targets"]]
    assert all(each.endswith(" > 0.0005") for each in shares)


EXPR = ("panels", 0, "targets", 0, "expr")
VIOLATIONS: list[tuple[str, tuple[str | int, ...], object]] = [
    ("panel_units", ("panels", 0, "fieldConfig", "defaults", "unit"), "requests"),
    ("target_rate_interval", EXPR, 'rate(disksla_gaps_total{job=~"$job"}[5m])'),
    ("target_job_instance", EXPR, 'disksla_inflight{job=~"$job"}'),
    ("target_counter_agg", EXPR, "sum(disksla_gaps_total{})"),
    ("target_counter_agg", EXPR, "rate(disksla_inflight{}[$__rate_interval])"),
    ("identity", ("panels", 1, "id"), 1),
    ("texts", ("panels", 0, "fieldConfig", "defaults", "noValue"), "No data"),
    ("grid", ("panels", 0, "gridPos", "w"), 9),
    ("tables", ("panels", 0, "type"), "table"),
    ("schema", ("panels", 0, "options", "colourMode"), "value"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("rule", "keys", "value"), VIOLATIONS)
def test_violation_is_found(rule: str, keys: tuple[str | int, ...], value: object) -> None:
    dashboard = copy.deepcopy(DASHBOARDS["disk"])
    inner: Any = dashboard
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    assert rule in {violation.partition(":")[0] for violation in violations(dashboard)}
