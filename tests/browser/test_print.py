"""The pages as printed."""

import re

import pytest

from browser.chromium import Page
from browser.conftest import Address
from support.daemon_process import Daemon

STYLES = """[...document.querySelectorAll('%s')].map(each => getComputedStyle(each)['%s'])"""


def test_prints_are_white_and_nothing_is_cut(page: Page, addresses: list[Address]) -> None:
    page.shows(720, media="print", scheme="dark")
    for address in addresses:
        page.open(address.url)
        assert set(page.evaluate(STYLES % ("body", "backgroundColor"))) == {"rgb(255, 255, 255)"}
        assert set(page.evaluate(STYLES % ("body *", "printColorAdjust"))) == {"exact"}
        for element in ("article", "figure", "svg", "tr", "pre"):
            assert set(page.evaluate(STYLES % (element, "breakInside"))) <= {"avoid"}
        assert page.pdf().startswith(b"%PDF-")


@pytest.mark.parametrize(("situation", "most"), [("busy", 4), ("many", 16)])
def test_status_page_is_short(
    page: Page, daemons: dict[str, Daemon], situation: str, most: int
) -> None:
    page.open(f"http://{daemons[situation].address}/")
    sheets = len(re.findall(rb"/Type /Page\b", page.pdf()))
    assert 1 <= sheets <= most


def test_page_of_64_disks_begins_with_the_problem(page: Page, daemons: dict[str, Daemon]) -> None:
    page.shows(390, 844)
    page.open(f"http://{daemons['many'].address}/")
    assert page.evaluate("document.querySelector('h1').textContent").endswith("(sd37).")
    first = page.evaluate("document.querySelector('article').getBoundingClientRect().top")
    assert first < 844 / 2
    assert page.evaluate("document.documentElement.outerHTML.length") < 400_000
