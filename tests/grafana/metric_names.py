"""Names of all series that a query may use, and all queries of the rules."""

import re
from functools import cache
from typing import Any

import yaml

from disksla.promise.configuration.settings import Profile
from grafana.promql import matchers_in
from render import OUT
from support.real_page import labels_by_name, matching

RULE_FILES = ("prometheus_rules.yaml", "prometheus_alerts.yaml")
NODE_EXPORTER_RULES = "node_exporter_rules.yaml"
"""Of hosts without a daemon, so that no page of metrics has what they read."""


def is_published(series: str, profile: Profile) -> bool:
    """Return whether a profile has a series, such as `NAME_bucket{device="vdb",le="0.8"}`."""
    name, _, labels = series.partition("{")
    closed = [each for each in matchers_in(labels) if each[0] in {"le", "kind"}]
    return bool(matching(name, closed, profile))


def counters() -> set[str]:
    """Return the names of series that never decrease, except by a reset."""
    ends = ("_total", "_bucket", "_count", "_sum")
    return {name for name in labels_by_name() if name.endswith(ends)}


@cache
def groups(file: str) -> list[dict[str, Any]]:
    content = yaml.safe_load((OUT / file).read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = content["groups"]
    return found


def rules() -> list[dict[str, Any]]:
    """Return all recording and alerting rules."""
    return [rule for file in RULE_FILES for group in groups(file) for rule in group["rules"]]


def node_exporter_rules() -> list[dict[str, Any]]:
    """Return the rules of hosts without a daemon."""
    return [rule for group in groups(NODE_EXPORTER_RULES) for rule in group["rules"]]


def recorded() -> set[str]:
    return {str(rule["record"]) for rule in rules() if "record" in rule}


def queries() -> dict[str, str]:
    """Return all expressions of rules and of the annotations of alerts, by a name for test IDs."""
    found: dict[str, str] = {}
    for index, rule in enumerate(rules()):
        name = f"{index} {rule.get('record', rule.get('alert'))}"
        found[name] = str(rule["expr"])
        annotations = str(rule.get("annotations", ""))
        printed = re.findall(r"printf `([^`]+)`", annotations)
        matchers = [each.replace("%q", '""') for each in printed if "{" not in each]
        for number, query in enumerate(each for each in printed if "{" in each):
            filled = query.replace("%s", "".join(matchers)).replace("%q", '""')
            found[f"{name} annotation {number}"] = filled
    return found
