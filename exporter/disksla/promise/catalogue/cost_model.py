"""Cost model: what a request uses of a disk's limits, and the load of a window."""

import math
from itertools import product
from typing import Annotated, Literal

import msgspec

from disksla.base.counts import Counts
from disksla.base.schema import Bytes, BytesPerSecond, Number, whole_number

LimitName = Literal["iops", "bandwidth", "service"]

_CONSTANT_MAXIMUM = 2**64 - 1
_NEGLIGIBLE_S = 1e-5  # below this, the block store treats the difference of two periods as zero


class PerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="per-request"):
    """A request of any size is one I/O."""


class Chunks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="chunks"):
    """A request is one I/O per chunk."""

    chunk_bytes: Bytes


class Additive(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="additive"):
    """A request costs a fixed time and a time per byte, both from one budget.

    The published formula is 1/IOPS + n/bandwidth. The enforced one has other constants, with
    which requests of `small_bytes` run at exactly the IOPS limit and requests of `large_bytes` at
    exactly the bandwidth limit.
    """

    small_bytes: Bytes
    large_bytes: Bytes

    def __post_init__(self) -> None:
        """Raise ValueError if the sizes do not determine the constants."""
        if self.small_bytes >= self.large_bytes:
            raise ValueError("found sizes out of order; expected small_bytes < large_bytes")


class Metered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="metered"):
    """A request uses bandwidth and credits by its metered bytes, at least a number of them.

    A write is metered whole, of a read one byte in `read_divisor`. The limit of writes is in
    metered bytes, that of reads in bytes that are read.
    """

    least_bytes: Bytes
    read_divisor: Annotated[int, whole_number(1, 1000)] = 1

    def metered_bytes(self, work: "Work") -> tuple[float, float]:
        """Return the least and the most metered bytes of requests whose sizes may differ."""
        parts = (
            (work.read_bytes / self.read_divisor, work.reads * self.least_bytes),
            (work.written_bytes, work.writes * self.least_bytes),
        )
        return sum(max(part) for part in parts), sum(sum(part) for part in parts)


