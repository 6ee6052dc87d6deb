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


# -- the linter itself ------------------------------------------------------------------------


def find(dashboard: Dashboard, *keys: str | int) -> tuple[Any, str | int]:
    inner: Any = dashboard
    for key in keys[:-1]:
        inner = inner[key]
    return inner, keys[-1]


MISSING = object()
EXPR = ("panels", 0, "targets", 0, "expr")
VIOLATIONS: list[tuple[str, tuple[str | int, ...], object]] = [
    ("template_datasource", ("templating", "list", 0, "name"), "prometheus"),
    ("template_datasource", ("templating", "list", 0, "label"), "source"),
    ("template_variables", ("templating", "list", 5, "name"), "disk"),
    ("template_variables", ("templating", "list", 1, "allValue"), ".+"),
    ("template_variables", ("templating", "list", 1, "multi"), False),
    ("template_variables", ("templating", "list", 1, "label"), "Job"),
    ("template_variables", ("templating", "list", 1, "datasource"), {"uid": "mine"}),
    ("template_on_time_change_reload", ("templating", "list", 2, "refresh"), 1),
    ("uneditable", ("editable",), True),
    ("panel_datasource", ("panels", 0, "datasource"), {"uid": "mine"}),
    ("panel_datasource", ("panels", 0, "targets", 0, "datasource"), {"uid": "mine"}),
    ("panel_title_description", ("panels", 0, "description"), " \n"),
    ("panel_units", ("panels", 0, "fieldConfig", "defaults", "unit"), "requests"),
    ("panel_units", ("panels", 0, "fieldConfig", "defaults", "unit"), MISSING),
    ("panel_no_targets", ("panels", 0, "targets"), []),
    ("target_rate_interval", EXPR, 'rate(disksla_gaps_total{job=~"$job"}[5m])'),
    ("target_rate_interval", EXPR, 'rate(disksla_gaps_total{job=~"$job"}[$__range])'),
    ("target_job_instance", EXPR, 'disksla_inflight{job=~"$job"}'),
    ("target_job_instance", EXPR, "disksla_inflight"),
    ("target_job_instance", EXPR, 'a:b:c{instance=~"$instance"} and on (job) up{job=~"$job"}'),
    ("target_counter_agg", EXPR, "sum(disksla_gaps_total{})"),
    ("target_counter_agg", EXPR, "disksla_read_latency_seconds_count{}"),
    ("target_counter_agg", EXPR, "rate(disksla_inflight{}[$__rate_interval])"),
    ("identity", ("uid",), ""),
    ("identity", ("id",), 7),
    ("identity", ("schemaVersion",), 16),
    ("identity", ("panels", 1, "id"), 1),
    ("identity", ("panels", 1, "title"), "State"),
    ("core_panels", ("panels", 0, "type"), "flant-statusmap-panel"),
    ("no_data_text", ("panels", 0, "fieldConfig", "defaults", "noValue"), "No data"),
    ("no_data_text", ("panels", 0, "fieldConfig", "defaults", "noValue"), MISSING),
    ("grid", ("panels", 0, "gridPos", "x"), 17),
    ("grid", ("panels", 0, "gridPos", "w"), 3),
    ("grid", ("panels", 0, "gridPos", "w"), 9),
    ("links", ("links",), []),
    ("links", ("links", 0, "keepTime"), False),
    ("links", ("links", 0, "includeVars"), True),
    ("links", ("links", 0, "url"), "/d/disksla-fleet"),
    ("panel_units", ("panels", 13, "fieldConfig", "defaults", "unit"), "Bps"),
    ("alert_annotations", ("annotations", "list"), []),
    ("timeline_colours", ("panels", 1, "fieldConfig", "defaults", "color", "mode"), "thresholds"),
    ("absence_is_calm", ("panels", 5, "fieldConfig", "defaults", "mappings"), []),
    ("absence_is_calm", ("panels", 3, "options", "textMode"), "name"),
    ("present_at_any_zoom", ("panels", 0, "maxDataPoints"), 1000),
    ("present_at_any_zoom", EXPR, "increase(x[$__rate_interval])"),
    ("heat_maps_of_requests", ("panels", 26, "gridPos", "h"), 8),
    ("heat_maps_of_requests", ("panels", 26, "targets", 0, "expr"), "sum by (le) (x)"),
    ("lines_are_legible", ("panels", 13, "options", "legend", "calcs"), []),
    ("lines_are_legible", ("panels", 13, "fieldConfig", "defaults", "custom", "axisSoftMax"), 0),
    (
        "lines_are_legible",
        ("panels", 13, "fieldConfig", "defaults", "color"),
        {"mode": "palette-classic"},
    ),
    (
        "lines_are_legible",
        ("panels", 15, "fieldConfig", "overrides", 1, "properties", 3, "value"),
        1,
    ),
    ("rounding_and_names", ("panels", 13, "fieldConfig", "defaults", "decimals"), MISSING),
    ("rounding_and_names", ("panels", 13, "type"), "bargauge"),
    (
        "rounding_and_names",
        ("panels", 6, "title"),
        "A title that is longer than its panel is wide",
    ),
    ("quantiles_of_windows", EXPR, "histogram_quantile(0.5, disksla_window_load_ratio_bucket)"),
    ("quantiles_of_windows", EXPR, "histogram_quantile(0.5, disksla_read_latency_seconds_bucket)"),
    ("one_promise_for_each_disk", EXPR, "min(disksla_limit_latency_seconds)"),
    ("one_promise_for_each_disk", ("panels", 15, "targets", 2, "expr"), "disksla_limit_read_iops"),
    ("words_of_the_field", ("panels", 0, "title"), "The 99th percentile"),
    ("links", ("panels", 0, "fieldConfig", "defaults", "links"), [{"title": "", "url": "/d/x"}]),
    (
        "theme_colours",
        ("panels", 0, "fieldConfig", "defaults", "color"),
        {"fixedColor": "#ff0000"},
    ),
    ("tables", ("panels", 0, "type"), "table"),
    ("tables", ("panels", 14, "type"), "table"),
    ("schema", ("panels", 0, "options", "colourMode"), "value"),
    ("schema", ("panels", 0, "fieldConfig", "defaults", "units"), "s"),
    ("schema", ("panels", 13, "fieldConfig", "defaults", "custom", "lineWidht"), 1),
    ("schema", ("timezones",), "browser"),
]


