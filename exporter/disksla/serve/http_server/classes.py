"""Classes of requests: each has a worker and a limit of its own, so none waits for another."""

from collections.abc import Callable

from disksla.serve.http_server.http_protocol import (
    PLAIN_TEXT,
    HeaderLines,
    Reply,
    RequestHead,
    ServiceClass,
)
from disksla.serve.http_server.pace import TimeShare
from disksla.serve.http_server.turns import TooManyError, Turns
from disksla.serve.http_server.waiting import KnownClients

MOST_SCRAPES = 40
"""Scrapes that are in progress at once by default, which is that of node_exporter."""
_MOST = 128
"""Requests of scrapes that are in progress, where the operator sets no limit."""
_MOST_PAGES = 16
_MOST_CHANGES = 4
_PAGES_SHARE = TimeShare(0.25)
"""Workers contend for the GIL with each other and with the sampler."""
_CHANGES_SHARE = TimeShare(0.1)
_RETRY: HeaderLines = (*PLAIN_TEXT, ("Retry-After", "1"))
BUSY = Reply(b"Too many requests wait already; retry later.\n", 503, _RETRY)

Application = Callable[[RequestHead], Reply]
"""Called by one thread for each class, and by the event loop for the class `health`."""


class Services:
    """Answers requests by an application, each class by a worker of its own."""

    def __init__(
        self,
        application: Application,
        class_of: Callable[[RequestHead], ServiceClass],
        most_scrapes: int,
        known: KnownClients | None = None,
    ) -> None:
        """Prepare the workers; 0 scrapes are no limit."""
        self._application = application
        self._class_of = class_of
        most_scrapes = most_scrapes or _MOST
        self._turns = {
            "scrape": Turns("web-scrapes", most_scrapes, known=known),
            "page": Turns("web-pages", _MOST_PAGES, _PAGES_SHARE, known),
            "change": Turns("web-changes", _MOST_CHANGES, _CHANGES_SHARE, known),
        }
        self.most = most_scrapes + _MOST_PAGES + _MOST_CHANGES
        """Requests that are answered at once."""

    async def answer(self, request: RequestHead, client: str) -> Reply:
        """Return the response of the application, when it is the turn of the client."""
        turns = self._turns.get(self._class_of(request))
        if turns is None:
            return self._application(request)
        try:
            return await turns.run(client, lambda: self._application(request))
        except TooManyError:
            return BUSY

    def stop(self) -> None:
        """Begin no more work."""
        for turns in self._turns.values():
            turns.stop()
