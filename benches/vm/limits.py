"""QEMU's limits of a disk: leaky buckets (util/throttle.c of QEMU 7.2). Pure functions.

A bucket has a level, which rises by the cost of each request that is admitted, and falls at the
limit. A request waits while the level is above the size of the bucket. That is a tenth of a
second of the limit, or, with a burst, what the burst may use in all. The credits of a burst are
the size less the level.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

_USUAL_BURST_S = 0.1


class QemuLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits by their names in QMP (`block_set_io_throttle`)."""

    iops: int | None = None
    iops_max: int | None = None
    iops_max_length: int | None = None
    """Seconds for which a burst may last."""
    iops_size: int | None = None
    """A larger request counts as several."""
    bps: int | None = None

    @property
    def is_bandwidth(self) -> bool:
        """Whether bytes are limited, not requests."""
        return self.bps is not None

    @property
    def rate(self) -> float:
        """Limit, in requests or bytes per second; infinite if there is none."""
        return float(self.iops or self.bps or "inf")

    @property
    def capacity(self) -> float | None:
        """Credits of a full bucket; None without a burst."""
        return None if self.iops_max is None else self.iops_max * (self.iops_max_length or 1)

    def cost(self, size_bytes: int) -> float:
        """Return what a request costs, in requests or bytes."""
        if self.is_bandwidth:
            return size_bytes
        return max(1.0, size_bytes / self.iops_size) if self.iops_size else 1.0


class Change(NamedTuple):
    """New limits, from a point in time on. QEMU empties the buckets then."""

    at_s: float
    limits: QemuLimits


class Admitted(NamedTuple):
    """A request at the time at which it was admitted."""

    at_s: float
    size_bytes: int


def levels_at(
    times_s: Sequence[float], changes: Iterable[Change], admitted: Iterable[Admitted]
) -> list[float]:
    """Return the level of the bucket at each of the times, which must increase."""
    events: list[Change | Admitted] = [*changes, *admitted]
    happened = sorted(events, key=lambda event: event.at_s)
    limits = QemuLimits()
    level, now_s = 0.0, float("-inf")
    levels: list[float] = []
    for event in [*happened, None]:
        until_s = float("inf") if event is None else event.at_s
        while len(levels) < len(times_s) and times_s[len(levels)] < until_s:
            levels.append(_leaked(level, limits, times_s[len(levels)] - now_s))
        match event:
            case Change():
                level, limits = 0.0, event.limits
            case Admitted():
                level = _leaked(level, limits, until_s - now_s) + limits.cost(event.size_bytes)
        now_s = until_s
    return levels


def _leaked(level: float, limits: QemuLimits, seconds: float) -> float:
    return max(0.0, level - limits.rate * seconds) if level else 0.0


def bucket_size(limits: QemuLimits) -> float:
    """Return the level above which requests wait for the limit."""
    return limits.capacity or limits.rate * _USUAL_BURST_S
