"""The page that replaces its content: what its reader does stays as it is."""

import re

import pytest

from browser.chromium import Page
from support.daemon_process import Daemon
from support.waiting import eventually

WITHIN_S = 20.0
TICKS = "document.querySelector('main > p:last-child').textContent"
NOTE = "document.querySelector('#problem').textContent"
REVERSED = """
window.fetch = async () => {
  const copy = new DOMParser().parseFromString(
    document.documentElement.outerHTML, "text/html");
  const cards = copy.querySelector(".cards");
  cards.replaceChildren(...[...cards.children].reverse());
  copy.querySelector("main").lastElementChild.textContent = "reversed";
  return new Response(copy.documentElement.outerHTML);
}"""
ASKED = """
window.asked = 0;
Object.defineProperty(document, "hidden", {get: () => { asked += 1; return false; }})"""
NAMES = "[...document.querySelectorAll('article')].map(each => each.dataset.key).join()"


@pytest.fixture
def status_page(page: Page, daemons: dict[str, Daemon]) -> Page:
    page.shows()
    page.open(f"http://{daemons['busy'].address}/")
    page.evaluate(
        """
        window.nodes = [...document.querySelectorAll("h1, article, article a, table")];
        window.announced = 0;
        new MutationObserver(() => window.announced += 1).observe(
          document.querySelector("main [role=status]"),
          {childList: true, characterData: true, subtree: true});
        """
    )
    return page


def has_updated(page: Page) -> bool:
    before = page.evaluate(TICKS)
    return eventually(lambda: bool(page.evaluate(TICKS) != before), WITHIN_S, every_s=0.1)


def test_elements_focus_and_scrolling_stay(status_page: Page) -> None:
    status_page.evaluate("[...document.querySelectorAll('article a')].at(-1).focus()")
    focused = status_page.evaluate("document.activeElement.href")
    status_page.evaluate("scrollTo(0, 300)")
    headline = status_page.evaluate("document.querySelector('h1').textContent")
    assert has_updated(status_page)
    assert status_page.evaluate("nodes.every(each => each.isConnected)")
    assert status_page.evaluate("document.activeElement.href") == focused
    assert status_page.evaluate("scrollY") == 300
    if status_page.evaluate("document.querySelector('h1').textContent") == headline:
        assert status_page.evaluate("announced") == 0


def test_cards_change_places_with_focus(status_page: Page) -> None:
    names = status_page.evaluate(NAMES)
    status_page.evaluate("document.querySelector('article a').focus()")
    focused = status_page.evaluate("document.activeElement.href")
    status_page.evaluate(REVERSED)
    assert has_updated(status_page)
    assert status_page.evaluate(NAMES).split(",") == names.split(",")[::-1]
    assert status_page.evaluate("nodes.every(each => each.isConnected)")
    assert status_page.evaluate("document.activeElement.href") == focused


def test_nothing_changes_while_text_is_selected(status_page: Page) -> None:
    status_page.evaluate("getSelection().selectAllChildren(document.querySelector('article p'))")
    selected, before = status_page.evaluate("String(getSelection())"), status_page.evaluate(TICKS)
    assert selected
    status_page.evaluate(ASKED)
    assert eventually(lambda: bool(status_page.evaluate("asked") > 1), WITHIN_S)
    assert status_page.evaluate(TICKS) == before
    assert status_page.evaluate("String(getSelection())") == selected


def test_page_says_that_it_is_not_updated(status_page: Page) -> None:
    assert status_page.evaluate(NOTE) == ""
    status_page.evaluate(
        "window.working = fetch; window.fetch = () => Promise.reject(Error('no'))"
    )
    assert eventually(lambda: bool(status_page.evaluate(NOTE)), WITHIN_S)
    assert status_page.evaluate(NOTE).startswith("Not updated since ")
    assert status_page.evaluate("document.title").startswith("not updated: ")
    status_page.evaluate("window.fetch = working")
    assert eventually(lambda: not status_page.evaluate(NOTE), WITHIN_S)
    assert not status_page.evaluate("document.title").startswith("not updated: ")


VALUES = "document.querySelector('#values').textContent"
CURSORS = "document.querySelectorAll('.cursor').length"
CLOCK = re.compile(r"\d\d:\d\d:\d\d: ")


def seconds(text: str) -> int:
    """Return the time of the values of a moment, in seconds since midnight."""
    hours, minutes, rest = text[:8].split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(rest)


def test_arrow_keys_read_the_charts(status_page: Page) -> None:
    """The values are those that the charts have; they stay with their moment in an update."""
    status_page.evaluate("document.querySelector('.charts').focus()")
    assert status_page.evaluate(VALUES) == ""
    for _ in range(3):
        status_page.press("ArrowLeft", 37)
    first = status_page.evaluate(VALUES)
    assert CLOCK.match(first)
    assert all(f" {title}: " in first for title in ("IOPS", "Throughput", "Queue depth"))
    assert re.search(r"%\. IOPS: reads [.\d]+, writes [.\d]+\. Throughput: reads ", first)
    plots = status_page.evaluate(
        "document.querySelector('.charts').querySelectorAll('figure').length"
    )
    assert status_page.evaluate(CURSORS) == plots + 1
    status_page.press("ArrowLeft", 37)
    second = status_page.evaluate(VALUES)
    assert (seconds(first) - seconds(second)) % 86400 == 5
    assert has_updated(status_page)
    assert status_page.evaluate(VALUES)[:8] == second[:8]
    status_page.press("Home", 36)
    assert (seconds(second) - seconds(status_page.evaluate(VALUES))) % 86400 > 250
    status_page.press("Escape", 27)
    assert status_page.evaluate(VALUES) == ""
    assert status_page.evaluate(CURSORS) == 0


def test_pointer_reads_the_charts(status_page: Page) -> None:
    status_page.evaluate("document.querySelector('.plot').scrollIntoView({block: 'center'})")
    box = status_page.evaluate(
        "(({x, y, width, height}) => ({x: x + width - 3, y: y + height / 2}))"
        "(document.querySelector('.plot').getBoundingClientRect())"
    )
    status_page.call("Input.dispatchMouseEvent", type="mouseMoved", **box)
    assert CLOCK.match(status_page.evaluate(VALUES))
    top = status_page.evaluate("document.querySelector('#values').getBoundingClientRect().top")
    assert top > box["y"]
    status_page.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert status_page.evaluate(VALUES) == ""


def test_times_are_those_of_the_reader(page: Page, daemons: dict[str, Daemon]) -> None:
    page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    page.open(f"http://{daemons['busy'].address}/")
    shown, utc = page.evaluate(
        "(({textContent, dateTime}) => [textContent, dateTime])(document.querySelector('time'))"
    )
    assert (seconds(shown) - seconds(utc[11:])) % 86400 == 5.5 * 3600


def test_charts_need_no_script(page: Page, daemons: dict[str, Daemon]) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.open(f"http://{daemons['busy'].address}/")
    texts = "[...document.querySelectorAll('%s')].map(each => each.textContent)"
    assert "limit 300" in page.evaluate(texts % ".name")
    assert all(text.endswith(" UTC") for text in page.evaluate(texts % "time:last-child"))
    assert page.evaluate("document.querySelector('.charts').tabIndex") == -1
