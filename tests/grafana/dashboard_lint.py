"""Linter of dashboards: what Grafana's schema, promtool and the jsonnet library do not ensure."""

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

RANGE = re.compile(r"(\w+)\(\s*[\w:]+(?:\{[^}]*\})?\[([^]]*)\]")
"""A function over a range of a series."""
UNITS = {"none", "short", "percentunit", "s", "iops", "binBps", "bytes", "dateTimeFromNow"}
"""Units of Grafana that the dashboards use; bytes are powers of 1024, as in the commands."""
GRID_COLUMNS = 24
ANY_VALUE = {
    "$__rate_interval": "5m",
    "$__range": "1h",
    "$__range_s": "3600",
    "$cluster": ".*",
    "$namespace": ".*",
    "$persistentvolumeclaim": ".*",
    "$job": ".+",
    "$instance": ".+",
    "$device": ".+",
}
SELECTOR = re.compile(r"(?<![\w:\"$])((?:disksla_|\w+:)[\w:]+|up)\b(?!\s*\()(\{[^}]*\})?")
"""A metric and its matchers. Names of recorded series have colons."""
OVER_ALL_HOSTS = "provider_terms"
"""Series recorded over all hosts have no label `instance`."""
OF_PROMETHEUS = {"expr", "step", "titleFormat", "textFormat", "tagKeys"}
"""Keys of an annotation that belong to the data source, not to the schema of Grafana."""


def panels_of(dashboard: Dashboard) -> list[Panel]:
    """Return all panels except rows, those inside collapsed rows included."""
    return [panel for panel in everything_in(dashboard) if panel["type"] != "row"]


def everything_in(dashboard: Dashboard) -> list[Panel]:
    """Return all panels and rows."""
    return [one for item in dashboard["panels"] for one in (item, *item.get("panels", []))]


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


def panel_units(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        properties = [
            each for one in panel["fieldConfig"]["overrides"] for each in one["properties"]
        ]
        units = [each["value"] for each in properties if each["id"] == "unit"]
        for unit in [panel["fieldConfig"]["defaults"].get("unit"), *units]:
            if unit not in UNITS:
                yield f"{panel['title']}: unexpected unit {unit}"


def target_rate_interval(dashboard: Dashboard) -> Iterator[str]:
    """What was recorded has windows of its own, and so has what is shown beside it."""
    for panel, target in targets_of(dashboard):
        recorded = set(re.findall(r":(?:worst|ratio)(\w+)", target["expr"]))
        for function, window in RANGE.findall(target["expr"]):
            allowed = {"$__rate_interval"} | ({"$__range"} if function == "increase" else set())
            allowed |= recorded if function == "rate" and target["instant"] else set()
            allowed |= {"1h"} if function in {"sum_over_time", "changes"} else set()
            if window not in allowed:
                yield f"{panel['title']}: {function} over {window}"


def target_job_instance(dashboard: Dashboard) -> Iterator[str]:
    for panel, target in targets_of(dashboard):
        for name, matchers in SELECTOR.findall(target["expr"]):
            of_host = [] if name.startswith(OVER_ALL_HOSTS) else ["instance"]
            for label in ("cluster", "job", *of_host):
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


def identity(dashboard: Dashboard) -> Iterator[str]:
    panels = panels_of(dashboard)
    names = {
        "panel ids": [panel["id"] for panel in everything_in(dashboard)],
        "titles": [panel["title"] for panel in panels],
        **{panel["title"]: [each["refId"] for each in panel["targets"]] for panel in panels},
    }
    for what, each in names.items():
        if len(set(each)) < len(each):
            yield f"{what}: found one twice"


def texts(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        text = panel["fieldConfig"]["defaults"].get("noValue", "")
        if panel["type"] != "table" and text.lower() in {"", "no data", "n/a"}:
            yield f"{panel['title']}: noValue does not explain why there is no data"
        if panel["type"] == "stat" and len(panel["title"]) > 4.5 * panel["gridPos"]["w"]:
            yield f"{panel['title']}: is cut off"


def grid(dashboard: Dashboard) -> Iterator[str]:
    for panels in [dashboard["panels"], *(each.get("panels", []) for each in dashboard["panels"])]:
        places = [(panel["title"], panel["gridPos"]) for panel in panels]
        for title, at in places:
            if at["x"] + at["w"] > GRID_COLUMNS or at["w"] < 4:
                yield f"{title}: exceeds the grid, or is too narrow to be read at 1280 pixels"
        for (one, a), (other, b) in combinations(places, 2):
            beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
            above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
            if not beside and not above:
                yield f"{one} and {other} overlap"


def tables(dashboard: Dashboard) -> Iterator[str]:
    """Rows are joined by the labels that all queries of a table have."""
    for panel, target in targets_of(dashboard):
        is_table = panel["type"] == "table"
        if is_table and not re.match(r"(sum|min|max) by \(", target["expr"]):
            yield f"{panel['title']}: {target['refId']} does not list the labels that it keeps"


def schema(dashboard: Dashboard) -> Iterator[str]:
    """Decode with Grafana's own schema and encode again: unknown keys and values are lost."""
    known = {**dashboard, "annotations": {"list": []}}
    for query in dashboard["annotations"]["list"]:
        own = {key: value for key, value in query.items() if key not in OF_PROMETHEUS}
        known["annotations"]["list"].append(own)
    again = json.loads(JSONEncoder().encode(DashboardModel.from_json(known)))
    yield from _lost(known, again, "")


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
    *(panel_units, target_rate_interval, target_job_instance, target_counter_agg),
    *(identity, texts, grid, tables, schema),
)


def violations(dashboard: Dashboard) -> list[str]:
    """Return all violations of the rules, as `rule: message`."""
    return [f"{rule.__name__}: {message}" for rule in RULES for message in rule(dashboard)]
