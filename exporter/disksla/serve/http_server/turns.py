"""Workers for classes of requests: none waits for another class, and clients take turns."""

import asyncio
import ipaddress
import math
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

from disksla.base.errors import DiskslaError
from disksla.serve.http_server.http_protocol import (
    PLAIN_TEXT,
    HeaderLines,
    Reply,
    RequestHead,
    ServiceClass,
)

Item = TypeVar("Item", bound=Hashable)

_MOST_KNOWN = 1000
_REMEMBERED_S = 3600.0
_FREE_OF_KNOWN = 4
"""So many of a client that was served before do not count: Prometheus may be two."""
_NETWORK_BITS = 64
"""A host may choose the other half of an IPv6 address as it likes (RFC 4291, section 2.5.1)."""


def client_of(peer: str) -> str:
    """Return whom an IP address is counted for: itself, or the /64 network of an IPv6 address.

    A text that is no address, as that of a Unix socket, is counted for itself.
    """
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False))


class KnownClients:
    """Who was served lately, and since when: those who were served before come first."""

    def __init__(self) -> None:
        """Begin without any."""
        self._served_s: dict[str, tuple[float, float]] = {}

    def served(self, client: str, now_s: float) -> None:
        """Note that a client was served at a monotonic time; of too many, the first are known."""
        first_s, last_s = self._served_s.get(client, (now_s, now_s))
        if len(self._served_s) >= _MOST_KNOWN and client not in self._served_s:
            self._served_s = {
                each: (first, last)
                for each, (first, last) in self._served_s.items()
                if now_s - last < _REMEMBERED_S
            }
            if len(self._served_s) >= _MOST_KNOWN:
                return
        is_known = now_s - last_s < _REMEMBERED_S
        self._served_s[client] = (first_s if is_known else now_s), now_s

    def since_s(self, client: str) -> float:
        """Return the monotonic time since which a client is known; infinite if it is not."""
        return self._served_s.get(client, (math.inf, 0.0))[0]


class Waiting(Generic[Item]):
    """Things that wait, each for a client.

    Every other turn is that of the client that is known for longest. So many new clients do not
    keep out one that was served before, and it does not keep out them.
    """

    def __init__(self, known: KnownClients | None = None) -> None:
        """Begin empty."""
        self._known = known or KnownClients()
        self._is_turn_of_known = False
        self._by_client: dict[str, dict[Item, None]] = {}
        """Of each client, the oldest first; the client whose turn it is first."""

    def __len__(self) -> int:
        """Return how many wait."""
        return sum(map(len, self._by_client.values()))

    def add(self, client: str, item: Item) -> None:
        """Let a thing wait as the last one of its client."""
        self._by_client.setdefault(client, {})[item] = None

    def discard(self, client: str, item: Item) -> None:
        """Let a thing wait no longer, if it does."""
        items = self._by_client.get(client, {})
        items.pop(item, None)
        if not items:
            self._by_client.pop(client, None)

    def take(self) -> Item:
        """Remove and return the oldest of the client whose turn it is, which is last then."""
        self._is_turn_of_known = not self._is_turn_of_known
        client = next(iter(self._by_client))
        if self._is_turn_of_known:
            client = min(self._by_client, key=self._known.since_s)
        items = self._by_client.pop(client)
        item = next(iter(items))
        del items[item]
        if items:
            self._by_client[client] = items
        return item

    def take_oldest_of_most(self) -> Item:
        """Remove and return the oldest of the client that has the most."""
        client = max(self._by_client, key=self._excess)
        item = next(iter(self._by_client[client]))
        self.discard(client, item)
        return item

    def take_newest_of_most(self) -> Item:
        """Remove and return the newest of the client that has the most."""
        client = max(reversed(self._by_client), key=self._excess)
        item = next(reversed(self._by_client[client]))
        self.discard(client, item)
        return item

    def _excess(self, client: str) -> tuple[int, float]:
        """Return how much more than others a client has; of equal ones, the newest has more."""
        since_s = self._known.since_s(client)
        count = len(self._by_client[client])
        return count if math.isinf(since_s) else max(0, count - _FREE_OF_KNOWN), since_s


Result = TypeVar("Result")

_REQUEST_S = 0.002
"""What a request takes besides the time of the worker: to be received, parsed and sent."""
_BURST_S = 10.0
"""After a time of rest, what the share is in this time may be used at once."""
_LONGEST_REST_S = 1.0
"""Clients have time limits, also where work takes long because the machine is busy."""


class TimeShare(NamedTuple):
    """A share of the time, and how much of it was used.

    It is not a share of CPU time, which would be all of it where the daemon gets little.
    """

    share: float
    """1.0 is all the time."""
    paid_until_s: float = -math.inf
    """Monotonic time up to which the time that was used is the share."""

    def rest_s(self, now_s: float) -> float:
        """Return for how long the worker has to rest now."""
        return min(max(0.0, self.paid_until_s - _BURST_S - now_s), _LONGEST_REST_S)

    def after(self, begun_s: float, used_s: float) -> "TimeShare":
        """Return the share after work that began at a monotonic time and took so long."""
        paid_until_s = max(self.paid_until_s, begun_s) + used_s / self.share
        most_s = begun_s + used_s + _BURST_S + _LONGEST_REST_S
        return TimeShare(self.share, min(paid_until_s, most_s))


UNLIMITED = TimeShare(math.inf)


class TooManyError(DiskslaError):
    """Too many requests of this class wait already."""


class Turns:
    """One worker; clients take turns; for use from one event loop.

    If `most` requests wait or are answered, the newest of the client with the most is refused; of
    equal ones, the client that was served before is not.
    """

    def __init__(
        self,
        name: str,
        most: int,
        time_share: TimeShare = UNLIMITED,
        known: KnownClients | None = None,
    ) -> None:
        """Prepare a worker, which rests when it has used its share of the time."""
        self._most = most
        self._time_share = time_share
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: Waiting[asyncio.Future[None]] = Waiting(known)
        self._is_busy = False

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        """Return the result of some work of a client, when it is its turn.

        Raise TooManyError if the request is refused. Work that has begun goes on if this is
        cancelled, and only then the turn is over.
        """
        await self._turn(client)
        return await asyncio.shield(asyncio.ensure_future(self._work(work)))

    def stop(self) -> None:
        """Begin no more work."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, client: str) -> None:
        """Return when it is the turn of a client."""
        if not self._is_busy:
            self._is_busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add(client, turn)
        if len(self._waiting) >= self._most:
            refused = self._waiting.take_newest_of_most()
            if not refused.done():  # else its request has just ended
                refused.set_exception(TooManyError())
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came at this moment
                self._next()
            raise
        finally:
            self._waiting.discard(client, turn)

    async def _work(self, work: Callable[[], Result]) -> Result:
        try:
            await asyncio.sleep(self._time_share.rest_s(time.monotonic()))
            return await asyncio.get_running_loop().run_in_executor(
                self._worker, self._measured, work
            )
        finally:
            self._next()

    def _measured(self, work: Callable[[], Result]) -> Result:
        """Do some work, and count its time; in the worker."""
        begun_s = time.monotonic()
        try:
            return work()
        finally:
            used_s = time.monotonic() - begun_s + _REQUEST_S
            self._time_share = self._time_share.after(begun_s, used_s)

    def _next(self) -> None:
        """End a turn, and begin the next."""
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False


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
