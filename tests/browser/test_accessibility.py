"""The pages for people who see them in another way, or do not see them: WCAG 2.1 AA and more."""

import re
from typing import Any

import pytest

from browser.chromium import Page
from browser.conftest import Address, checker
from disksla.tell.explanation.condition import CONDITION_TEXT
from support.daemon_process import Daemon

MODES: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "forced colors": {"scheme": "dark", "forced_colors": "active"},
    "zoomed to 200 %": {"width": 640, "height": 450},
    "phone": {"width": 390, "height": 844, "scheme": "dark"},
    "narrow": {"width": 320, "height": 640},
    "print": {"width": 720, "media": "print", "scheme": "dark"},
}
IN_CHECK = {"light", "narrow"}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATIONS = f"""axe.run({{resultTypes: ["violations"], runOnly: {RULES}}}).then(result =>
  result.violations.map(each => `${{each.id}}: ${{each.nodes[0].target}}`
    + ` (${{each.nodes.length}}): ${{each.nodes[0].failureSummary}}`))"""
TAB = ("Tab", 9)


def violations(page: Page) -> list[str]:
    page.evaluate(f"{checker('axe-core/axe.min.js').read_text(encoding='utf-8')};0")
    found: list[str] = page.evaluate(VIOLATIONS)
    return found


@pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=[] if mode in IN_CHECK else pytest.mark.nightly) for mode in MODES],
)
def test_pages_keep_the_rules(page: Page, addresses: list[Address], mode: str) -> None:
    """Nothing is wider than the window, the policy blocks nothing, and axe finds nothing."""
    page.shows(**MODES[mode])
    found = []
    for address in addresses:
        page.open(address.url)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        problems = [f"{wide} pixels too wide"] if wide > 0 else []
        problems += page.complaints()
        problems += violations(page)
        found += [f"{address.name}: {problem}" for problem in problems]
    assert found == []


def test_axe_finds_violations(page: Page) -> None:
    page.open("data:text/html,<p style='color: %23999'>grey</p><img src=x.png>")
    found = " ".join(violations(page))
    assert all(rule in found for rule in ("color-contrast", "image-alt", "html-has-lang"))


def read_aloud(page: Page) -> list[tuple[str, str]]:
    """Return the roles and names of the accessibility tree, in order."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    by_id = {node["nodeId"]: node for node in nodes}
    read, left = [], [nodes[0]["nodeId"]]
    while left:
        node = by_id[left.pop()]
        left += reversed(node.get("childIds", []))
        if not node["ignored"]:
            read.append((node["role"]["value"], node.get("name", {}).get("value", "")))
    return read


@pytest.mark.parametrize("width", [1280, 390])
def test_screen_reader_has_all_of_the_status_page(
    page: Page, daemons: dict[str, Daemon], width: int
) -> None:
    page.shows(width)
    page.open(f"http://{daemons['busy'].address}/")
    nodes = read_aloud(page)
    names = {role: [name for each, name in nodes if each == role] for role, _ in nodes}
    assert {"banner", "navigation", "main", "article", "table"} <= names.keys()
    headline, *disks, table = names["heading"]
    assert re.search(r"disks had a problem in the last (five minutes|[0-9.]+ s)\.", headline)
    assert table == "Limits and rates"
    assert len(disks) == len(names["article"]) == 6
    assert all(any(text.words in disk for text in CONDITION_TEXT.values()) for disk in disks)
    assert len(names["row"]) - (width > 960) == 6  # without headings on a phone
    pictures = names["image"]
    assert all(pictures)
    strips = [name for name in pictures if name.startswith("The last 5 minutes: ")]
    assert len(strips) == 6
    assert any("throttled" in strip for strip in strips)
    charts = [name for name in pictures if name.startswith("IOPS of the last 5 minutes, now ")]
    assert len(charts) == 6
    assert any("limit 300" in chart for chart in charts)
    groups = [name for name in names["group"] if name.startswith("History of ")]
    assert len(groups) == 6
    assert len(pictures) == 6 + 6 * 4 + 1  # one has burst credits


def test_keyboard_goes_through_links_and_charts_in_order(
    page: Page, daemons: dict[str, Daemon]
) -> None:
    page.shows()
    page.open(f"http://{daemons['busy'].address}/")
    page.evaluate("window.stops = [...document.querySelectorAll('a, .charts')]")
    assert page.evaluate("stops.length") == 3 + 6 + 6
    for number in range(3 + 6 + 6):
        page.press(*TAB)
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        assert page.evaluate("stops.indexOf(document.activeElement)") == number
