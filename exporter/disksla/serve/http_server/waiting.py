"""What waits, by client: clients take turns, and none takes the places of the others."""

import ipaddress
import math
from collections.abc import Hashable
from typing import Generic, TypeVar

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
