"""Pictures of a dashboard, drawn with Grafana's published components, without a Grafana server.

The panels come from the committed dashboard, and their data from a Prometheus. It also serves the
page that asks it and draws: `benches/pictures/dashboard`.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from browser.chromium import BrowserError, Page, running
from support.monitoring_stack import Prometheus, prometheus

_ROOT = Path(__file__).parents[2]
_MIXIN = _ROOT / "grafana" / "out"
ASSETS = _ROOT / ".cache" / "dashboard" / "page"
"""The page, its script, fonts and icons: the Makefile builds them."""
SCRAPE_S = 5
_WIDTH = 1280
_NOT_DRAWN = {"state-timeline"}
"""No component of Grafana draws these, which have a line of their own."""


class Section(NamedTuple):
    """Panels of a dashboard that are below each other."""

    name: str
    dashboard: str
    first: str
    last: str
    """Titles of its highest and of its lowest panel."""


IOPS = Section("dashboard-disk", "disk", "State", "Total IOPS and observed ceiling")
"""All above the throughput."""


def panels_of(section: Section) -> list[dict[str, Any]]:
    """Return the panels of a section. Raise ValueError if a title is not that of one panel."""
    file = _MIXIN / "dashboards" / f"{section.dashboard}.json"
    panels = json.loads(file.read_text(encoding="utf-8"))["panels"]
    top, bottom = (_line(panels, title) for title in (section.first, section.last))
    within = [panel for panel in panels if top <= panel["gridPos"]["y"] <= bottom]
    for panel in [each for each in within if each["type"] in _NOT_DRAWN]:
        within.remove(panel)
        for below in [each for each in within if each["gridPos"]["y"] > panel["gridPos"]["y"]]:
            below["gridPos"]["y"] -= panel["gridPos"]["h"]
    return within


def _line(panels: list[dict[str, Any]], title: str) -> int:
    [line] = [panel["gridPos"]["y"] for panel in panels if panel["title"] == title]
    return int(line)


def missing() -> str | None:
    """Return what is missing for pictures of dashboards; None if nothing is."""
    if shutil.which("prometheus") is None:
        return "needs prometheus"
    return None if (ASSETS / "page.js").exists() else "needs npm, which installs the components"


@contextmanager
def scraping(daemon: str) -> Iterator[Prometheus]:
    """Yield a Prometheus that scrapes a daemon."""
    document = {
        "global": {
            "scrape_interval": f"{SCRAPE_S}s",
            "scrape_timeout": f"{SCRAPE_S}s",
            "evaluation_interval": f"{SCRAPE_S}s",
        },
        # No alerts: their marks are drawn by Grafana itself, not by its components.
        "rule_files": [str(_MIXIN / "prometheus_rules.yaml")],
        "scrape_configs": [{"job_name": "disksla", "static_configs": [{"targets": [daemon]}]}],
    }
    with tempfile.TemporaryDirectory(prefix="disksla-prometheus-") as home:
        config = Path(home) / "prometheus.yml"
        config.write_text(json.dumps(document))  # JSON is YAML
        with prometheus(config, Path(home) / "data", f"--web.user-assets={ASSETS}") as server:
            yield server


def take_dashboard(
    section: Section,
    server: Prometheus,
    disk: dict[str, str],
    span_s: tuple[float, float],
    directory: Path,
) -> list[Path]:
    """Write pictures of a section, dark and light, with the data between two times."""
    written = []
    with ExitStack() as undo:
        profile = undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-browser-"))
        browser = undo.enter_context(running(Path(profile)))
        for theme in ("dark", "light"):
            page = Page(browser)
            draw(page, server, panels_of(section), disk, span_s, theme=theme)
            file = directory / f"{section.name}-{theme}.png"
            file.write_bytes(page.picture())
            written.append(file)
    return written


def draw(
    page: Page,
    server: Prometheus,
    panels: list[dict[str, Any]],
    disk: dict[str, str],
    span_s: tuple[float, float],
    scrape_s: int = SCRAPE_S,
    theme: str = "dark",
) -> None:
    """Draw panels on a page. Raise BrowserError if one of them cannot be drawn."""
    request = {
        "panels": panels,
        "width": _WIDTH,
        "theme": theme,
        "from": span_s[0] * 1000,
        "to": span_s[1] * 1000,
        "scrapeSeconds": scrape_s,
        "variables": {"job": ".+", "cluster": ".*", **disk},
    }
    page.shows(_WIDTH, 1000)
    page.open(f"http://{server.address}/user/page.html")
    height = page.evaluate(f"draw({json.dumps(request)})")
    page.shows(_WIDTH, height)
    page.evaluate("drawn()")
    if complaints := page.complaints():
        raise BrowserError(f"drawing failed: {complaints}")
