"""Rules are free of the mistakes that rules are known for.

They are those of https://cloudflare.github.io/pint/, as far as they can be told from the rules.
"""

import re
from pathlib import Path

import pytest

from grafana.known import RULE_FILES, counters, exposed, groups, queries, recorded, rules
from grafana.promql import (
    calls_in,
    matchers_in,
    metrics_in,
    ranges_in,
    seconds_of,
    without_strings,
)
from grafana.promtool import check_rules, needs_promtool
from render import OUT, evaluate

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"
SLOWEST_SCRAPE_S = 60
OF_COUNTERS = {"rate", "increase", "irate", "resets"}
LOOKBACK_S = 300
ALERTS = [rule for rule in rules() if "alert" in rule]
RECORDED = [rule for rule in rules() if "record" in rule]
COMPARISON = re.compile(r"(==|!=|>=|<=|>|<)")

EVERY_QUERY = pytest.mark.parametrize(
    "query", [pytest.param(query, id=who) for who, query in queries().items()]
)
EVERY_ALERT = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
EVERY_RECORD = pytest.mark.parametrize("rule", RECORDED, ids=lambda rule: rule["record"])


def annotations(alert: dict[str, object]) -> dict[str, str]:
    told = alert["annotations"]
    assert isinstance(told, dict)
    return told


@needs_promtool
@pytest.mark.parametrize("file", RULE_FILES)
def test_prometheus_takes_them(file: str) -> None:
    check_rules(OUT / file)


@EVERY_QUERY
def test_what_is_asked_for_exists(query: str) -> None:
    assert metrics_in(query) <= exposed() | recorded()


@EVERY_QUERY
def test_counters_and_only_counters_are_rated(query: str) -> None:
    rated: set[str] = set()
    for function, argument in calls_in(query):
        if function in OF_COUNTERS:
            assert re.fullmatch(r"[\w:]+(\{[^}]*\})?\[\w+\]", argument), "rate() before sum()"
            rated |= metrics_in(argument)
    assert rated <= counters()
    nothing_but_seen = {"disksla_probe_runs_total"}  # == 0: never yet
    assert metrics_in(query) & counters() - rated <= nothing_but_seen


@EVERY_QUERY
def test_ranges_span_several_scrapes(query: str) -> None:
    assert all(seconds_of(span) >= 2 * SLOWEST_SCRAPE_S for span in ranges_in(query))


@EVERY_QUERY
def test_no_regular_expression_is_needless(query: str) -> None:
    for _, operator, value in matchers_in(query):
        assert operator in {"=", "!="} or re.search(r"[|.*+?\[(]", value), value


@EVERY_QUERY
def test_aggregations_name_what_they_take_away(query: str) -> None:
    """Labels that a site adds to its targets survive; of info one is chosen by its keys."""
    aggregated = r"(?<![\w:])(sum|avg|min|max|count|topk)\b\s*(without|by)?"
    for word, how in re.findall(aggregated, without_strings(query)):
        assert how == ("by" if word == "topk" else "without")


@EVERY_QUERY
def test_every_series_of_ours_is_of_the_daemons_looked_at(query: str) -> None:
    names = re.findall(r"(?<![\w:])(?:disksla_\w+|up|process_\w+)(?![\w:])", query)
    selected = re.findall(
        r'(?<![\w:])(\w+)\{(?:job="disksla"|job="", instance="", device="")', query
    )
    assert names == selected


@EVERY_ALERT
def test_an_alert_compares_and_waits(alert: dict[str, object]) -> None:
    assert COMPARISON.search(without_strings(str(alert["expr"])))
    assert seconds_of(str(alert["for"])) >= 60


@EVERY_ALERT
def test_the_labels_of_an_alert_do_not_change_while_it_lasts(alert: dict[str, object]) -> None:
    labels = alert["labels"]
    assert isinstance(labels, dict)
    assert set(labels) == {"severity"}
    assert labels["severity"] in {"critical", "warning", "info"}


@EVERY_ALERT
def test_an_alert_says_what_is_the_matter(alert: dict[str, object]) -> None:
    told = annotations(alert)
    assert set(told) - {"runbook_url"} == {"summary", "description"}
    assert re.fullmatch(r"[A-Z][^{}]*\.", told["summary"]), "a sentence that is always the same"
    assert "$labels.instance" in told["description"]
    shows_number = "$value" in told["description"]
    assert shows_number or re.search(r"(==|=) [01]\b", str(alert["expr"])), "the number, if any"


@EVERY_ALERT
def test_an_alert_names_its_disk(alert: dict[str, object]) -> None:
    if str(alert["alert"]).startswith("DiskSla"):
        return
    assert "instance_device:disksla_disk_info:topk" in str(alert["expr"])
    for label in ("device", "serial", "model", "terms", "mountpoint"):
        assert f"$labels.{label}" in annotations(alert)["description"]


def test_runbook_url_links_to_the_section_of_the_alert() -> None:
    groups = evaluate("prometheusAlerts", "{ projectUrl: 'https://disksla.test' }")["groups"]
    for alert in (rule for group in groups for rule in group["rules"]):
        page, _, heading = annotations(alert)["runbook_url"].partition("#")
        assert page.endswith("/runbook.md")
        assert heading in {title.lower() for title in headings()}


def headings() -> list[str]:
    return re.findall(r"^## (\w+)$", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_runbook_has_no_page_that_nothing_leads_to() -> None:
    assert headings() == [alert["alert"] for alert in ALERTS]


def test_the_runbook_asks_only_for_what_exists() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    shown = re.findall(r"^```promql\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert len(shown) >= len(ALERTS) - 2
    for query in shown:
        assert metrics_in(re.sub(r"#.*", "", query)) <= exposed() | recorded(), query


@EVERY_RECORD
def test_a_record_is_named_by_level_metric_and_operations(rule: dict[str, object]) -> None:
    level, metric, operations = str(rule["record"]).split(":")
    assert level in {
        "instance_device",
        "instance_device_limit",
        "instance_device_quantile",
        "instance_device_verdict",
        "provider_terms",
        "provider_terms_verdict",
    }
    assert metric.startswith("disksla_")
    assert "_total" not in metric
    assert re.fullmatch(
        r"(rate|mean|increase|histogram_quantile_rate|ratio(_rate)?|sum|worst)\d+[mhd]|topk|count",
        operations,
    )


def test_what_is_shown_is_never_older_than_prometheus_looks_back() -> None:
    """Slower groups record steps only, which nothing but sum_over_time() reads."""
    for file in RULE_FILES:
        for group in groups(file):
            if seconds_of(str(group["interval"])) < LOOKBACK_S:
                continue
            assert group["name"] in {"disksla.sla.steps", "disksla.sla.hours"}
    steps = {name for name in recorded() if re.search(r"_seconds:increase", name)}
    for who, query in queries().items():
        summed = {
            name
            for function, argument in calls_in(query)
            if function == "sum_over_time"
            for name in metrics_in(argument)
        }
        asked = metrics_in(query) & steps
        made_beside_it = "provider_terms:disksla_" in who and ":increase" in who
        assert asked <= summed or made_beside_it, who
