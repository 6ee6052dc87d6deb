"""Which disks a client of the API asks for, and how it is refused: by name, or a page of all."""

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.text import escape_bytes, percent_encoded
from disksla.state.pipeline import DiskSnapshot

MOST_DISKS = 100
"""The disks of a page at most, so that one request costs little."""
_KEYS = ("disk", "limit", "after")


class DisksQuery(NamedTuple):
    """What is asked for. Names are those of the kernel, with escaped bytes."""

    names: frozenset[str] = frozenset()
    """Only these disks; empty for all."""
    limit: int | None = MOST_DISKS
    """The most disks of the page; None for no limit."""
    after: str | None = None
    """The last disk of the page before; None for the first page."""

    def choose(self, disks: Sequence[DiskSnapshot]) -> tuple[list[DiskSnapshot], str | None]:
        """Return the disks of the page, and the name of the last one if more follow."""
        named = [(escape_bytes(disk.disk.name), disk) for disk in disks]
        chosen = sorted((each for each in named if self._has(each[0])), key=itemgetter(0))
        page = chosen[: self.limit]
        following = page[-1][0] if len(page) < len(chosen) else None
        return [disk for _, disk in page], following

    def _has(self, name: str) -> bool:
        is_named = not self.names or name in self.names
        return is_named and (self.after is None or name > self.after)


ALL_DISKS = DisksQuery(limit=None)


def disks_query(parameters: Mapping[str, Sequence[str]]) -> DisksQuery:
    """Return what the parameters of a URL ask for. Raise DiskslaError if they are invalid."""
    unknown = parameters.keys() - set(_KEYS)
    if unknown:
        raise DiskslaError(f"found {min(unknown)[:20]!r}; expected {', '.join(_KEYS)}")
    limit = "".join(parameters.get("limit", (str(MOST_DISKS),))[-1:])
    if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= MOST_DISKS:
        raise DiskslaError(f"limit: found {limit[:20]!r}; expected 1 to {MOST_DISKS}")
    after = [*parameters.get("after", ()), None][0]
    return DisksQuery(frozenset(parameters.get("disk", ())), int(limit), after)


def target_of(path: str, names: Sequence[str], after: str | None) -> str:
    """Return the target of a request for these disks, or for all, after one."""
    pairs = [("disk", name) for name in names] + ([] if after is None else [("after", after)])
    query = "&".join(f"{key}={percent_encoded(value)}" for key, value in pairs)
    return f"{path}?{query}" if query else path


OK, BAD_REQUEST, UNAUTHORIZED, NOT_FOUND = 200, 400, 401, 404
TOO_MANY, UNAVAILABLE = 429, 503
REFUSALS = {
    BAD_REQUEST: "it requires HTTPS",
    UNAUTHORIZED: "it requires a password",
    NOT_FOUND: "there is no such page",
    TOO_MANY: "too many requests: its rate limit is used up",
    UNAVAILABLE: "too many scrapes or requests at once",
}
"""By the status of the answer."""
