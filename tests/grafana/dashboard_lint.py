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

CORE_PANELS = {"bargauge", "heatmap", "row", "stat", "state-timeline", "table", "timeseries"}
RANGE = re.compile(r"(\w+)\(\s*[\w:]+(?:\{[^}]*\})?\[([^]]*)\]")
"""A function over a range of a series."""
UNITS = {"none", "short", "percentunit", "s", "iops", "binBps", "bytes", "dateTimeFromNow"}
"""Units of Grafana that the dashboards use; bytes are powers of 1024, as in the commands."""
GRID_COLUMNS = 24
ANY_VALUE = {
    "$__rate_interval": "5m",
    "$__range": "1h",
    "$cluster": ".*",
    "$namespace": ".*",
    "$persistentvolumeclaim": ".*",
    "$job": ".+",
    "$instance": ".+",
    "$device": ".+",
}
SELECTOR = re.compile(r"(?<![\w:\"$])((?:disksla_|\w+:)[\w:]+|up)\b(?!\s*\()(\{[^}]*\})?")
"""A metric and its matchers. Names of recorded series have colons."""

# -- panels and queries -----------------------------------------------------------------------


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


# -- rules ------------------------------------------------------------------------------------
#
# Rules of https://github.com/grafana/dashboard-linter, under the same names.

LINK_PARAMETERS = (
    "${datasource:queryparam}",
    "${cluster:queryparam}",
    "${job:queryparam}",
    "var-instance=",
    "var-device=",
    "${__url_time_range}",
)
"""Parameters of a link to the dashboard of a disk."""
ONE_DISK = "disksla-disk"
"""Dashboard of one disk: one host and one device are selected."""
WITHOUT_CLAIMS = "disksla-probes"
"""Dashboard whose disks are not selected by their claim."""
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
    claim = () if dashboard["uid"] == WITHOUT_CLAIMS else ("namespace", "persistentvolumeclaim")
    optional = ("cluster", *claim)
    for name in (*optional, "job", "instance", "device"):
        if name not in variables:
            yield f"variable {name} is missing"
            continue
        variable = variables[name]
        several = name not in {"instance", "device"} or dashboard["uid"] != ONE_DISK
        every = ".*" if name in optional else ".+"
        if variable["type"] != "query" or variable["datasource"]["uid"] != "${datasource}":
            yield f"variable {name} does not use the selected data source"
        if variable["label"] != name:
            yield f"the label of variable {name} is not {name}"
        if (variable["multi"], variable["includeAll"]) != (several, several):
            yield f"variable {name}: multi and includeAll are not {several}"
        if variable["allValue"] != every:
            yield f"allValue of variable {name} is not {every}"


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


# Rules of this project.


def identity(dashboard: Dashboard) -> Iterator[str]:
    if "id" in dashboard or not dashboard.get("uid") or dashboard["schemaVersion"] < 38:
        yield "the dashboard has an id, no uid, or an old schema"
    ids = [panel["id"] for panel in everything_in(dashboard)]
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
    for panel in everything_in(dashboard):
        if panel["type"] not in CORE_PANELS:
            yield f"{panel['title']}: {panel['type']} is not a core panel of Grafana"


