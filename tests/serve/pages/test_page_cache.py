"""The cache of the last rendered page."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from disksla.serve.pages.app import PageCache, Sharing


def pages_at(cache: PageCache[int], times_s: list[float], clock: list[float]) -> list[int]:
    """Return the numbers of the pages that are returned at these times."""
    numbers = itertools.count()
    pages = []
    for now_s in times_s:
        clock[0] = now_s
        pages.append(cache.get("same", lambda: next(numbers)))
    return pages


def test_page_is_shared_for_a_time_after_it_was_rendered() -> None:
    clock = [0.0]
    cache = PageCache[int](Sharing(0.1, lambda: clock[0]))
    assert pages_at(cache, [5.0, 5.05, 5.09, 5.11, 5.15, 6.0], clock) == [0, 0, 0, 1, 1, 2]


def test_page_that_takes_long_to_render_is_shared() -> None:
    clock = [0.0]
    cache = PageCache[float](Sharing(0.1, lambda: clock[0]))

    def render() -> float:
        clock[0] += 2.0
        return clock[0]

    assert [cache.get("same", render) for _ in range(3)] == [2.0, 2.0, 2.0]


def test_pages_of_several_keys_are_shared() -> None:
    clock = [0.0]
    cache = PageCache[str](Sharing(0.1, lambda: clock[0]))
    for text in ("first", "again"):
        assert cache.get("a", lambda text=text: f"a {text}") == "a first"  # type: ignore[misc]
        assert cache.get("b", lambda text=text: f"b {text}") == "b first"  # type: ignore[misc]
    clock[0] = 0.2
    assert cache.get("a", lambda: "later") == "later"


def test_cache_can_be_disabled() -> None:
    clock = [0.0]
    assert pages_at(PageCache[int](Sharing(0.0, lambda: clock[0])), [1.0, 1.0, 1.0], clock) == [
        0,
        1,
        2,
    ]


def test_failed_page_is_rendered_again() -> None:
    cache = PageCache[str](Sharing(1000))

    def fail() -> str:
        raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError):
        cache.get("same", fail)
    assert cache.get("same", lambda: "page") == "page"


def test_concurrent_requests_share_one_rendering() -> None:
    cache = PageCache[int](Sharing(1000))
    gate = threading.Event()
    renderings = []

    def render() -> int:
        renderings.append(threading.get_ident())
        assert gate.wait(20)
        return len(renderings)

    with ThreadPoolExecutor(20) as pool:
        pages = [pool.submit(cache.get, "same", render) for _ in range(20)]
        gate.set()
        assert {page.result() for page in pages} == {1}
    assert len(renderings) == 1
