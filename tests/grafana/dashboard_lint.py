"""Linter of dashboards: the rules of Grafana's dashboard-linter, and those of this project."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as DashboardModel

from grafana.metric_names import counters
from grafana.promql import calls_in, metrics_in

register_default_plugins()

Dashboard = dict[str, Any]
Panel = dict[str, Any]
Target = dict[str, Any]

CORE_PANELS = {
    "bargauge",
    "heatmap",
    "row",
    "stat",
    "state-timeline",
    "table",
    "timeseries",
}
RANGE = re.compile(r"(\w+)\(\s*[\w:]+(?:\{[^}]*\})?\[([^]]*)\]")
"""A function over a range of a series."""
UNITS = {"none", "short", "percentunit", "s", "iops", "Bps", "dateTimeFromNow"}
"""Units of Grafana that the dashboards use."""
GRID_COLUMNS = 24
ANY_VALUE = {
    "$__rate_interval": "5m",
    "$__range": "1h",
    "$job": ".+",
    "$instance": ".+",
    "$device": ".+",
}
SELECTOR = re.compile(r"(?<![\w:\"$])((?:disksla_|\w+:)[\w:]+|up)\b(?!\s*\()(\{[^}]*\})?")
"""A metric and its matchers. Names of recorded series have colons."""

# -- panels and queries -----------------------------------------------------------------------


def panels_of(dashboard: Dashboard) -> list[Panel]:
    """Return all panels except rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def targets_of(dashboard: Dashboard) -> Iterator[tuple[Panel, Target]]:
    """Yield every query with its panel."""
    for panel in panels_of(dashboard):
        for target in panel["targets"]:
            yield panel, target


def filled_in(expr: str, values: Mapping[str, str] = ANY_VALUE) -> str:
    """Return the query with values in place of variables."""
    for name in sorted(values, key=len, reverse=True):
        expr = expr.replace(name, values[name])
    return expr


# -- rules ------------------------------------------------------------------------------------
#
# Rules of https://github.com/grafana/dashboard-linter, under the same names.

LINK_PARAMETERS = (
    "${datasource:queryparam}",
    "${job:queryparam}",
    "var-instance=",
    "var-device=",
    "${__url_time_range}",
)
"""Parameters of a link to the dashboard of a disk."""
ONE_DISK = "disksla-disk"
"""Dashboard of one disk: one host and one device are selected."""
OVER_ALL_HOSTS = "provider_terms"
"""Series recorded over all hosts have no label `instance`."""


def template_datasource(dashboard: Dashboard) -> Iterator[str]:
    first = dashboard["templating"]["list"][0]
    if (first["name"], first["type"], first["query"]) != (
        "datasource",
        "datasource",
        "prometheus",
    ):
        yield "the first variable is not the data source"
    if first["label"] != "Data source":
        yield "the label of the data source is not `Data source`"


def template_variables(dashboard: Dashboard) -> Iterator[str]:
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    for name in ("job", "instance", "device"):
        if name not in variables:
            yield f"variable {name} is missing"
            continue
        variable = variables[name]
        several = name == "job" or dashboard["uid"] != ONE_DISK
        if variable["type"] != "query" or variable["datasource"]["uid"] != "${datasource}":
            yield f"variable {name} does not use the selected data source"
        if variable["label"] != name:
            yield f"the label of variable {name} is not {name}"
        if (variable["multi"], variable["includeAll"]) != (several, several):
            yield f"variable {name}: multi and includeAll are not {several}"
        if variable["allValue"] != ".+":
            yield f"allValue of variable {name} is not .+"


def template_on_time_change_reload(dashboard: Dashboard) -> Iterator[str]:
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"variable {variable['name']} is not refreshed when the time range changes"


def uneditable(dashboard: Dashboard) -> Iterator[str]:
    if dashboard["editable"]:
        yield "the dashboard is editable"