def no_data_text(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        text = panel["fieldConfig"]["defaults"].get("noValue", "")
        if panel["type"] == "table":
            if text != "\N{EN DASH}":
                yield f"{panel['title']}: the text of a table is in each empty cell"
        elif text.lower() in {"", "no data", "n/a"}:
            yield f"{panel['title']}: noValue does not explain why there is no data"


def grid(dashboard: Dashboard) -> Iterator[str]:
    yield from _places(dashboard["panels"])
    for panel in dashboard["panels"]:
        yield from _places(panel.get("panels", []))


def _places(panels: list[Panel]) -> Iterator[str]:
    positions = [(panel["title"], panel["gridPos"]) for panel in panels]
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
        page, _, query = link["url"].partition("?")
        if page.startswith("/d/") and not link["keepTime"]:
            yield f"link {link['title']}: drops the time range"
        if page.startswith("/d/") and (
            link["includeVars"] or query != "&".join(LINK_PARAMETERS[:3])
        ):
            yield f"link {link['title']}: does not pass data source, cluster and job alone"
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


def alert_annotations(dashboard: Dashboard) -> Iterator[str]:
    exprs = [query.get("expr", "") for query in dashboard["annotations"]["list"]]
    if not any(
        expr.startswith("ALERTS{")
        and all(f"${name}" in expr for name in ("job", "instance", "device"))
        for expr in exprs
    ):
        yield "alerts are not shown on the panels"


def timeline_colours(dashboard: Dashboard) -> Iterator[str]:
    """With merged values and colours by threshold, Grafana ignores the mappings."""
    for panel in panels_of(dashboard):
        if (
            panel["type"] == "state-timeline"
            and panel["fieldConfig"]["defaults"]["color"]["mode"] != "fixed"
        ):
            yield f"{panel['title']}: ignores the colours of the states"


def absence_is_calm(dashboard: Dashboard) -> Iterator[str]:
    """Without a value, a panel has the colour of its first threshold, which may be red."""
    for panel in panels_of(dashboard):
        if panel["type"] not in {"stat", "bargauge", "table"}:
            continue
        defaults = panel["fieldConfig"]["defaults"]
        shown = {"index": 99, "text": defaults.get("noValue"), "color": "text"}
        if not any(
            each["type"] == "special" and each["options"] == {"match": "null+nan", "result": shown}
            for each in defaults["mappings"]
        ):
            yield f"{panel['title']}: absence may look like an alarm"
        if panel["type"] == "stat" and panel["options"]["textMode"] == "name":
            yield f"{panel['title']}: is blank without a series"


LEAST_POINTS = 10000


def present_at_any_zoom(dashboard: Dashboard) -> Iterator[str]:
    """`$__rate_interval` grows with the time range unless a panel asks for many points."""
    for panel, target in targets_of(dashboard):
        if "$__rate_interval" not in target["expr"]:
            continue
        if target["instant"] and panel.get("maxDataPoints", 0) < LEAST_POINTS:
            yield f"{panel['title']}: depends on the time range"
        if "increase(" in target["expr"]:
            yield f"{panel['title']}: counts per interval"


def heat_maps_of_requests(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        if panel["type"] == "heatmap":
            if panel["gridPos"]["h"] < 12:
                yield f"{panel['title']}: the labels of its rows collide"
            if not all(
                re.search(r"and on \(\) sum\(.*\) > 0$", one["expr"], re.DOTALL)
                for one in panel["targets"]
            ):
                yield f"{panel['title']}: has undefined cells without requests"


def lines_are_legible(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        if panel["type"] != "timeseries":
            continue
        defaults = panel["fieldConfig"]["defaults"]
        if not panel["options"]["legend"]["calcs"]:
            yield f"{panel['title']}: no values in the legend"
        if not defaults["custom"].get("axisSoftMax"):
            yield f"{panel['title']}: the axis of zeros has no end"
        if defaults["color"] != {"mode": "shades", "fixedColor": "blue"}:
            yield f"{panel['title']}: may colour ordinary series like alarms"
        for override in panel["fieldConfig"]["overrides"]:
            values = {one["id"]: one["value"] for one in override["properties"]}
            dots = values.get("custom.lineStyle", {}).get("fill") == "dot"
            if dots and values.get("custom.lineWidth", 0) < 2:
                yield f"{panel['title']}: dots are invisible"


def rounding_and_names(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        if "decimals" not in defaults:
            yield f"{panel['title']}: shows rounding noise"
        if panel["type"] == "bargauge" and "displayName" not in defaults:
            yield f"{panel['title']}: hides the name of a single bar"
        if panel["type"] == "stat" and len(panel["title"]) > 4.5 * panel["gridPos"]["w"]:
            yield f"{panel['title']}: is cut off"


def quantiles_of_windows(dashboard: Dashboard) -> Iterator[str]:
    """Within a bucket a quantile is interpolated; a window is a mean over many requests."""
    for panel, target in targets_of(dashboard):
        if "histogram_quantile" not in target["expr"]:
            continue
        if "load_ratio" in target["expr"]:
            yield f"{panel['title']}: a quantile of the load ends at the last bucket"
        if "probe_" not in target["expr"] and "of windows" not in target["legendFormat"]:
            yield f"{panel['title']}: {target['legendFormat']} is not that of requests"


def one_promise_for_each_disk(dashboard: Dashboard) -> Iterator[str]:
    for panel, target in targets_of(dashboard):
        if re.search(r"(min|max|avg)\(disksla_limit_", target["expr"]):
            yield f"{panel['title']}: mixes the promises of disks"
        shared = re.search(r"disksla_(burst_)?limit_(read|write|written)", target["expr"])
        if (
            panel["type"] == "timeseries"
            and shared
            and '"budget"' not in target["expr"]
            and "budget=~" not in target["expr"]
        ):
            yield f"{panel['title']}: does not say that reads and writes share the limit"
        names_host = "{{instance}}" in target["legendFormat"] or dashboard["uid"] == ONE_DISK
        if "{{device}}" in target["legendFormat"] and not names_host:
            yield f"{panel['title']}: does not name the host"


WORDS = re.compile(
    r"percentile|\bmedian\b|\bheld\b|\bplain\b|\bbusyness\b|over time$", re.IGNORECASE
)
"""Words that people in the field do not use: they say p99, p50, throttled, baseline, history."""


def words_of_the_field(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        legends = [target["legendFormat"] for target in panel["targets"]]
        for text in (panel["title"], panel["description"], *legends):
            for word in WORDS.findall(text):
                yield f"{panel['title']}: {word} is not a word of the field"


FIRST_ON_A_PHONE = {"device", "terms", "instance"}
"""What a row is about; the first column of a table, since a phone shows two or three."""
LAST = {"serial", "model", "provider", "ended", "duration", "disks", "title", "machine"}


def columns_for_phones(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels_of(dashboard):
        if panel["type"] != "table":
            continue
        steps = {one["id"]: one["options"] for one in panel.get("transformations", [])}
        if "organize" not in steps:
            yield f"{panel['title']}: has no order of columns"
            continue
        places, names = steps["organize"]["indexByName"], steps["organize"]["renameByName"]
        order = [names.get(key, key) for key in sorted(places, key=places.__getitem__)]
        if order[0] not in FIRST_ON_A_PHONE or set(order[:3]) & LAST:
            yield f"{panel['title']}: a phone does not show what matters: {order[:3]}"
        if panel["gridPos"]["w"] != GRID_COLUMNS and len(order) > 7:
            yield f"{panel['title']}: is too narrow for {len(order)} columns"
        compliance = {"1 h", "1 d", "30 d"} & set(order)
        coloured = {
            override["matcher"]["options"]
            for override in panel["fieldConfig"]["overrides"]
            if any(one["id"] == "thresholds" for one in override["properties"])
        }
        if not compliance <= coloured:
            yield f"{panel['title']}: compliance has no colour"


OF_PROMETHEUS = {"expr", "step", "titleFormat", "textFormat", "tagKeys"}
"""Keys of an annotation that belong to the data source, not to the schema of Grafana."""


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
    alert_annotations,
    timeline_colours,
    absence_is_calm,
    present_at_any_zoom,
    heat_maps_of_requests,
    lines_are_legible,
    rounding_and_names,
    quantiles_of_windows,
    one_promise_for_each_disk,
    words_of_the_field,
    columns_for_phones,
    schema,
)


def violations(dashboard: Dashboard) -> list[str]:
    """Return all violations of the rules, as `rule: message`."""
    return [f"{rule.__name__}: {message}" for rule in RULES for message in rule(dashboard)]
