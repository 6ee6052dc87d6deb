"""Terms that a person writes out in the configuration, rather than names from the catalogue."""

from typing import Annotated, assert_never

import msgspec

from disksla.config.fields import Bytes, BytesPerSecond, Iops, Latency, LatencyKindField
from disksla.limits import Bucket, Burst, Limits, Rates, Resource, build_limits
from disksla.schema import rate


class SumBurst(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a disk may do while credits last.

    Each resource is a token bucket: as large as its credits, filled at the promised rate, and
    drained by what the disk does. So a disk at its promised rate keeps its level.
    """

    iops: Iops | None = None
    iops_credits: Annotated[float, rate(1, 10**15)] | None = None
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")
    credit_bytes: Bytes | None = msgspec.field(default=None, name="bandwidth_credits")

    def __post_init__(self) -> None:
        """Refuse rates without credits, and credits without rates."""
        if (self.iops is None) != (self.iops_credits is None):
            raise ValueError("only one of iops and iops_credits is given; expected both")
        if (self.bytes_per_second is None) != (self.credit_bytes is None):
            raise ValueError("only one of bandwidth and bandwidth_credits is given; expected both")
        if self.iops is None and self.bytes_per_second is None:
            raise ValueError(
                "promises nothing; expected iops with iops_credits, bandwidth with"
                " bandwidth_credits, or all four"
            )


class _CustomTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="budget"):
    latency_s: Latency | None = msgspec.field(default=None, name="latency")
    latency_kind: LatencyKindField | None = None
    """`guaranteed` unless told otherwise."""


class SumTerms(_CustomTerms, frozen=True, tag="sum", kw_only=True):
    """One budget that reads and writes share one for one."""

    iops: Iops | None = None
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")
    burst: SumBurst | None = None

    def __post_init__(self) -> None:
        """Refuse what promises nothing, and a burst that is not above the promise."""
        _check(self, self.iops, self.bytes_per_second)
        if self.burst is None:
            return
        for key, base, peak in (
            ("iops", self.iops, self.burst.iops),
            ("bandwidth", self.bytes_per_second, self.burst.bytes_per_second),
        ):
            if peak is not None and (base is None or peak <= base):
                raise ValueError(
                    f"burst.{key} is not above {key}; expected both, the burst higher"
                )


class SeparateTerms(_CustomTerms, frozen=True, tag="separate", kw_only=True):
    """Reads and writes have a budget each."""

    read_iops: Iops | None = None
    write_iops: Iops | None = None
    read_bytes_per_second: BytesPerSecond | None = msgspec.field(
        default=None, name="read_bandwidth"
    )
    write_bytes_per_second: BytesPerSecond | None = msgspec.field(
        default=None, name="write_bandwidth"
    )

    def __post_init__(self) -> None:
        """Refuse what promises nothing."""
        _check(
            self,
            self.read_iops,
            self.write_iops,
            self.read_bytes_per_second,
            self.write_bytes_per_second,
        )


class TimeSharedTerms(SeparateTerms, frozen=True, tag="time_shared"):
    """Reads and writes share the disk's time: r/R + w/W <= 1."""


CustomTerms = SumTerms | SeparateTerms | TimeSharedTerms


def custom_limits(contract: CustomTerms) -> Limits:
    """Give the limits that a contract states; they do not depend on the size of the disk."""
    latency_kind = contract.latency_kind or "guaranteed"
    kind = latency_kind if contract.latency_s is not None else None
    match contract:
        case SumTerms():
            rates = _shared(contract.iops, contract.bytes_per_second)
            return build_limits(rates, "sum", contract.latency_s, kind, _burst(contract))
        case TimeSharedTerms():
            return build_limits(_rates(contract), "time_shared", contract.latency_s, kind)
        case SeparateTerms():
            return build_limits(_rates(contract), "separate", contract.latency_s, kind)
        case _:
            assert_never(contract)


def _check(contract: _CustomTerms, *rates: float | None) -> None:
    if all(rate is None for rate in rates):
        raise ValueError("promises no rate; expected at least one rate of IOPS or bandwidth")
    if contract.latency_kind is not None and contract.latency_s is None:
        raise ValueError("latency_kind is given without latency; expected both")


def _rates(contract: SeparateTerms) -> Rates:
    return Rates(
        contract.read_iops,
        contract.write_iops,
        contract.read_bytes_per_second,
        contract.write_bytes_per_second,
    )


def _burst(contract: SumTerms) -> Burst | None:
    burst = contract.burst
    if burst is None:
        return None
    amounts: tuple[tuple[Resource, float | None, float | None, float | None], ...] = (
        ("iops", burst.iops_credits, contract.iops, burst.iops),
        ("bytes", burst.credit_bytes, contract.bytes_per_second, burst.bytes_per_second),
    )
    return Burst(
        _shared(burst.iops, burst.bytes_per_second),
        tuple(
            Bucket(resource, capacity, base, base, peak)
            for resource, capacity, base, peak in amounts
            if capacity is not None and base is not None and peak is not None
        ),
    )


def _shared(iops: float | None, bytes_per_second: float | None) -> Rates:
    return Rates(iops, iops, bytes_per_second, bytes_per_second)
