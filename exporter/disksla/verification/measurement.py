"""One measurement with the conditions under which it ran: by disksla, or imported.

The same record serves for what disksla measured itself and for results of fio or DiskSpd that
were made elsewhere.
"""

import msgspec

from disksla.fio import DirectionResult, FioJob, FioResult, LatencyBin, Pattern, quantile_s

SHOWN_SHARES = (0.5, 0.9, 0.99, 0.999)
"""The percentiles of latency in reports, as shares of the requests."""


class Percentile(msgspec.Struct, frozen=True):
    """The latency within which a share of the requests completed."""

    share: float
    seconds: float


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one kind of request."""

    name: str
    """Name of the job, as the tool that ran it reports it."""
    tool: str
    pattern: Pattern
    request_bytes: int
    inflight: int
    """Requests in flight of all workers together."""
    measured: DirectionResult
    percentiles: tuple[Percentile, ...] = ()
    rate_iops: float | None = None
    """The requested rate; None for as many requests as possible."""
    is_direct: bool = True
    """Whether the requests bypassed the cache of the operating system."""


def measurement_of(job: FioJob, result: FioResult) -> Measurement:
    """Return the measurement of a job that only reads or only writes."""
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
    """Return the percentiles for reports; none without requests."""
    if not any(each.requests for each in bins):
        return ()
    return tuple(Percentile(share, quantile_s(bins, share)) for share in SHOWN_SHARES)
