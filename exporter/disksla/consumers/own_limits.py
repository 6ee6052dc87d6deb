"""Groups that are held at their own limit, `io.max`, by their rate.

No counter has the time for which the kernel made a group wait for its own limit.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from disksla.consumers.consumption import OwnLimit
from disksla.consumers.io_files import KINDS, NOTHING, Amounts
from disksla.consumers.sharing import Counted

HELD_S = 10.0
"""A group has had the rate of its limit for this time."""
TOLERANCE = 0.03
_MOST_READINGS = 32


class Limited(NamedTuple):
    """A group with limits of its own."""

    consumer: str
    limits: Mapping[str, Amounts]
    """By the number of a disk; infinite where there is none."""


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
                limits,
                _rates(first[group], last[group], number, now_s - begin_s),
                strict=True,
            )
            if 0 < limit < inf and abs(rate - limit) <= TOLERANCE * limit
        )

    def clear(self) -> None:
        """Forget all readings: the next has none before it."""
        self._readings.clear()


def _rates(
    first: Mapping[str, Amounts], last: Mapping[str, Amounts], number: str, seconds: float
) -> Sequence[float]:
    grown = last.get(number, NOTHING).minus(first.get(number, NOTHING))
    return [each / seconds for each in grown]
