"""Cache of one rendered page, so that many concurrent scrapes cost little more than one.

Rendering the metrics of many disks takes tens of milliseconds of CPU, and nothing changes before
the next tick. One thread renders at a time; the others wait, and get its page if they asked for
the same.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

Page = TypeVar("Page")


class _Entry(NamedTuple, Generic[Page]):
    key: Hashable
    begun_s: float
    page: Page


class PageCache(Generic[Page]):
    """The last page, with its key and the time of rendering."""

    def __init__(self, share_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        """Share a page for `share_s` from the start of rendering; 0 disables the cache."""
        self._share_s = share_s
        self.now_s = now_s
        self._rendering = threading.Lock()
        self._entry: _Entry[Page] | None = None

    def get(self, key: Hashable, render: Callable[[], Page]) -> Page:
        """Return the page with this key, from the cache if it is recent enough."""
        with self._rendering:
            now_s = self.now_s()
            entry = self._entry
            if entry and entry.key == key and now_s - entry.begun_s < self._share_s:
                return entry.page
            page = render()
            self._entry = _Entry(key, now_s, page) if self._share_s else None
            return page
