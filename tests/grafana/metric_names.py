"""Names of all series that a query may use, and all queries of the rules."""

import re
from pathlib import Path

import yaml

from disksla.metrics.metric import Kind
from disksla.metrics.reference import OF_DISKS, OF_THE_DAEMON, OF_THE_MACHINE
from render import OUT

METRICS_PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
METRICS = (*OF_DISKS, *OF_THE_MACHINE, *OF_THE_DAEMON)
KINDS: dict[str, Kind] = {metric.name: metric.kind for metric in METRICS}
RULE_FILES = ("prometheus_rules.yaml", "prometheus_alerts.yaml")


def exposed() -> set[str]:
    """Return the names of scraped series, with the suffixes of histograms."""
    suffixes = {"histogram": ("_bucket", "_count", "_sum")}
    own = {name + end for name, kind in KINDS.items() for end in suffixes.get(kind, ("",))}
    process = re.findall(r"`(process_\w+)`", METRICS_PAGE.read_text(encoding="utf-8"))
    return {*own, *process, "up"}


def counters() -> set[str]:
    """Return the names of series that never decrease, except by a reset."""
    of_histograms = {name for name in exposed() if name.endswith(("_bucket", "_count", "_sum"))}
    return {name for name, kind in KINDS.items() if kind == "counter"} | of_histograms


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
