"""What lies between readings of `io.stat`, by consumer, and who is held at an own limit, `io.max`.

Groups count requests as programs send them, and a group includes those below it. The root counts
what the disk completed. So a group is a leaf or it is left out, what the root has more than the
groups below it is of the kernel, and what these have more than the leaves is of groups that ended.

No counter has the time for which the kernel made a group wait for its own limit; its rate does.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from disksla.base.counts import Counts, total
from disksla.kernel.consumers.consumption import (
    KERNEL,
    KINDS,
    NOTHING,
    OTHER,
    UNATTRIBUTED,
    Consumption,
    OwnLimit,
    WatchedDisk,
)

MOST_NAMED = 16  # consumers of a disk in one reading
FEW_MERGES = 0.02  # share of the requests of a disk; groups count them before they are merged
HELD_S = 10.0  # a group has had the rate of its limit for this time
TOLERANCE = 0.03
_MOST_READINGS = 32

Counted = Mapping[int, Mapping[str, Counts]]
"""Of one reading: by the id of a group, and by the number of a disk."""


class Roles(NamedTuple):
    """The groups of a reading."""

    root: int
    tops: tuple[int, ...]
    leaves: Mapping[int, str]  # the consumer of each
    made_since: frozenset[int] = frozenset()
    """Leaves that were made since the scan before: all that they did counts."""


class Growth(NamedTuple):
    """What groups did at one disk between two readings."""

    kernel: Counts
    unattributed: Counts
    """Either may be negative: a request is counted by the root when it completes."""
    consumers: Mapping[str, Counts]

    @property
    def of_groups(self) -> Counts:
        """What all consumers did together."""
        return total(self.consumers.values(), NOTHING)


def growth_at(before: Counted, after: Counted, roles: Roles, number: str) -> Growth:
    """Return what the groups did at the disk with a number between two readings."""

    def grown(group: int) -> Counts:
        """Return nothing for a group that has ended, or was not read before."""
        if group not in after or not (group in before or group in roles.made_since):
            return NOTHING
        if after[group] is before.get(group):  # it did nothing
            return NOTHING
        rise = after[group].get(number, NOTHING) - before.get(group, {}).get(number, NOTHING)
        return _above_zero(rise)

    consumers: defaultdict[str, Counts] = defaultdict(Counts)
    for group, consumer in roles.leaves.items():
        rise = grown(group)
        if rise != NOTHING:
            consumers[consumer] += rise
    of_tops = total(map(grown, roles.tops), NOTHING)
    found = Growth(NOTHING, NOTHING, consumers)
    kernel = grown(roles.root) - of_tops if roles.root in after else NOTHING
    return found._replace(kernel=kernel, unattributed=of_tops - found.of_groups)


def with_debt(growth: Growth, debt: Growth | None) -> tuple[Growth, Growth]:
    """Return the growth without negative amounts, and what is left of them for the next.

    Else the requests in flight at each reading would add up to I/O of the kernel.
    """
    owed = debt or Growth(NOTHING, NOTHING, {})
    kernel = growth.kernel + owed.kernel
    unattributed = growth.unattributed + owed.unattributed
    positive = Growth(_above_zero(kernel), _above_zero(unattributed), growth.consumers)
    left = Growth(kernel - positive.kernel, unattributed - positive.unattributed, {})
    return positive, left


def _above_zero(amounts: Counts) -> Counts:
    return Counts(*(max(0, each) for each in msgspec.structs.astuple(amounts)))


def counts_requests(disk: WatchedDisk, before: WatchedDisk, growth: Growth) -> bool:
    """Return whether the requests of the groups are those of the disk.

    Not where requests were merged, or are so large that the kernel sends one as several.
    """
    requests, merges = disk.requests - before.requests, disk.merges - before.merges
    if merges > FEW_MERGES * requests:
        return False
    sent = growth.of_groups
    largest = disk.largest_request_bytes
    return largest is None or not sent.requests or sent.bytes / sent.requests <= largest / 2


def consumptions(device: str, growth: Growth, *, with_requests: bool) -> list[Consumption]:
    """Return what consumers used of a disk: MOST_NAMED of them, and the rest together."""
    ordered = sorted(growth.consumers.items(), key=lambda each: (-each[1].bytes, each[0]))
    named = dict(ordered[:MOST_NAMED])
    rest = total((amounts for _, amounts in ordered[MOST_NAMED:]), NOTHING)
    every = {**named, OTHER: rest, KERNEL: growth.kernel, UNATTRIBUTED: growth.unattributed}
    return [
        Consumption(
            device,
            consumer,
            requests=amounts.requests if with_requests else None,
            bytes=amounts.bytes,
        )
        for consumer, amounts in every.items()
        if amounts != NOTHING
    ]


class Limited(NamedTuple):
    """A group with limits of its own."""

    consumer: str
    limits: Mapping[str, Counts]  # by the number of a disk; infinite where there is none


class OwnLimits:
    """The last readings of groups with limits of their own."""

    def __init__(self) -> None:
        """Start without a reading."""
        self._readings: deque[tuple[float, Counted]] = deque(maxlen=_MOST_READINGS)

    def after(
        self,
        now_s: float,
        counted: Counted,
        limited: Mapping[int, Limited],
        devices: Mapping[str, str],
    ) -> tuple[OwnLimit, ...]:
        """Return the limits at which groups have been for HELD_S until now.

        `devices` are the names of the disks by their numbers.
        """
        last = {group: counted[group] for group in limited if group in counted}
        self._readings.append((now_s, last))
        while len(self._readings) > 1 and self._readings[1][0] <= now_s - HELD_S:
            self._readings.popleft()
        begin_s, first = self._readings[0]
        if now_s - begin_s < HELD_S:
            return ()
        return tuple(
            OwnLimit(devices[number], each.consumer, kind, limit)
            for group, each in limited.items()
            if group in first and group in last
            for number, limits in each.limits.items()
            if number in devices
            for kind, limit, rate in zip(
                KINDS,
                msgspec.structs.astuple(limits),
                _rates(first[group], last[group], number, now_s - begin_s),
                strict=True,
            )
            if 0 < limit < inf and abs(rate - limit) <= TOLERANCE * limit
        )

    def clear(self) -> None:
        """Forget all readings: the next has none before it."""
        self._readings.clear()


def _rates(
    first: Mapping[str, Counts], last: Mapping[str, Counts], number: str, seconds: float
) -> Sequence[float]:
    grown = last.get(number, NOTHING) - first.get(number, NOTHING)
    return [each / seconds for each in msgspec.structs.astuple(grown)]
