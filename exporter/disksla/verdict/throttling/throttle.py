"""Where a disk is throttled."""

from typing import Literal, get_args

import msgspec

from disksla.promise.catalogue import Charge

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
    waited_share: float = 0.0
    """Share of it in which its requests waited for that limit, as far as their sum shows."""
    charges: tuple[Charge, ...] = ()
    """Of its limits."""
    least_load: float = 0.0
    """Half of what a disk gets if all that were active get the same: one that uses less of the
    limit need not wait for it."""


class MachineWindow(msgspec.Struct, frozen=True, gc=False):
    """What is known of the machine of a disk in one window."""

    group: SharedWindow | None = None
    """The last second of the group of the disk, if it is in one."""
    is_known: bool = True
    """The limits of the machine are known, or there are none. Else a limiter may be the machine's
    that the terms do not explain."""


UNKNOWN_LIMIT = Throttle("unknown", "unknown")
