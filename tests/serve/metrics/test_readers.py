"""Whoever reads series asks for what the page of a real daemon has: names, labels and values.

The page is of a machine with a throttled disk, a limit of the machine, an NFS mount and consumers
(`support.real_page`). That each query has a result is tested with a real Prometheus
(tests/grafana/test_real_page.py).

And docs/metrics.md, which is made from the rows."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from disksla.commands.cli import main
from grafana.alert_cases import CASES
from grafana.metric_names import queries, recorded
from grafana.promql import labels_in, selectors_in
from metrics_page import PAGE, reference, rewritten
from render import OUT
from support.real_page import MOUNT, SHARED, TARGET, THROTTLED, labels_by_name, matching, series
from support.report_api import serving
from support.report_series import START_S, Server

ROOT = Path(__file__).resolve().parents[3]
ADDED = {*TARGET, "cluster", "namespace", "le", "alertname", "alertstate"}
"""Labels that Prometheus and sites add, or that each histogram has."""
NOT_ON_THE_PAGE = {
    "ALERTS": "is of Prometheus",
    "disksla_usual_latency_seconds": "is learned for ten minutes",
}
_IS_OURS = re.compile(r"disksla_|process_|up$|instance_device:|provider_terms")
_LABEL_VALUES = re.compile(r"^label_values\((.*), (\w+)\)$", re.DOTALL)


def of_dashboards() -> Iterator[tuple[str, str]]:
    """Yield each expression of a dashboard, those of its variables and annotations among them."""
    for file in sorted(OUT.glob("dashboards/*.json")):
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r'"(?:expr|query)": ("(?:\\.|[^"\\])*")', text):
            if (query := json.loads(found[1])) != "prometheus":  # of the variable of data sources
                yield file.stem, query


def of_documents() -> Iterator[tuple[str, str]]:
    """Yield each example of a document."""
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("grafana/*.md")]:
        text = file.read_text(encoding="utf-8")
        for found in re.finditer(r"^```promql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield file.stem, re.sub(r"#.*", "", found[1])


@cache
def labels_of(name: str) -> set[str]:
    return ADDED.union(*labels_by_name()[name])


def problems_of(query: str, *, has_examples: bool = False) -> Iterator[str]:
    """Yield what a query asks for and the page does not have; the profile full has rare values.

    The values of variables and templates, and in documents those of examples, are any.
    """
    values = _LABEL_VALUES.match(query)
    if values is not None and values[2] not in set().union(*map(labels_of, labels_by_name())):
        yield f"no series has the label {values[2]}"
    query = query if values is None else values[1]
    for name, matchers in selectors_in(query):
        is_foreign = has_examples and not _IS_OURS.match(name)
        if name in recorded() or name in NOT_ON_THE_PAGE or is_foreign:
            continue
        if name not in labels_by_name():
            yield f"{name} is not on the page"
            continue
        unknown = {label for label, _, _ in matchers} - labels_of(name)
        closed = [each for each in matchers if each[2] and "$" not in each[2]]
        if values is None and unknown:
            yield f"{name} has no labels {sorted(unknown)}"
        elif not has_examples and not matching(name, closed, "full"):
            yield f"{name} has no series with {closed}"
    yield from sorted(labels_in(query) - set().union(*map(labels_of, labels_by_name())))


def test_rules_and_alerts() -> None:
    assert [(name, each) for name, query in queries().items() for each in problems_of(query)] == []


def test_dashboards() -> None:
    found = dict.fromkeys(of_dashboards())
    assert len(found) > 150
    assert [(name, each) for name, query in found for each in problems_of(query)] == []


def test_examples_of_documents() -> None:
    found = list(of_documents())
    assert len(found) > 20
    problems = [(f, each) for f, query in found for each in problems_of(query, has_examples=True)]
    assert problems == []


def test_series_of_tests_of_alerts() -> None:
    """They have no other labels than those of the page."""
    worlds = [world for case in CASES for world in (case.good, *case.also_good.values())]
    worlds += [each.world for case in CASES for each in (case.bad, *case.also_bad.values())]
    written = {series for world in worlds for series in world}
    problems = [(each, what) for each in written for what in problems_of(each, has_examples=True)]
    assert problems == []


def test_report_and_advise(capsys: pytest.CaptureFixture[str]) -> None:
    """They find all disks, their limits and what they did."""
    server = Server(series(START_S))
    period = ("--from=2026-10-01", "--to=2026-10-01T00:01:00Z")
    with serving(server) as api:
        assert main(["report", f"--prometheus={api.address}", *period, "--json"]) == 1
        report = json.loads(capsys.readouterr().out)
        disk = f"{TARGET['instance']}:{SHARED[0]}"
        command = ["advise", f"--prometheus={api.address}", *period, disk, "--json"]
        assert main(command) in {0, 1}
        advice = json.loads(capsys.readouterr().out)
    by_device = {each["labels"]["device"]: each for each in report["disks"]}
    assert set(by_device) >= {THROTTLED, *SHARED, MOUNT}
    assert all(each["totals"]["assessed_s"] > 7 for each in by_device.values())
    assert by_device[THROTTLED]["totals"]["verdict_seconds"]["throttled"] > 6
    assert by_device[THROTTLED]["serial"] == f"vol-{THROTTLED}"
    assert advice["requests"] > 3000
    for request in server.requests:
        asked = parse_qs(urlsplit(request.url).query)
        [query] = asked.get("match[]") or asked["query"]
        assert list(problems_of(re.sub(r"\[.*\]$", "", query), has_examples=True)) == []


def test_document_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_metric_of_the_document_does_not_vanish() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page
    row = "| `disksla_former_total` | counter | `device` | lean | Requests. |"
    with pytest.raises(SystemExit, match=": disksla_former_total gone from"):
        rewritten(f"{page}{row}\n")


def test_rows_of_a_table_have_the_same_cells() -> None:
    tables = [
        section.splitlines() for section in reference().split("\n\n") if section.startswith("|")
    ]
    assert [{row.count("|") for row in rows} for rows in tables] == [{5}, {6}, {6}, {6}, {4}, {5}]
