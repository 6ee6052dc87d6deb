"""One measurement as it was really made: under which conditions, and what came out.

The same record for what disksla ran itself and for what somebody else ran with fio or DiskSpd.
"""

import msgspec

from disksla.fio import DirectionResult, FioJob, FioResult, LatencyBin, Pattern, quantile_s

SHOWN_SHARES = (0.5, 0.9, 0.99, 0.999)
"""Of the requests: the percentiles of latency that reports show."""


class Percentile(msgspec.Struct, frozen=True):
    """So large a share of the requests took no longer."""

    share: float
    seconds: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one kind of request."""

    name: str
    """What whoever ran it called it."""
    tool: str
    pattern: Pattern
    request_bytes: int
    inflight: int
    """Requests in flight, of all workers together."""
    measured: DirectionResult
    percentiles: tuple[Percentile, ...] = ()
    rate_iops: float | None = None
    """The rate that was asked for; None for as many as go."""
    is_direct: bool = True
    """Past the cache of the operating system."""


def measurement_of(job: FioJob, result: FioResult) -> Measurement:
    """Give what fio measured of a job that only reads or only writes."""
    measured = result.write if job.writes else result.read
    return Measurement(
        name=job.name,
        tool=result.version,
        pattern=job.pattern,
        request_bytes=job.request_bytes,
        inflight=job.queue_depth * job.workers,
        measured=measured,
        percentiles=percentiles_of(measured.bins),
        rate_iops=job.rate_iops,
    )


def percentiles_of(bins: tuple[LatencyBin, ...]) -> tuple[Percentile, ...]:
    """Give the percentiles that reports show; none where there are no bins."""
    if not any(each.requests for each in bins):
        return ()
    return tuple(Percentile(share, quantile_s(bins, share)) for share in SHOWN_SHARES)
