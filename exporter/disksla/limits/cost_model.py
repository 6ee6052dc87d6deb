"""What requests cost of a disk's limits, and the load that a window puts on them."""

import math
from itertools import product
from typing import Annotated, Literal, NamedTuple

import msgspec

LimitName = Literal["iops", "bandwidth", "service"]

_WholeBytes = Annotated[int, msgspec.Meta(gt=0)]
_CONSTANT_MAXIMUM = 2**64 - 1
_NEGLIGIBLE_S = 1e-5
"""Below this the block store takes the difference of two periods to be nothing."""


class PerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="per-request"):
    """One request is one I/O, whatever its size."""


class Chunks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="chunks"):
    """A request is as many I/Os as it has chunks."""

    chunk_bytes: _WholeBytes


class Additive(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="additive"):
    """A request takes time for itself and time for its bytes, from one budget.

    What is published is 1/IOPS + n/bandwidth; what is enforced has other constants, with which
    requests of `small_bytes` run at exactly the IOPS limit and those of `large_bytes` at exactly
    the bandwidth limit.
    """

    small_bytes: _WholeBytes
    large_bytes: _WholeBytes

    def __post_init__(self) -> None:
        """Refuse sizes that leave nothing to solve."""
        if self.small_bytes >= self.large_bytes:
            raise ValueError("an additive cost needs small_bytes < large_bytes")


CostModel = PerRequest | Chunks | Additive


class DirectionLimits(NamedTuple):
    """The two limits on reads, or on writes; None where there is none."""

    iops: float | None
    bytes_per_second: float | None


class RequestCost(NamedTuple):
    """What one request costs under an additive law, in seconds of service."""

    request_s: float
    byte_s: float


class Charge(msgspec.Struct, frozen=True):
    """What requests use of one limit, in seconds of that limit's time.

    Every law is a set of charges. A limit of 300 IOPS charges 1/300 s per request; a budget that
    reads and writes share has one charge for both; an additive law (1/C1 + n/C2) has one charge
    for requests and bytes together, and its limit is called `service`.
    """

    limit: LimitName
    read_s: float = 0.0
    """Seconds per read request."""
    write_s: float = 0.0
    """Seconds per write request."""
    read_byte_s: float = 0.0
    """Seconds per byte read."""
    written_byte_s: float = 0.0
    """Seconds per byte written."""


def load_ratio(
    charges: tuple[Charge, ...],
    seconds: float,
    reads: float,
    writes: float,
    read_bytes: float,
    written_bytes: float,
) -> float | None:
    """Give the share of the limits that requests used within `seconds`; 1.0 is the limit.

    The fullest of the limits counts: separate limits hold a disk one at a time. None where
    nothing is promised.
    """
    if not charges:
        return None
    fullest_s = 0.0
    for charge in charges:
        used_s = (
            charge.read_s * reads
            + charge.write_s * writes
            + charge.read_byte_s * read_bytes
            + charge.written_byte_s * written_bytes
        )
        if used_s > fullest_s:  # noqa: PLR1730 -- twice as fast as max(), ten times a second
            fullest_s = used_s
    return fullest_s / seconds


def separate_charges(read: DirectionLimits, write: DirectionLimits) -> tuple[Charge, ...]:
    """Charge each limit on its own: reads leave to writes what they had."""
    return _binding(
        Charge("iops", read_s=_period_s(read.iops)),
        Charge("iops", write_s=_period_s(write.iops)),
        Charge("bandwidth", read_byte_s=_period_s(read.bytes_per_second)),
        Charge("bandwidth", written_byte_s=_period_s(write.bytes_per_second)),
    )


def shared_charges(read: DirectionLimits, write: DirectionLimits) -> tuple[Charge, ...]:
    """Charge reads and writes to one budget: r/R + w/W <= 1 for requests, and so for bytes.

    A limit on the sum of both is the case R = W.
    """
    return _binding(
        Charge("iops", read_s=_period_s(read.iops), write_s=_period_s(write.iops)),
        Charge(
            "bandwidth",
            read_byte_s=_period_s(read.bytes_per_second),
            written_byte_s=_period_s(write.bytes_per_second),
        ),
    )


