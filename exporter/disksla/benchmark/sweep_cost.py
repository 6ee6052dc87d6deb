"""What a benchmark at full speed uses of the limits and the burst credits of a disk."""

from collections.abc import Iterator

from disksla.limits import Limits
from disksla.units import format_bandwidth, format_count, format_duration


def cost_warnings(limits: Limits, seconds: float) -> Iterator[str]:
    """Yield what running at full speed for so long costs, as sentences; none without limits."""
    rates = limits.rates
    iops = max(rates.read_iops or 0.0, rates.write_iops or 0.0)
    bandwidth = max(rates.read_bytes_per_second or 0.0, rates.write_bytes_per_second or 0.0)
    used = [
        *([f"{format_count(iops)} IOPS"] if iops else []),
        *([format_bandwidth(bandwidth)] if bandwidth else []),
    ]
    if used:
        yield (
            f"The sweep uses the whole limit of the disk ({', '.join(used)}) for"
            f" {format_duration(seconds)}; other programs that use the disk will slow down."
        )
    for bucket in limits.buckets:
        empty_s = bucket.seconds
        refill = format_duration(bucket.capacity / bucket.fill_per_second)
        if empty_s <= seconds:
            yield (
                f"The burst credits are used up after {format_duration(empty_s)} at most: cells"
                f" before that show the burst rate, cells after it the baseline. A full refill"
                f" takes {refill}."
            )
        else:
            yield (
                f"The sweep uses up to {seconds / empty_s:.0%} of the burst credits; a full refill"
                f" takes {refill}."
            )
