"""What waits, by client: clients take turns, and none takes the places of the others."""

import ipaddress
from collections.abc import Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

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


class Waiting(Generic[Item]):
    """Things that wait, each for a client."""

    def __init__(self) -> None:
        """Begin empty."""
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
        client = next(iter(self._by_client))
        items = self._by_client.pop(client)
        item = next(iter(items))
        del items[item]
        if items:
            self._by_client[client] = items
        return item

    def take_oldest_of_most(self) -> Item:
        """Remove and return the oldest of the client that has the most."""
        client = max(self._by_client, key=self._count)
        item = next(iter(self._by_client[client]))
        self.discard(client, item)
        return item

    def take_newest_of_most(self) -> Item:
        """Remove and return the newest of the client that has the most."""
        client = max(reversed(self._by_client), key=self._count)
        item = next(reversed(self._by_client[client]))
        self.discard(client, item)
        return item

    def _count(self, client: str) -> int:
        return len(self._by_client[client])
