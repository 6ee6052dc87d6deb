"""Where a disk is throttled."""

from typing import Literal, get_args

import msgspec

from disksla.limits import Charge

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


class SharedWindow(msgspec.Struct, frozen=True, gc=False):
    """The last second of the group of a disk that has been decided."""

    second: int
    throttle: Throttle | None
    """The limit of the group whose rate it had in that second; None if none."""
    is_throttled: bool = False
    """Whether its requests waited for that limit, as far as their sum shows."""
    charges: tuple[Charge, ...] = ()
    """Of its limits."""
    least_load: float = 0.0
    """Half of what a disk gets if all that were active get the same: one that uses less of the
    limit need not wait for it."""


UNKNOWN_LIMIT = Throttle("unknown", "unknown")
