"""Rules pass the checks of https://cloudflare.github.io/pint/ that need no running Prometheus."""

import re
from pathlib import Path
from typing import Any

import pytest

from disksla.serve.metrics.disk_metrics import DISK_METRICS
from grafana.alert_cases import CASES, Case
from grafana.metric_names import (
    RULE_FILES,
    counters,
    groups,
    is_published,
    node_exporter_rules,
    queries,
    recorded,
    rules,
)
from grafana.promql import calls_in, metrics_in, ranges_in, seconds_of, without_strings
from grafana.promtool import check_rules, needs_promtool
from render import OUT, evaluate
from support.real_page import labels_by_name

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"
SLOWEST_SCRAPE_S = 60
COUNTER_FUNCTIONS = {"rate", "increase", "irate", "resets"}
LOOKBACK_S = 300
LONGEST_TEMPLATE = 2300
LONGEST_FIRST_SENTENCE = 120
"""Characters without templates; the values of templates are as long again at most."""
LONGEST_DESCRIPTION = 400
ALERTS = [rule for rule in rules() if "alert" in rule]
RECORDED = [rule for rule in rules() if "record" in rule]

EVERY_QUERY = pytest.mark.parametrize(
    "query", [pytest.param(query, id=name) for name, query in queries().items()]
)
EVERY_ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])


@needs_promtool
@pytest.mark.parametrize("file", RULE_FILES)
def test_promtool_accepts_rules(file: str) -> None:
    check_rules(OUT / file)


def test_rules_need_no_more_than_the_smallest_profile() -> None:
    known = {*labels_by_name("lean"), *recorded()}
    for rule in rules():
        assert metrics_in(str(rule["expr"])) <= known
        for bound in re.findall(r'load_ratio_bucket\{[^}]*le="([^"]+)"', str(rule["expr"])):
            assert is_published(f'disksla_window_load_ratio_bucket{{le="{bound}"}}', "lean")


@EVERY_QUERY
def test_rate_is_for_counters_and_only_for_them(query: str) -> None:
    rated: set[str] = set()
    for function, argument in calls_in(query):
        if function in COUNTER_FUNCTIONS:
            assert re.fullmatch(r"[\w:]+(\{[^}]*\})?\[\w+\]", argument), "rate() before sum()"
            rated |= metrics_in(argument)
    assert rated <= counters()
    assert metrics_in(query) & counters() <= rated


@EVERY_QUERY
def test_range_spans_at_least_two_scrapes(query: str) -> None:
    assert all(seconds_of(span) >= 2 * SLOWEST_SCRAPE_S for span in ranges_in(query))


@EVERY_QUERY
def test_aggregation_keeps_labels_of_the_site(query: str) -> None:
    """`without` keeps labels that a site adds to its targets; only `topk` selects by its keys."""
    aggregated = r"(?<![\w:])(sum|avg|min|max|count|topk)\b\s*(without|by)?"
    for function, clause in re.findall(aggregated, without_strings(query)):
        assert clause == ("by" if function == "topk" else "without")


@EVERY_QUERY
def test_scraped_series_have_the_selector(query: str) -> None:
    names = re.findall(r"(?<![\w:])(?:disksla_\w+|up|process_\w+)(?![\w:])", query)
    selected = re.findall(
        r'(?<![\w:])(\w+)\{(?:job="disksla"|cluster="", job="", instance="", (?:device|group)="")',
        query,
    )
    assert names == selected


@EVERY_ALERT
def test_description_fits_a_phone(alert: dict[str, Any]) -> None:
    """The first sentence is all that many phones show; a template is read by people too."""
    template = alert["annotations"]["description"]
    assert len(template) <= LONGEST_TEMPLATE
    first = re.split(r"\. |\.\{\{|\.$", re.sub(r"^\{\{ \$of.*?\}\}", "", template))[0]
    assert len(re.sub(r"\{\{.*?\}\}", "", first)) <= LONGEST_FIRST_SENTENCE
    assert "| query" not in first, "the first sentence does not depend on other series"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rendered_description_fits_a_phone(case: Case) -> None:
    for firing in (case.bad, *case.also_bad.values()):
        first, _, _ = firing.description.partition(". ")
        assert len(first) <= 2 * LONGEST_FIRST_SENTENCE
        assert len(firing.description) <= LONGEST_DESCRIPTION


