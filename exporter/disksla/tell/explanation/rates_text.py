"""Rates, limits and times in sentences."""

from disksla.base.units import format_bandwidth, format_count
from disksla.promise.catalogue import Rates
from disksla.verdict.throttling import LimitKind

_MUCH_MORE = 1.01
_WHOLE_FROM_S = 10.0
"""Seconds are shown without a fraction from here on."""


def describe_rates(rates: Rates) -> str:
    """Return all limits of the rates as text."""
    kinds: tuple[LimitKind, ...] = ("iops", "bandwidth")
    present = (limit for limit in kinds if read_and_write(rates, limit) != (None, None))
    return " and ".join(limit_text(rates, limit) for limit in present)


def limit_text(rates: Rates, limit: LimitKind) -> str:
    """Return one limit as text, with a single number if reads and writes have the same."""
    read, write = read_and_write(rates, limit)
    formatted = format_bandwidth if limit == "bandwidth" else iops_text
    if read == write or write is None or read is None:
        rate = read if read is not None else write
        kind = "" if read == write else " for reads" if write is None else " for writes"
        return f"{formatted(rate or 0.0)}{kind}"
    return f"{formatted(read)} for reads and {formatted(write)} for writes"


def read_and_write(rates: Rates, limit: LimitKind) -> tuple[float | None, float | None]:
    """Return the limits of reads and of writes."""
    if limit == "bandwidth":
        return rates.read_bytes_per_second, rates.write_bytes_per_second
    return rates.read_iops, rates.write_iops


def seconds_text(seconds: float) -> str:
    """Return seconds with two digits at least."""
    return f"{seconds:.0f}" if seconds >= _WHOLE_FROM_S else f"{seconds:.2g}"


def iops_text(rate: float, most: float = 0.0) -> str:
    """Return a rate of requests, as a range if it may be more by a hundredth."""
    more = f" to {format_count(most)}" if most > _MUCH_MORE * rate else ""
    return f"{format_count(rate)}{more} IOPS"
