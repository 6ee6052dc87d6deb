"""Every name that an expression may ask for."""

import re
from pathlib import Path

import yaml

from disksla.metrics.metric import Kind
from disksla.metrics.reference import OF_DISKS, OF_THE_DAEMON
from render import OUT

METRICS_PAPER = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
KINDS: dict[str, Kind] = {metric.name: metric.kind for metric in (*OF_DISKS, *OF_THE_DAEMON)}
RULE_FILES = ("prometheus_rules.yaml", "prometheus_alerts.yaml")


def exposed() -> set[str]:
    """Give the series that a scrape brings, with the suffixes of histograms."""
    suffixes = {"histogram": ("_bucket", "_count", "_sum")}
    ours = {name + end for name, kind in KINDS.items() for end in suffixes.get(kind, ("",))}
    process = re.findall(r"`(process_\w+)`", METRICS_PAPER.read_text(encoding="utf-8"))
    return {*ours, *process, "up"}


def counters() -> set[str]:
    """Give the series that only grow."""
    of_histograms = {name for name in exposed() if name.endswith(("_bucket", "_count", "_sum"))}
    return {name for name, kind in KINDS.items() if kind == "counter"} | of_histograms


def groups(file: str) -> list[dict[str, object]]:
    content = yaml.safe_load((OUT / file).read_text(encoding="utf-8"))
    found: list[dict[str, object]] = content["groups"]
    return found


def rules() -> list[dict[str, object]]:
    """Give every rule, those that record and those that alert."""
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
    """Give every expression by who asks: of rules, and of what alerts tell beside."""
    found: dict[str, str] = {}
    for place, rule in enumerate(rules()):
        who = f"{place} {rule.get('record', rule.get('alert'))}"
        found[who] = str(rule["expr"])
        told = str(rule.get("annotations", ""))
        for number, query in enumerate(re.findall(r"printf `([^`]+)`", told)):
            found[f"{who} tells {number}"] = query.replace("%q", '""')
    return found
