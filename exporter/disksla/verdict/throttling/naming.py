"""Which limit a rate is that of."""

from disksla.promise.catalogue import Charge, Limits
from disksla.verdict.interval import Interval, load_of
from disksla.verdict.throttling.throttle import LimitKind, Throttle, ThrottleLevel


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