CostModel = PerRequest | Chunks | Additive | Metered


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rates in requests and bytes per second; None where there is no limit."""

    read_iops: Number | None = None
    write_iops: Number | None = None
    read_bytes_per_second: BytesPerSecond | None = None
    write_bytes_per_second: BytesPerSecond | None = None


class Charge(msgspec.Struct, frozen=True):
    """What requests use of one limit, in seconds of that limit.

    Every cost model is a set of charges. A limit of 300 IOPS charges 1/300 s per request; a budget
    shared by reads and writes has one charge for both; an additive cost (1/C1 + n/C2) has one
    charge for requests and bytes together, and its limit is named `service`.
    """

    limit: LimitName
    read_s: float = 0.0  # seconds per read request
    write_s: float = 0.0  # seconds per write request
    read_byte_s: float = 0.0  # seconds per byte read
    written_byte_s: float = 0.0  # seconds per byte written


class Work(Counts, frozen=True, gc=False):
    """Requests and bytes, of which the use of limits is asked."""

    def cost_s(self, charge: Charge) -> float:
        """Return the seconds of a limit that it uses."""
        return self.load((charge,), 1.0) or 0.0

    def load(self, charges: tuple[Charge, ...], seconds: float) -> float | None:
        """Return the share of the limits used, 1.0 at the limit; None without limits."""
        return load_ratio(
            charges,
            seconds,
            reads=self.reads,
            writes=self.writes,
            read_bytes=self.read_bytes,
            written_bytes=self.written_bytes,
        )


def load_ratio(
    charges: tuple[Charge, ...],
    seconds: float,
    reads: float,
    writes: float,
    read_bytes: float,
    written_bytes: float,
) -> float | None:
    """Return the load: the share of the limits that requests used in `seconds`; 1.0 is the limit.

    With several limits, the most used one counts. None without limits.
    """
    if not charges:
        return None
    most_used_s = 0.0
    for charge in charges:
        used_s = (
            charge.read_s * reads
            + charge.write_s * writes
            + charge.read_byte_s * read_bytes
            + charge.written_byte_s * written_bytes
        )
        if used_s > most_used_s:  # noqa: PLR1730 -- twice as fast as max(), ten times a second
            most_used_s = used_s
    return most_used_s / seconds


def separate_charges(rates: Rates) -> tuple[Charge, ...]:
    """Return a charge per limit: reads do not use the limits of writes."""
    return _binding(
        Charge("iops", read_s=_period_s(rates.read_iops)),
        Charge("iops", write_s=_period_s(rates.write_iops)),
        Charge("bandwidth", read_byte_s=_period_s(rates.read_bytes_per_second)),
        Charge("bandwidth", written_byte_s=_period_s(rates.write_bytes_per_second)),
    )


def shared_charges(rates: Rates) -> tuple[Charge, ...]:
    """Return charges to one budget of reads and writes: r/R + w/W <= 1, for requests and bytes.

    A limit on the sum of both is the case R = W.
    """
    return _binding(
        Charge("iops", read_s=_period_s(rates.read_iops), write_s=_period_s(rates.write_iops)),
        Charge(
            "bandwidth",
            read_byte_s=_period_s(rates.read_bytes_per_second),
            written_byte_s=_period_s(rates.write_bytes_per_second),
        ),
    )


def published_charges(rates: Rates) -> tuple[Charge, ...]:
    """Return the charge to one budget of time by Yandex Cloud's documents, 1/IOPS + n/bandwidth.

    Source: https://yandex.cloud/en/docs/compute/concepts/storage-read-write (formula image).
    """
    return _binding(Charge("service", *map(_period_s, msgspec.structs.astuple(rates))))


def enforced_charges(rates: Rates, cost: Additive) -> tuple[Charge, ...]:
    """Return the charge to one budget of time by the block store of Yandex Cloud, 1/C1 + n/C2."""
    read_s, read_byte_s = _enforced_s(rates.read_iops, rates.read_bytes_per_second, cost)
    write_s, written_byte_s = _enforced_s(rates.write_iops, rates.write_bytes_per_second, cost)
    return _binding(Charge("service", read_s, write_s, read_byte_s, written_byte_s))


def _enforced_s(
    iops: float | None, bytes_per_second: float | None, cost: Additive
) -> tuple[float, float]:
    """Return the seconds that a request costs, and those of a byte."""
    if iops is None:
        return 0.0, _period_s(bytes_per_second)
    c1, c2 = service_constants(iops, bytes_per_second or 0.0, cost)
    return 1 / c1, _period_s(c2 or None)


def service_constants(iops: float, bytes_per_second: float, cost: Additive) -> tuple[int, int]:
    """Return C1 in requests and C2 in bytes per second, rounded down as in the block store.

    They solve 1/C1 + k/C2 = 1/I and 1/C1 + M/C2 = M/B for the limits I and B, with k and M the
    small and the large request of `cost`. Without a bandwidth limit (0) C2 is 0. If k-byte
    requests at the rate I already exceed B, C1 is I.
    Source: https://github.com/ydb-platform/nbs, the volume throttling policy.
    """
    if not bytes_per_second:
        return math.floor(iops), 0
    scale = cost.large_bytes / cost.small_bytes
    request_period_s = scale / iops - cost.large_bytes / bytes_per_second
    byte_period_s = cost.large_bytes / bytes_per_second - 1 / iops
    if request_period_s < _NEGLIGIBLE_S:
        c1 = math.floor(iops)
    else:
        c1 = max(math.floor((scale - 1) / request_period_s), 1)
    if byte_period_s < _NEGLIGIBLE_S:
        c2 = _CONSTANT_MAXIMUM
    else:
        c2 = math.floor((cost.large_bytes - cost.small_bytes) / byte_period_s)
        c2 = min(max(c2, 1), _CONSTANT_MAXIMUM)
    return c1, c2


def chunked(charges: tuple[Charge, ...], chunk_bytes: int) -> tuple[Charge, ...]:
    """Return charges that count a request as its chunks.

    Only the totals of a window are known, so its chunks are max(requests, bytes / chunk), for
    reads and for writes. A maximum takes several charges, one for each way to count.
    """
    return tuple(
        dict.fromkeys(
            counted
            for charge in charges
            for counted in (
                _ways_to_count(charge, chunk_bytes) if charge.limit == "iops" else [charge]
            )
        )
    )


def metered(charges: tuple[Charge, ...], cost: Metered) -> tuple[Charge, ...]:
    """Return charges of bandwidth that count at least some bytes of each request.

    Only the totals of a window are known, so its metered bytes are the greater of its bytes and
    of the least bytes of its requests, for reads and for writes. They are at least that many.
    """
    return tuple(
        counted
        for charge in charges
        for counted in (_ways_to_meter(charge, cost) if charge.limit == "bandwidth" else [charge])
    )


def _ways_to_meter(charge: Charge, cost: Metered) -> list[Charge]:
    read_s = charge.read_byte_s * cost.read_divisor * cost.least_bytes
    write_s = charge.written_byte_s * cost.least_bytes
    return [
        Charge("bandwidth", each_read_s, each_write_s, read_byte_s, written_byte_s)
        for each_read_s, read_byte_s in dict.fromkeys(((0.0, charge.read_byte_s), (read_s, 0.0)))
        for each_write_s, written_byte_s in dict.fromkeys(
            ((0.0, charge.written_byte_s), (write_s, 0.0))
        )
    ]


def _ways_to_count(charge: Charge, chunk_bytes: int) -> list[Charge]:
    reads = ((charge.read_s, 0.0), (0.0, charge.read_s / chunk_bytes))
    writes = ((charge.write_s, 0.0), (0.0, charge.write_s / chunk_bytes))
    return [
        Charge("iops", read_s, write_s, read_byte_s, written_byte_s)
        for (read_s, read_byte_s), (write_s, written_byte_s) in product(reads, writes)
    ]


def _binding(*charges: Charge) -> tuple[Charge, ...]:
    """Return the charges of limits that exist."""
    return tuple(charge for charge in charges if charge != Charge(charge.limit))


def _period_s(per_second: float | None) -> float:
    return 0.0 if per_second is None else 1 / per_second
