"""Dashboards as tests see them: their panels and queries, and all that is wrong with one."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from grafana.known import counters
from grafana.promql import calls_in, metrics_in

register_default_plugins()

Board = dict[str, Any]
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
"""A function of a series over a range of time."""
UNITS = {"none", "short", "percentunit", "s", "iops", "Bps", "dateTimeFromNow"}
"""Of those that Grafana knows, the ones that we use."""
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

# -- looking into one -----------------------------------------------------------------------


def panels_of(board: Board) -> list[Panel]:
    """Give every panel that shows something."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def targets_of(board: Board) -> Iterator[tuple[Panel, Target]]:
    """Give every query with its panel."""
    for panel in panels_of(board):
        for target in panel["targets"]:
            yield panel, target


def filled_in(expr: str, values: Mapping[str, str] = ANY_VALUE) -> str:
    """Put values in the place of variables, the longest names first."""
    for name in sorted(values, key=len, reverse=True):
        expr = expr.replace(name, values[name])
    return expr


# -- what is wrong with one -------------------------------------------------------------------
#
# The first part are the rules of https://github.com/grafana/dashboard-linter under their names.

CARRIED = (
    "${datasource:queryparam}",
    "${job:queryparam}",
    "var-instance=",
    "var-device=",
    "${__url_time_range}",
)
"""What a link to the story of a disk takes along."""
ONE_DISK = "disksla-disk"
"""The story of one disk: its host and its device are chosen one at a time."""
OVER_ALL_HOSTS = "provider_terms"
"""What is recorded over all hosts has no instance that could be asked for."""


def template_datasource(board: Board) -> Iterator[str]:
    first = board["templating"]["list"][0]
    if (first["name"], first["type"], first["query"]) != (
        "datasource",
        "datasource",
        "prometheus",
    ):
        yield "the first variable is not the data source"
    if first["label"] != "Data source":
        yield "the data source is not labelled"


def template_variables(board: Board) -> Iterator[str]:
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    for name in ("job", "instance", "device"):
        if name not in variables:
            yield f"variable {name} is missing"
            continue
        variable = variables[name]
        several = name == "job" or board["uid"] != ONE_DISK
        if variable["type"] != "query" or variable["datasource"]["uid"] != "${datasource}":
            yield f"variable {name} does not ask the chosen data source"
        if variable["label"] != name:
            yield f"variable {name} is not labelled so"
        if (variable["multi"], variable["includeAll"]) != (several, several):
            yield f"variable {name} does not take as many values as it should"
        if variable["allValue"] != ".+":
            yield f"all of variable {name} is not .+"


def template_on_time_change_reload(board: Board) -> Iterator[str]:
    for variable in board["templating"]["list"]:
        if variable["type"] == "query" and variable["refresh"] != 2:
            yield f"variable {variable['name']} is not asked for again when the time changes"


def uneditable(board: Board) -> Iterator[str]:
    if board["editable"]:
        yield "it can be edited"


def panel_datasource(board: Board) -> Iterator[str]:
    for panel in panels_of(board):
        sources = [one.get("datasource", {}) for one in (panel, *panel["targets"])]
        if any(one["uid"] != "${datasource}" for one in sources):
            yield f"{panel['title']}: asks another data source"


def panel_title_description(board: Board) -> Iterator[str]:
    for panel in panels_of(board):
        if not panel.get("title") or not panel.get("description", "").strip():
            yield f"panel {panel['id']}: lacks a title or a description"


def panel_units(board: Board) -> Iterator[str]:
    for panel in panels_of(board):
        properties = [
            each for one in panel["fieldConfig"]["overrides"] for each in one["properties"]
        ]
        units = [each["value"] for each in properties if each["id"] == "unit"]
        for unit in [panel["fieldConfig"]["defaults"].get("unit"), *units]:
            if unit not in UNITS:
                yield f"{panel['title']}: has the unit {unit}"


def panel_no_targets(board: Board) -> Iterator[str]:
    for panel in panels_of(board):
        if not any(one["expr"] for one in panel["targets"]):
            yield f"{panel['title']}: asks for nothing"


def target_rate_interval(board: Board) -> Iterator[str]:
    for panel, target in targets_of(board):
        for function, window in RANGE.findall(target["expr"]):
            allowed = {"$__rate_interval"} | ({"$__range"} if function == "increase" else set())
            if window not in allowed:
                yield f"{panel['title']}: {function} over {window}"


def target_job_instance(board: Board) -> Iterator[str]:
    for panel, target in targets_of(board):
        for name, matchers in SELECTOR.findall(target["expr"]):
            wanted = ["job"] if name.startswith(OVER_ALL_HOSTS) else ["job", "instance"]
            for label in wanted:
                if f'{label}=~"${label}"' not in matchers:
                    yield f"{panel['title']}: {name} is not asked of the chosen {label}"