def links_of(config: str) -> dict[str, dict[str, str]]:
    """Return the annotations that are links, by alert, with these settings."""
    groups = evaluate("prometheusAlerts", config)["groups"]
    return {
        rule["alert"]: {
            name: text for name, text in rule["annotations"].items() if name.endswith("_url")
        }
        for group in groups
        for rule in group["rules"]
    }


def test_runbook_url_links_to_the_section_of_the_alert() -> None:
    own = "http://{{ $labels.instance }}/runbook"
    for config, page in (
        ("{}", own),
        ("{ daemonUrl: 'https://{{ $labels.instance }}' }", own.replace("http:", "https:")),
        ("{ runbookUrl: 'https://wiki.test/disks' }", "https://wiki.test/disks"),
    ):
        links = links_of(config)
        another = links.pop("DiskSlaExporterDown")["runbook_url"]
        assert another.endswith(f"{page.partition('}}')[2]}#DiskSlaExporterDown")
        assert links == {name: {"runbook_url": f"{page}#{name}"} for name in links}
        assert {*links, "DiskSlaExporterDown"} <= set(headings())
    assert not any(links_of("{ runbookUrl: '' }").values())


def test_dashboard_url_selects_the_disk() -> None:
    links = links_of("{ grafanaUrl: 'https://grafana.test', runbookUrl: '' }")
    host = "var-job={{ $labels.job | urlquery }}&var-instance={{ $labels.instance | urlquery }}"
    disk = f"disksla-disk?{host}&var-device={{{{ $labels.device | urlquery }}}}"
    cluster = (
        "{{ with or $labels.cluster $externalLabels.cluster }}"
        "&var-cluster={{ . | urlquery }}{{ end }}"
    )
    for name, found in links.items():
        is_of_disk = name.startswith("Disk") and not name.startswith("DiskSla")
        page = disk if is_of_disk else f"disksla-fleet?{host}"
        assert found == {"dashboard_url": f"https://grafana.test/d/{page}{cluster}"}


def headings() -> list[str]:
    return re.findall(r"^## (\w+)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_runbook_has_a_section_for_each_alert() -> None:
    without_daemon = [rule["alert"] for rule in node_exporter_rules() if "alert" in rule]
    assert headings() == [*(alert["alert"] for alert in ALERTS), *without_daemon]


def test_runbook_begins_with_a_list_of_its_sections() -> None:
    beginning, _, _ = RUNBOOK.read_text(encoding="utf-8").partition("\n## ")
    links = {name: f"#{name.lower()}" for name in headings()}
    assert dict(re.findall(r"\[(\w+)\]\((#\w+)\)", beginning)) == links


def test_records_are_newer_than_the_lookback_delta() -> None:
    """Slower groups record only steps, which are read by sum_over_time() alone."""
    for file in RULE_FILES:
        for group in groups(file):
            if seconds_of(str(group["interval"])) < LOOKBACK_S:
                continue
            assert group["name"] in {"disksla.sla.steps", "disksla.sla.hours"}
    steps = {name for name in recorded() if re.search(r"_seconds:increase", name)}
    for name, query in queries().items():
        summed = {
            metric
            for function, argument in calls_in(query)
            if function == "sum_over_time"
            for metric in metrics_in(argument)
        }
        read = metrics_in(query) & steps
        is_step_of_terms = "provider_terms:disksla_" in name and ":increase" in name
        assert read <= summed or is_step_of_terms, name


def test_count_of_disks_drops_all_labels_of_disks_but_the_terms() -> None:
    [labels] = next(
        re.findall(r"count without \((.*?)\)", str(rule["expr"]))
        for rule in RECORDED
        if rule["record"] == "provider_terms:disksla_disks:count"
    )
    [info] = [metric for metric in DISK_METRICS if metric.name == "disksla_disk_info"]
    dropped = {"instance", "device", *info.labels} - {"provider", "terms"}
    assert set(labels.split(", ")) == dropped
