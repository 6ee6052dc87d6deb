"""Names of all series that a query may use, and all queries of the rules."""

import math
import re
from functools import cache

import yaml

from disksla.config.settings import Profile
from disksla.metrics.metric import Kind
from disksla.metrics.profile import rows_of
from metrics_page import METRICS, PAGE, documented
from render import OUT

ROWS = {metric.name: metric for metric in METRICS}
KINDS: dict[str, Kind] = {metric.name: metric.kind for metric in METRICS}
RULE_FILES = ("prometheus_rules.yaml", "prometheus_alerts.yaml")


def exposed(profile: Profile = "full") -> set[str]:
    """Return the names of the series that a profile has, with the suffixes of histograms."""
    own: set[str] = set()
    for metric in rows_of(METRICS, profile):
        of_histogram = ("_bucket", "_count", "_sum") if metric.has_sum else ("_bucket",)
        ends = of_histogram if metric.kind == "histogram" else ("",)
        own |= {metric.name + end for end in ends}
    process = {name for name in documented(PAGE.read_text()) if name.startswith("process_")}
    return {*own, *process, "up"}


def is_published(series: str, profile: Profile) -> bool:
    """Return whether a profile has a series, such as `NAME_bucket{device="vdb",le="0.8"}`."""
    name, _, labels = series.partition("{")
    if name not in exposed(profile):
        return False
    row = ROWS.get(name) or ROWS.get(re.sub(r"_(bucket|count|sum)$", "", name))
    if row is None or profile == "full":
        return True
    if any(f'"{value}"' in labels for value in row.only_in_full):
        return False
    bound = re.search(r'\ble="([^"]+)"', labels)
    buckets = row.buckets.get(profile)
    return bound is None or buckets is None or float(bound[1]) in {*buckets.bounds, math.inf}


def counters() -> set[str]:
    """Return the names of series that never decrease, except by a reset."""
    of_histograms = {name for name in exposed() if name.endswith(("_bucket", "_count", "_sum"))}
    return {name for name, kind in KINDS.items() if kind == "counter"} | of_histograms


@cache
def groups(file: str) -> list[dict[str, object]]:
    content = yaml.safe_load((OUT / file).read_text(encoding="utf-8"))
    found: list[dict[str, object]] = content["groups"]
    return found


def rules() -> list[dict[str, object]]:
    """Return all recording and alerting rules."""
    found: list[dict[str, object]] = []
    for file in RULE_FILES:
        for group in groups(file):
            of_group = group["rules"]
            assert isinstance(of_group, list)
            found += of_group
    return found


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
