"""The page that replaces its content: what its reader does stays as it is."""

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