def panel_datasource(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        sources = [one.get("datasource", {}) for one in (panel, *panel["targets"])]
        if any(one["uid"] != "${datasource}" for one in sources):
            yield f"{panel['title']}: uses another data source"


def panel_title_description(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        if not panel.get("title") or not panel.get("description", "").strip():
            yield f"panel {panel['id']}: lacks a title or a description"


def panel_units(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        properties = [
            each for one in panel["fieldConfig"]["overrides"] for each in one["properties"]
        ]
        units = [each["value"] for each in properties if each["id"] == "unit"]
        for unit in [panel["fieldConfig"]["defaults"].get("unit"), *units]:
            if unit not in UNITS:
                yield f"{panel['title']}: unexpected unit {unit}"


def panel_no_targets(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        if not any(one["expr"] for one in panel["targets"]):
            yield f"{panel['title']}: has no query"


def target_rate_interval(dashboard: Dashboard) -> Iterator[str]:
    for panel, target in targets_of(dashboard):
        for function, window in RANGE.findall(target["expr"]):
            allowed = {"$__rate_interval"} | ({"$__range"} if function == "increase" else set())
            if window not in allowed:
                yield f"{panel['title']}: {function} over {window}"


def target_job_instance(dashboard: Dashboard) -> Iterator[str]:
    for panel, target in targets_of(dashboard):
        for name, matchers in SELECTOR.findall(target["expr"]):
            expected = ["job"] if name.startswith(OVER_ALL_HOSTS) else ["job", "instance"]
            for label in expected:
                if f'{label}=~"${label}"' not in matchers:
                    yield f"{panel['title']}: {name} has no matcher for ${label}"


def target_counter_agg(dashboard: Dashboard) -> Iterator[str]:
    for panel, target in targets_of(dashboard):
        expr = filled_in(target["expr"])
        rated = [
            metric
            for function, argument in calls_in(expr)
            if function in {"rate", "increase"}
            for metric in metrics_in(argument)
        ]
        for metric in set(rated) - counters():
            yield f"{panel['title']}: {metric} is not a counter, but has a rate"
        bare = Counter(re.findall(r"[\w:]+(?=\{)", expr)) - Counter(rated)
        for metric in bare.keys() & counters():
            yield f"{panel['title']}: {metric} is a counter without rate or increase"


# Rules of this project.


def identity(dashboard: Dashboard) -> Iterator[str]:
    if "id" in dashboard or not dashboard.get("uid") or dashboard["schemaVersion"] < 38:
        yield "the dashboard has an id, no uid, or an old schema"
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) < len(ids):
        yield "two panels have the same id"
    titles = [panel["title"] for panel in panels_of(dashboard)]
    if len(set(titles)) < len(titles):
        yield "two panels have the same title"
    for panel in panels_of(dashboard):
        refs = [target["refId"] for target in panel["targets"]]
        if len(set(refs)) < len(refs):
            yield f"{panel['title']}: two queries have the same refId"


def core_panels(dashboard: Dashboard) -> Iterator[str]:
    for panel in dashboard["panels"]:
        if panel["type"] not in CORE_PANELS:
            yield f"{panel['title']}: {panel['type']} is not a core panel of Grafana"


def no_data_text(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        text = panel["fieldConfig"]["defaults"].get("noValue", "")
        if text.lower() in {"", "no data", "n/a"}:
            yield f"{panel['title']}: noValue does not explain why there is no data"


def grid(dashboard: Dashboard) -> Iterator[str]:
    positions = [(panel["title"], panel["gridPos"]) for panel in dashboard["panels"]]
    for title, at in positions:
        if at["x"] + at["w"] > GRID_COLUMNS:
            yield f"{title}: exceeds the width of the grid"
        if at["w"] < 4:
            yield f"{title}: is too narrow to be read at 1280 pixels"
    for (one, a), (other, b) in combinations(positions, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        if not beside and not above:
            yield f"{one} and {other} overlap"


def links(dashboard: Dashboard) -> Iterator[str]:
    if not dashboard["links"]:
        yield "the dashboard has no links"
    for link in dashboard["links"]:
        if link["url"].startswith("/d/") and not (link["includeVars"] and link["keepTime"]):
            yield f"link {link['title']}: drops variables or time range"
    for panel in panels_of(dashboard):
        for link in _data_links(panel):
            if not all(parameter in link["url"] for parameter in LINK_PARAMETERS):
                yield f"{panel['title']}: its link drops variables or time range"


def _data_links(panel: Panel) -> Iterator[dict[str, str]]:
    config = panel["fieldConfig"]
    yield from config["defaults"].get("links", [])
    for override in config["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from one["value"]


def theme_colours(dashboard: Dashboard) -> Iterator[str]:
    for found in re.findall(r'"(#[0-9a-fA-F]{3,8}|rgba?\([^"]*)"', json.dumps(dashboard)):
        yield f"{found} is not a named colour of the theme"


def tables(dashboard: Dashboard) -> Iterator[str]:
    """Rows are joined by the labels that all queries of a table have.

    Grafana names the value of a query `Value #A` only if there are at least two queries.
    """
    for panel in panels_of(dashboard):
        if panel["type"] != "table":
            continue
        if len(panel["targets"]) < 2:
            yield f"{panel['title']}: a table with one query has no column `Value #A`"
        for target in panel["targets"]:
            if not re.match(r"(sum|min|max) by \(", target["expr"]):
                yield f"{panel['title']}: {target['refId']} does not list the labels that it keeps"


def schema(dashboard: Dashboard) -> Iterator[str]:
    """Decode with Grafana's own schema and encode again: unknown keys and values are lost."""
    again = json.loads(JSONEncoder().encode(DashboardModel.from_json(dashboard)))
    yield from _lost(dashboard, again, "")


def _lost(written: object, decoded: object, path: str) -> Iterator[str]:
    if isinstance(written, dict) and isinstance(decoded, dict):
        for key, value in written.items():
            if key not in decoded:
                yield f"unknown key {path}.{key}"
            else:
                yield from _lost(value, decoded[key], f"{path}.{key}")
    elif isinstance(written, list) and isinstance(decoded, list) and len(written) == len(decoded):
        for index, (one, other) in enumerate(zip(written, decoded, strict=True)):
            yield from _lost(one, other, f"{path}[{index}]")
    elif written != decoded:
        yield f"{path} is decoded as {decoded}"


RULES: tuple[Callable[[Dashboard], Iterator[str]], ...] = (
    template_datasource,
    template_variables,
    template_on_time_change_reload,
    uneditable,
    panel_datasource,
    panel_title_description,
    panel_units,
    panel_no_targets,
    target_rate_interval,
    target_job_instance,
    target_counter_agg,
    identity,
    core_panels,
    no_data_text,
    grid,
    links,
    theme_colours,
    tables,
    schema,
)


def violations(dashboard: Dashboard) -> list[str]:
    """Return all violations of the rules, as `rule: message`."""
    return [f"{rule.__name__}: {message}" for rule in RULES for message in rule(dashboard)]