def target_counter_agg(board: Board) -> Iterator[str]:
    for panel, target in targets_of(board):
        expr = filled_in(target["expr"])
        rated = [
            metric
            for function, argument in calls_in(expr)
            if function in {"rate", "increase"}
            for metric in metrics_in(argument)
        ]
        for metric in set(rated) - counters():
            yield f"{panel['title']}: {metric} is no counter"
        bare = Counter(re.findall(r"[\w:]+(?=\{)", expr)) - Counter(rated)
        for metric in bare.keys() & counters():
            yield f"{panel['title']}: {metric} is a counter"


# Ours.


def identity(board: Board) -> Iterator[str]:
    if "id" in board or not board.get("uid") or board["schemaVersion"] < 38:
        yield "it has an id, no uid, or an old schema"
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) < len(ids):
        yield "two panels have the same id"
    titles = [panel["title"] for panel in panels_of(board)]
    if len(set(titles)) < len(titles):
        yield "two panels have the same title"
    for panel in panels_of(board):
        refs = [target["refId"] for target in panel["targets"]]
        if len(set(refs)) < len(refs):
            yield f"{panel['title']}: two queries have the same refId"


def core_panels(board: Board) -> Iterator[str]:
    for panel in board["panels"]:
        if panel["type"] not in CORE_PANELS:
            yield f"{panel['title']}: {panel['type']} is not a panel of Grafana itself"


def no_data_text(board: Board) -> Iterator[str]:
    for panel in panels_of(board):
        text = panel["fieldConfig"]["defaults"].get("noValue", "")
        if text.lower() in {"", "no data", "n/a"}:
            yield f"{panel['title']}: does not say what it means that there is nothing"


def grid(board: Board) -> Iterator[str]:
    places = [(panel["title"], panel["gridPos"]) for panel in board["panels"]]
    for title, at in places:
        if at["x"] + at["w"] > GRID_COLUMNS:
            yield f"{title}: leaves the grid"
        if at["w"] < 4:
            yield f"{title}: is too narrow to be read at 1280 pixels"
    for (one, a), (other, b) in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        if not beside and not above:
            yield f"{one} and {other} overlap"


def links(board: Board) -> Iterator[str]:
    if not board["links"]:
        yield "it leads nowhere"
    for link in board["links"]:
        if link["url"].startswith("/d/") and not (link["includeVars"] and link["keepTime"]):
            yield f"link {link['title']}: forgets what was chosen"
    for panel in panels_of(board):
        for link in _data_links(panel):
            carried = (
                "${datasource:queryparam}",
                "${job:queryparam}",
                "var-instance=",
                "var-device=",
            )
            if not all(part in link["url"] for part in (*carried, "${__url_time_range}")):
                yield f"{panel['title']}: its link forgets what was chosen"


def _data_links(panel: Panel) -> Iterator[dict[str, str]]:
    config = panel["fieldConfig"]
    yield from config["defaults"].get("links", [])
    for override in config["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from one["value"]


def theme_colours(board: Board) -> Iterator[str]:
    for found in re.findall(r'"(#[0-9a-fA-F]{3,8}|rgba?\([^"]*)"', json.dumps(board)):
        yield f"{found} is not a colour of the theme"


def tables(board: Board) -> Iterator[str]:
    """Lines are put together by the labels that all queries of a table have.

    Grafana names the value of a query `Value #A` only if there are two queries at least.
    """
    for panel in panels_of(board):
        if panel["type"] != "table":
            continue
        if len(panel["targets"]) < 2:
            yield f"{panel['title']}: a table of one query has no column `Value #A`"
        for target in panel["targets"]:
            if not re.match(r"(sum|min|max) by \(", target["expr"]):
                yield f"{panel['title']}: {target['refId']} does not say which labels it keeps"


def schema(board: Board) -> Iterator[str]:
    """Read it as Grafana's own schema does, and write it again: what it does not know is lost."""
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    yield from _lost(board, again, "")


def _lost(ours: object, theirs: object, place: str) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key not in theirs:
                yield f"Grafana knows no {place}.{key}"
            else:
                yield from _lost(value, theirs[key], f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _lost(one, other, f"{place}[{index}]")
    elif ours != theirs:
        yield f"Grafana takes {place} for {theirs}"


RULES: tuple[Callable[[Board], Iterator[str]], ...] = (
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


def complaints(board: Board) -> list[str]:
    """Give all that is wrong with a dashboard, as `rule: what`."""
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(board)]
