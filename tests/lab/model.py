"""What a disk of the lab is told to do: how it is held, how it serves, what changes when."""

from typing import Literal

import msgspec

from lab.quantity import Bandwidth, Duration, Size

LimitKind = Literal["iops", "bandwidth", "service"]


class Meter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One token bucket, and what requests of either direction take out of it.

    A request costs 1 / IOPS + bytes / bandwidth seconds of the meter's time, with the rates of
    its direction; a rate that is not given costs nothing. So `iops: 300` is one budget of 300
    for both directions, `read_iops` alone leaves writes out, `read_iops` with `write_iops` is a
    budget of shared time, and IOPS with bandwidth in one meter is the additive law.
    """

    limit: LimitKind
    iops: float | None = None
    """For both directions."""
    bandwidth: Bandwidth | None = None
    """For both directions."""
    read_iops: float | None = None
    write_iops: float | None = None
    read_bandwidth: Bandwidth | None = None
    write_bandwidth: Bandwidth | None = None
    peak: float | None = None
    """What a burst may do, in the unit of what is held (IOPS, bytes per second; seconds of
    service per second where directions differ)."""
    credits: float | None = None
    """Capacity, in I/Os, bytes or seconds of service."""
    level: float | None = None
    """Credits at the start; full unless given."""
    fill: float | None = None
    """Credits that come back each second, whatever the load. Unless given, credits are what the
    base rate leaves unused: what a disk does drains them, and they fill at the base rate."""
    window: Duration = Duration(0.1)
    """Tokens come once per window; 0 for tokens that drip, as in QEMU's leaky bucket."""

    @property
    def unit_per_second(self) -> float:
        """Give what one second of this meter's time stands for in its own unit."""
        if self.limit == "service":
            return 1.0
        return self.iops or self.bandwidth or 1.0

    def cost_s(self, *, is_write: bool, size_bytes: int) -> float:
        """Give what a request takes."""
        iops = self.iops or (self.write_iops if is_write else self.read_iops)
        bandwidth = self.bandwidth or (self.write_bandwidth if is_write else self.read_bandwidth)
        return (1 / iops if iops else 0.0) + (size_bytes / bandwidth if bandwidth else 0.0)


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a request takes once it is let through."""

    latency: Duration = Duration(0)
    spread: float = 0.0
    """Standard deviation of the logarithm of the latency; 0 for a constant one."""
    slots: int | None = None
    """How many requests are served at once; all, unless given."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the disk at a moment."""

    at: Duration
    """Since the beginning."""
    meters: tuple[Meter, ...] | None = None
    service: Service | None = None
    stall: Duration | None = None
    """For so long nothing completes."""


class DiskModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk served by the lab itself."""

    size: Size = Size(256 * 2**20)
    meters: tuple[Meter, ...] = ()
    service: Service = Service()
    changes: tuple[Change, ...] = ()