def service_charges(read: RequestCost, write: RequestCost) -> tuple[Charge, ...]:
    """Charge requests and bytes, read or written, to one budget of time."""
    return _binding(Charge("service", read.request_s, write.request_s, read.byte_s, write.byte_s))


def published_cost(allowance: DirectionLimits) -> RequestCost:
    """Give the price of the formula in Yandex Cloud's documents, 1/IOPS + n/bandwidth.

    Source: https://yandex.cloud/en/docs/compute/concepts/storage-read-write (formula image).
    """
    return RequestCost(_period_s(allowance.iops), _period_s(allowance.bytes_per_second))


def enforced_cost(allowance: DirectionLimits, law: Additive) -> RequestCost:
    """Give the price that the block store behind Yandex Cloud takes: 1/C1 + n/C2."""
    if allowance.iops is None:
        return published_cost(allowance)
    requests_per_second, bytes_per_second = service_constants(
        allowance.iops, allowance.bytes_per_second or 0.0, law
    )
    return RequestCost(1 / requests_per_second, 1 / bytes_per_second if bytes_per_second else 0.0)


def service_constants(iops: float, bytes_per_second: float, law: Additive) -> tuple[int, int]:
    """Give C1 in requests and C2 in bytes per second, as whole as the block store has them.

    They solve 1/C1 + k/C2 = 1/I and 1/C1 + M/C2 = M/B for the limits I and B, with k and M the
    small and the large request of `law`. Without a bandwidth (0) there is no C2, given as 0; a
    bandwidth that k-byte requests at I alone would exceed makes C1 fall back to I.
    Source: https://github.com/ydb-platform/nbs, the volume throttling policy.
    """
    if not bytes_per_second:
        return math.floor(iops), 0
    scale = law.large_bytes / law.small_bytes
    request_period_s = scale / iops - law.large_bytes / bytes_per_second
    byte_period_s = law.large_bytes / bytes_per_second - 1 / iops
    if request_period_s < _NEGLIGIBLE_S:
        c1 = math.floor(iops)
    else:
        c1 = max(math.floor((scale - 1) / request_period_s), 1)
    if byte_period_s < _NEGLIGIBLE_S:
        c2 = _CONSTANT_MAXIMUM
    else:
        c2 = math.floor((law.large_bytes - law.small_bytes) / byte_period_s)
        c2 = min(max(c2, 1), _CONSTANT_MAXIMUM)
    return c1, c2


def chunked(charges: tuple[Charge, ...], chunk_bytes: int) -> tuple[Charge, ...]:
    """Count a request as the chunks it is made of.

    Of a window only totals are known, so its chunks are taken as max(requests, bytes / chunk),
    for reads and for writes. A maximum is more charges: each way of counting is one of its own.
    """
    return tuple(
        dict.fromkeys(
            way
            for charge in charges
            for way in (
                _ways_to_count(charge, chunk_bytes) if charge.limit == "iops" else [charge]
            )
        )
    )


def _ways_to_count(charge: Charge, chunk_bytes: int) -> list[Charge]:
    reads = ((charge.read_s, 0.0), (0.0, charge.read_s / chunk_bytes))
    writes = ((charge.write_s, 0.0), (0.0, charge.write_s / chunk_bytes))
    return [
        Charge("iops", read_s, write_s, read_byte_s, written_byte_s)
        for (read_s, read_byte_s), (write_s, written_byte_s) in product(reads, writes)
    ]


def _binding(*charges: Charge) -> tuple[Charge, ...]:
    """Leave out what charges nothing."""
    return tuple(charge for charge in charges if charge != Charge(charge.limit))


def _period_s(per_second: float | None) -> float:
    return 0.0 if per_second is None else 1 / per_second
