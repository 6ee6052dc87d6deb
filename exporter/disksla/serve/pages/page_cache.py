"""Cache of rendered pages, so that many clients cost little more than one.

Rendering a page of many disks takes tens of milliseconds of CPU, and nothing changes before the
next tick. One thread renders at a time; the others wait, and get its page if they asked for the
same.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

Page = TypeVar("Page")


class Sharing(NamedTuple):
    """How long a page is shared after it was rendered."""

    seconds: float = 0.0
    """0 for not at all."""
    now_s: Callable[[], float] = time.monotonic


NOT_SHARED = Sharing()


class _Entry(NamedTuple, Generic[Page]):
    rendered_s: float
    page: Page


class PageCache(Generic[Page]):
    """Pages that were just rendered, by key."""

    def __init__(self, sharing: Sharing) -> None:
        """Begin empty."""
        self._sharing = sharing
        self._rendering = threading.Lock()
        self._entries: dict[Hashable, _Entry[Page]] = {}

    def get(self, key: Hashable, render: Callable[[], Page]) -> Page:
        """Return the page with this key, from the cache if it is recent enough."""
        with self._rendering:
            self._drop_old()
            if key not in self._entries:
                page = render()
                self._entries[key] = _Entry(self._sharing.now_s(), page)
            return self._entries[key].page

    def _drop_old(self) -> None:
        now_s = self._sharing.now_s()
        self._entries = {
            key: entry
            for key, entry in self._entries.items()
            if now_s - entry.rendered_s < self._sharing.seconds
        }
