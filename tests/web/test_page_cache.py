"""A page that many ask for at once."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from disksla.web.page_cache import PageCache


def made(shared: PageCache[int], moments: list[float], clock: list[float]) -> list[int]:
    """Give the numbers of the pages that are given at these moments."""
    numbers = itertools.count()
    given = []
    for now_s in moments:
        clock[0] = now_s
        given.append(shared.give("same", lambda: next(numbers)))
    return given


def test_a_page_is_shared_for_so_long_after_its_making_was_begun() -> None:
    clock = [0.0]
    shared = PageCache[int](0.1, lambda: clock[0])
    assert made(shared, [5.0, 5.05, 5.09, 5.11, 5.15, 6.0], clock) == [0, 0, 0, 1, 1, 2]


def test_a_page_may_be_shared_with_nobody() -> None:
    clock = [0.0]
    assert made(PageCache[int](0.0, lambda: clock[0]), [1.0, 1.0, 1.0], clock) == [0, 1, 2]


def test_who_asks_for_something_else_gets_that() -> None:
    shared = PageCache[str](1000)
    assert shared.give("text", lambda: "text") == "text"
    assert shared.give("OpenMetrics", lambda: "OpenMetrics") == "OpenMetrics"
    assert shared.give("OpenMetrics", lambda: "again") == "OpenMetrics"


def test_a_page_that_cannot_be_made_is_tried_again() -> None:
    shared = PageCache[str](1000)

    def fail() -> str:
        raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError):
        shared.give("same", fail)
    assert shared.give("same", lambda: "page") == "page"


def test_many_at_once_get_one_page_and_no_two_are_made_at_once() -> None:
    shared = PageCache[int](1000)
    gate = threading.Event()
    making = []

    def make() -> int:
        making.append(threading.get_ident())
        assert gate.wait(20)
        return len(making)

    with ThreadPoolExecutor(20) as pool:
        pages = [pool.submit(shared.give, "same", make) for _ in range(20)]
        gate.set()
        assert {page.result() for page in pages} == {1}
    assert len(making) == 1
