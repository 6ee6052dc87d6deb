"""Where a disk is throttled: which limit a rate is that of, and the rate that was seen last."""

from typing import Literal, get_args

import msgspec

from disksla.promise.catalogue import Charge, Limits
from disksla.verdict.interval import Interval, load_of

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


class Ceiling(msgspec.Struct, frozen=True, gc=False):
    """The rate at which a disk was last seen throttled, by what it served then."""

    throttle: Throttle
    iops: float | None
    """Reads and writes per second; None if the number of data writes is not certain."""
    bytes_per_second: float | None
    """Read and written; None if no window of the limiter was used to the end."""
    window_s: float | None = None
    """Window of the limiter; None if it has none, or none is seen."""
    before_iops: float | None = None
    """The last rate that was certain before this one."""

    @property
    def last_iops(self) -> float | None:
        """The last rate that was certain: of this time, or of one before."""
        return self.before_iops if self.iops is None else self.iops


def limit_at(served: Interval, limits: Limits, tolerance: float) -> Throttle | None:
    """Return the limit of the terms at whose rate this was served; None if at none."""
    fewest = served.without_flushes()
    for level, least, most in levels(limits):
        lowest, highest = load_of(fewest, most), load_of(served, least)
        if lowest is None or highest is None:
            continue
        # With flushes, the number of data writes is a range, and the limit has to be in it.
        if lowest <= 1 + tolerance and highest >= 1 - tolerance:
            return Throttle(level, binding_limit(served, limits.enforced_charges))
    return None


def levels(
    limits: Limits,
) -> tuple[tuple[ThrottleLevel, tuple[Charge, ...], tuple[Charge, ...]], ...]:
    """Return the baseline and the burst, each with the charges of the least and the most load.

    They differ where only a range of the limit is known.
    """
    return (
        ("base", limits.promise_charges, limits.throttled_charges),
        ("burst", limits.burst_charges, limits.burst_throttled_charges),
    )


def binding_limit(served: Interval, charges: tuple[Charge, ...]) -> LimitKind:
    """Return the limit that a load uses most: that of requests or that of bytes."""
    binding: LimitKind = "unknown"
    largest_s = -1.0
    for charge in charges:
        requests_s = charge.read_s * served.reads + charge.write_s * served.writes
        bytes_s = (
            charge.read_byte_s * served.read_bytes + charge.written_byte_s * served.written_bytes
        )
        if requests_s + bytes_s > largest_s:
            largest_s = requests_s + bytes_s
            if charge.limit == "service":  # one charge for both: its larger part decides
                binding = "iops" if requests_s >= bytes_s else "bandwidth"
            else:
                binding = charge.limit
    return binding
