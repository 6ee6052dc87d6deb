"""Where a disk is throttled."""

from typing import Literal, get_args

import msgspec

from disksla.limits import Charge
from disksla.verdict.interval import Interval

LimitKind = Literal["iops", "bandwidth", "machine_iops", "machine_bandwidth", "unknown"]
LIMIT_KINDS: tuple[LimitKind, ...] = get_args(LimitKind)
MACHINE_LIMITS: dict[LimitKind, LimitKind] = {
    "iops": "machine_iops",
    "bandwidth": "machine_bandwidth",
}
"""The limit of a machine, by that at which a group of its disks is throttled."""
OF_MACHINE = {shown: limit for limit, shown in MACHINE_LIMITS.items()}
"""The kind of each limit of a machine."""
ThrottleLevel = Literal["base", "burst", "unknown"]


class Throttle(msgspec.Struct, frozen=True, gc=False):
    """Where a disk is throttled."""

    level: ThrottleLevel
    """At its baseline, at its burst rate, or at a rate that is not in the terms."""
    limit: LimitKind


class SharedThrottle(msgspec.Struct, frozen=True, gc=False):
    """Where the group of a disk is throttled in a window."""

    throttle: Throttle
    throttled_s: float
    """Time of the window in which requests of the group waited."""
    releases: tuple[Interval, ...]
    """Its last releases."""
    charges: tuple[Charge, ...]
    """Of the limit."""


class SharedWindow(msgspec.Struct, frozen=True, gc=False):
    """A window of the group of a disk."""

    load_ratio: float
    """Load of the group."""
    throttle: SharedThrottle | None
    """Where it is throttled, if it is."""


UNKNOWN_LIMIT = Throttle("unknown", "unknown")
