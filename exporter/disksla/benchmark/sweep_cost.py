"""What a benchmark at full speed uses of the limits and the burst credits of a disk."""

import math
from collections.abc import Iterator

from disksla.credits import estimated_drain
from disksla.limits import Bucket, Limits
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
        empty_s = _empty_s(bucket)
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


def _empty_s(bucket: Bucket) -> float:
    """Return the seconds until a full bucket is empty at its peak rate; inf if it never is."""
    spent_per_second = (
        estimated_drain(bucket, 1.0, bucket.peak_per_second) - bucket.fill_per_second
    )
    return bucket.capacity / spent_per_second if spent_per_second > 0 else math.inf
