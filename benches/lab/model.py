"""Model of a disk of the lab: its limits, its service time, and changes over time."""

from typing import Literal

import msgspec

from disksla.base.units import parse_bandwidth_bytes_per_second, parse_duration_s, parse_size_bytes


class Size(int):
    """Bytes."""


class Bandwidth(float):
    """Bytes per second."""


class Duration(float):
    """Seconds."""


def decode(kind: type, value: object) -> object:
    """Parse a quantity of a kind (a `dec_hook` of msgspec)."""
    if kind is Size:
        return Size(parse_size_bytes(str(value)))
    if kind is Bandwidth:
        return Bandwidth(parse_bandwidth_bytes_per_second(str(value)))
    if kind is Duration:
        return Duration(0.0 if value == 0 else parse_duration_s(str(value)))
    raise NotImplementedError(kind)


LimitKind = Literal["iops", "bandwidth", "service"]
MachineLimitKind = Literal["machine_iops", "machine_bandwidth", "machine_service"]
MACHINE_LIMITS: dict[LimitKind, MachineLimitKind] = {
    "iops": "machine_iops",
    "bandwidth": "machine_bandwidth",
    "service": "machine_service",
}
"""Limit of a disk whose requests wait for the limiter of the machine, by the kind of its meter."""


class Meter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One limit, as a token bucket, and the cost of reads and writes.

    A request costs 1 / IOPS + bytes / bandwidth seconds of the meter's time, with the rates of
    its direction; a rate that is absent costs nothing. So `iops: 300` is one budget of 300 that
    reads and writes share, `read_iops` alone does not limit writes, `read_iops` with `write_iops`
    is a budget of shared time, and IOPS with bandwidth in one meter is the additive cost model.
    """

    limit: LimitKind
    iops: float | None = None
    """Of both directions."""
    bandwidth: Bandwidth | None = None
    """Of both directions."""
    read_iops: float | None = None
    write_iops: float | None = None
    read_bandwidth: Bandwidth | None = None
    write_bandwidth: Bandwidth | None = None
    peak: float | None = None
    """Peak rate of a burst, in the unit of the limit (IOPS, bytes per second; seconds of service
    per second where directions differ)."""
    credits: float | None = None
    """Capacity, in I/Os, bytes or seconds of service."""
    level: float | None = None
    """Credits at the start (default: full)."""
    fill: float | None = None
    """Credits added each second, whatever the load. By default, credits are the unused part of the
    base rate: all use drains them, and they fill at the base rate."""
    window: Duration = Duration(0.1)
    """Tokens are added once per window; 0 adds them continuously, as QEMU's leaky bucket does."""

    @property
    def unit_per_second(self) -> float:
        """Units of the limit in one second of this meter's time."""
        if self.limit == "service":
            return 1.0
        return self.iops or self.bandwidth or 1.0

    def cost_s(self, *, is_write: bool, size_bytes: int) -> float:
        """Return the cost of a request, in seconds of this meter's time."""
        iops = self.iops or (self.write_iops if is_write else self.read_iops)
        bandwidth = self.bandwidth or (self.write_bandwidth if is_write else self.read_bandwidth)
        return (1 / iops if iops else 0.0) + (size_bytes / bandwidth if bandwidth else 0.0)


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Service time of requests that the limiter has admitted."""

    latency: Duration = Duration(0)
    spread: float = 0.0
    """Standard deviation of the logarithm of the latency; 0 for a constant one."""
    slots: int | None = None
    """Requests served at the same time (default: all)."""
    flush: Duration = Duration(0)
    """Latency of a flush of the write cache, with the same spread; no limiter makes it wait."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of the disk at a point in time."""

    at: Duration
    """Since the start of the scenario."""
    meters: tuple[Meter, ...] | None = None
    service: Service | None = None
    stall: Duration | None = None
    """Time in which nothing completes."""


class DiskModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A disk that the lab serves."""

    size: Size = Size(256 * 2**20)
    meters: tuple[Meter, ...] = ()
    service: Service = Service()
    changes: tuple[Change, ...] = ()
