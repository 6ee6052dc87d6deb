"""A real Prometheus scrapes the page of a machine for a minute: each query has a result.

The page is what the real program makes of simulated disks (`support.real_page`). Rules are
evaluated once a second.
"""

import json
import re
import time
from collections.abc import Iterator

import pytest

from disksla.commands.cli import main
from disksla.measure.prometheus.query import selector
from grafana.dashboard_lint import ANY_VALUE, targets_of
from grafana.metric_names import queries, recorded
from grafana.promql import selectors_in
from grafana.queried import fast_rules, result, served
from render import OUT
from support.monitoring_stack import PATIENCE_S, Prometheus, needs_prometheus, prometheus
from support.real_page import SHARED, STALLED, TARGET, THROTTLED, page_of, snapshots
from support.waiting import eventually

pytestmark = [needs_prometheus, pytest.mark.xdist_group("test_real_page")]

SECONDS, PAGES_S, SCRAPE_S = 70, 240, 2
VALUES = {
    **ANY_VALUE,
    "$__rate_interval": "30s",
    "$__range": "1m",
    "$job": TARGET["job"],
    "$instance": TARGET["instance"],
}
EMPTY = {"usual": "is learned for ten minutes"}
"""What selectors need to have a result, that the page does not have within a minute."""
ANY_OF = {"Disks by state", "Share of the time"}
"""Panels that leave out what does not happen: one of their queries has to have a result."""
MAY_BE_EMPTY = {"Without limits", "Time until the limit"}
"""No disk of the page is without limits, and none has a load that grows."""


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Return a Prometheus that has scraped for more than a minute."""
    directory = tmp_path_factory.mktemp("prometheus")
    names = ("prometheus_rules.yaml", "prometheus_alerts.yaml")
    for name in names:
        (directory / name).write_text(fast_rules(name))
    pages = {after_s: page_of(each) for after_s, each in snapshots(PAGES_S, SCRAPE_S)}
    with served(pages) as address:
        target = {"targets": [address], "labels": {"instance": TARGET["instance"]}}
        config = {
            "global": {"scrape_interval": f"{SCRAPE_S}s"},
            "rule_files": names,
            "scrape_configs": [{"job_name": TARGET["job"], "static_configs": [target]}],
        }
        (directory / "prometheus.yml").write_text(json.dumps(config))
        with prometheus(directory / "prometheus.yml", directory / "data") as server:
            time.sleep(SECONDS)
            yield server


def test_rules(scraped: Prometheus) -> None:
    def missing() -> list[str]:
        return [name for name in recorded() if not scraped.query(name)]

    assert eventually(lambda: not missing(), PATIENCE_S), missing()


def test_what_alerts_ask_for(scraped: Prometheus) -> None:
    """Their thresholds are left out: a minute is too short for most of them."""
    asked = {
        selector([name], {}, ",".join(f'{label}{how}"{value}"' for label, how, value in matchers))
        for query in queries().values()
        for name, matchers in selectors_in(re.sub(r'\b\w+=""', "", query))
    }
    needed = [each for each in sorted(asked) if not any(word in each for word in EMPTY)]

    def missing() -> list[str]:
        return [each for each in needed if not scraped.query(each)]

    assert eventually(lambda: not missing(), PATIENCE_S), missing()


@pytest.mark.parametrize("name", ["fleet", "probes", "disk"])
def test_dashboards(scraped: Prometheus, name: str) -> None:
    dashboard = json.loads((OUT / "dashboards" / f"{name}.json").read_text(encoding="utf-8"))
    devices = (THROTTLED, SHARED[0], STALLED) if name == "disk" else (".+",)
    values = [{**VALUES, "$device": each} for each in devices]

    def missing() -> list[str]:
        found = [
            (panel["title"], any(result(scraped, target, each, 60) for each in values))
            for panel, target in targets_of(dashboard)
        ]
        shown = {title for title, has_result in found if has_result and title in ANY_OF}
        return [
            title
            for title, has_result in found
            if not has_result and title not in shown | MAY_BE_EMPTY
        ]

    assert eventually(lambda: not missing(), PATIENCE_S, every_s=2.0), missing()


def test_report_and_advise(scraped: Prometheus, capsys: pytest.CaptureFixture[str]) -> None:
    options = (f"--prometheus=http://{scraped.address}", "--last=1m", "--json")
    assert main(["report", *options]) == 1
    report = json.loads(capsys.readouterr().out)
    seconds = {each["labels"]["device"]: each["totals"]["assessed_s"] for each in report["disks"]}
    assert len(seconds) == 7
    assert min(seconds.values()) > 30
    assert main(["advise", f"{TARGET['instance']}:{SHARED[0]}", *options]) in {0, 1}
    assert json.loads(capsys.readouterr().out)["seconds"] > 30
