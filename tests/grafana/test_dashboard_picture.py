"""Panels are drawn by Grafana's components with the data of a real Prometheus."""

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from browser.chromium import BrowserError, Page, running
from grafana.promtool import needs_promtool
from grafana.sample_history import HOUR_S, STEP_S, openmetrics
from pictures.dashboard import ASSETS, IOPS, Section, draw, missing, panels_of
from support.monitoring_stack import Prometheus, prometheus

pytestmark = [
    needs_promtool,
    pytest.mark.skipif(
        missing() is not None,
        reason=f"NOT TESTED: {missing()}: make .cache/dashboard/page/page.js",
    ),
]
PANELS = panels_of(Section("", "disk", "Terms", IOPS.last))
DISK = {"instance": "db-2:10056", "device": "vda"}
"""It has burst credits."""
TEXT = "document.body.innerText"
CURVES = "[...document.querySelectorAll('canvas')].length"


@pytest.fixture(scope="module")
def now_s() -> int:
    return int(time.time())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, now_s: int) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    (directory / "history.txt").write_text(openmetrics(now_s))
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "history.txt", "data"],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    (directory / "prometheus.yml").write_text("{}")
    assets = f"--web.user-assets={ASSETS}"
    with prometheus(directory / "prometheus.yml", directory / "data", assets) as server:
        yield server


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with running(tmp_path_factory.mktemp("profile")) as browser:
        yield Page(browser)


def drawn(page: Page, server: Prometheus, now_s: int, panels: list[dict[str, Any]]) -> str:
    """Draw panels, and return their text."""
    draw(page, server, panels, DISK, (now_s - HOUR_S / 2, now_s), STEP_S)
    text: str = page.evaluate(TEXT)
    return text


def test_values_are_those_of_prometheus(page: Page, server: Prometheus, now_s: int) -> None:
    text = drawn(page, server, now_s, PANELS)
    for panel in PANELS:
        assert panel["title"] in text
    [left] = server.query(
        'disksla_burst_credits{instance="db-2:10056", device="vda"}'
        " / on (instance, device, resource) disksla_burst_credits_capacity"
    )
    shown = text.partition("Burst credits\n")[2].partition("%")[0]
    assert float(shown) == pytest.approx(100 * float(left["value"][1]), abs=0.051)
    assert "vk.high-iops" in text
    assert "/var/lib/postgresql" in text
    assert text.count("observed\n") == 3
    assert page.evaluate(CURVES) == 5


def test_absence_is_said_in_the_words_of_the_panel(
    page: Page, server: Prometheus, now_s: int
) -> None:
    panels = [panel for panel in PANELS if panel["title"] in {"Serial number", "Load"}]
    nothing = json.loads(json.dumps(panels).replace("disksla_", "absent_"))
    text = drawn(page, server, now_s, nothing)
    assert "the disk has none" in text
    assert "no limits are known, or the disk was idle" in text
    assert page.evaluate(CURVES) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "heatmap"}, "has no component for heatmap"),
        ({"fieldConfig": {"defaults": {"unnit": "s"}, "overrides": []}}, "unknown options unnit"),
        ({"targets": [{"expr": "up[", "refId": "A", "instant": True}]}, "query failed"),
        ({"targets": [{"expr": "$host", "refId": "A", "instant": True}]}, "without a value"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(
    page: Page, server: Prometheus, now_s: int, change: dict[str, Any], message: str
) -> None:
    panels = [panel | change for panel in PANELS if panel["title"] == "Load"]
    with pytest.raises(BrowserError, match=message):
        drawn(page, server, now_s, panels)