def test_panels_that_people_know_from_other_tools() -> None:
    titles = {panel["title"] for panel in panels_of(DASHBOARDS["disk"])}
    assert titles >= {
        *("Read IOPS", "Write IOPS", "Read throughput", "Write throughput", "Request size"),
        *("Mean queue depth", "Queue depth", "Latency", "Flush latency", "State history"),
        *("Throttled", "Throttled by the machine", "Stalled", "Slow", "Burst credits"),
    }


def test_rows_that_few_disks_need_are_collapsed() -> None:
    rows = [panel for panel in DASHBOARDS["disk"]["panels"] if panel["type"] == "row"]
    collapsed = {row["title"]: len(row["panels"]) for row in rows if row["collapsed"]}
    assert collapsed == {"Burst credits": 2, "Machine": 7}
    assert all(row["panels"] == [] for row in rows if not row["collapsed"])


@pytest.mark.nightly
@pytest.mark.parametrize(("rule", "keys", "value"), VIOLATIONS)
def test_violation_is_found(rule: str, keys: tuple[str | int, ...], value: object) -> None:
    dashboard = copy.deepcopy(DASHBOARDS["disk"])
    parent, key = find(dashboard, *keys)
    if value is MISSING:
        del parent[key]
    else:
        parent[key] = value
    assert rule in {violation.partition(":")[0] for violation in violations(dashboard)}
