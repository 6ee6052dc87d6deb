"""A page for many: made by one worker at a time, and given to all who ask the same in time.

Printing the metrics of many disks takes tens of milliseconds of a core, and nothing new can be
seen before the next tick. So a hundred scrapers at once cost little more than one.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

Page = TypeVar("Page")


class _Kept(NamedTuple, Generic[Page]):
    asked: Hashable
    begun_s: float
    page: Page


class PageCache(Generic[Page]):
    """Keeps the page that was made last."""

    def __init__(self, share_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        """Share a page for so long after its making was begun; 0 for not at all."""
        self._share_s = share_s
        self._now_s = now_s
        self._making = threading.Lock()
        self._kept: _Kept[Page] | None = None

    def give(self, asked: Hashable, make: Callable[[], Page]) -> Page:
        """Give the page that was made for the same, if it is young enough; or make it."""
        with self._making:
            now_s = self._now_s()
            kept = self._kept
            if kept and kept.asked == asked and now_s - kept.begun_s < self._share_s:
                return kept.page
            page = make()
            self._kept = _Kept(asked, now_s, page) if self._share_s else None
            return page
