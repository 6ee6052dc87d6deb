"""What a test at full speed takes of a disk's promise and of its burst credits."""

import math
from collections.abc import Iterator

from disksla.credits import estimated_drain
from disksla.limits import Bucket, Limits
from disksla.units import format_bandwidth, format_count, format_duration


def cost_warnings(limits: Limits, seconds: float) -> Iterator[str]:
    """Say, in sentences, what running at full speed for so long takes; nothing if none is sold."""
    rates = limits.rates
    iops = max(rates.read_iops or 0.0, rates.write_iops or 0.0)
    bandwidth = max(rates.read_bytes_per_second or 0.0, rates.write_bytes_per_second or 0.0)
    promised = [
        *([f"{format_count(iops)} IOPS"] if iops else []),
        *([format_bandwidth(bandwidth)] if bandwidth else []),
    ]
    if promised:
        yield (
            f"It takes all that the disk is sold with ({', '.join(promised)}) for"
            f" {format_duration(seconds)}: whatever else uses the disk will wait."
        )
    for bucket in limits.buckets:
        empty_s = _empty_s(bucket)
        refill = format_duration(bucket.capacity / bucket.fill_per_second)
        if empty_s <= seconds:
            yield (
                f"Its burst credits are gone after {format_duration(empty_s)} at most: cells"
                f" before show the burst, cells after the base; a refill takes {refill}."
            )
        else:
            yield (
                f"It takes up to {seconds / empty_s:.0%} of the burst credits; a full refill takes"
                f" {refill}."
            )


def _empty_s(bucket: Bucket) -> float:
    """Give the time in which a full bucket empties at the peak; infinite if it refills as fast."""
    spent_per_second = (
        estimated_drain(bucket, 1.0, bucket.peak_per_second) - bucket.fill_per_second
    )
    return bucket.capacity / spent_per_second if spent_per_second > 0 else math.inf
