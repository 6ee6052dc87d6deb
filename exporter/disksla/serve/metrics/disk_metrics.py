"""Metrics of each disk: counters, latency, verdicts and credits; what it is and its limits.

The fields of /proc/diskstats are documented in Documentation/admin-guide/iostats.rst of the
kernel.
"""

from collections.abc import Callable, Mapping

from disksla.kernel.nfs import MountReading
from disksla.kernel.procfs import SECTOR_BYTES
from disksla.promise.configuration import Profile
from disksla.serve.metrics.identity_metrics import IDENTITY_METRICS, LIMIT_METRICS
from disksla.serve.metrics.metric import (
    SHORT_LATENCY_BOUNDS_S,
    Buckets,
    Metric,
    Value,
    credits_rows,
    full,
    keyed,
    lean,
)
from disksla.state.pipeline import DiskSnapshot
from disksla.verdict.throttling import LIMIT_KINDS, MACHINE_LIMITS, VERDICTS


def _total(counter: str, times: int = 1, per: int = 1) -> Callable[[DiskSnapshot], Value]:
    """Return a function for one kernel counter in base units.

    It multiplies and divides integers, so 300 ms are 0.3 s and not 0.30000004 s.
    """

    def value(snapshot: DiskSnapshot) -> Value:
        count: int | None = getattr(snapshot.counters, counter, None)
        return None if count is None else count * times / per

    return value


def _ceiling(field: str) -> Callable[[DiskSnapshot], Value]:
    """Return a function for what the disk did when it was throttled last."""
    return lambda snapshot: getattr(snapshot.ceiling, field, None)


def _mount(
    values: Callable[[MountReading], Mapping[str, float]],
) -> Callable[[DiskSnapshot], Value]:
    """Return a function for what the kernel counts of an NFS mount."""
    return lambda snapshot: None if snapshot.mount is None else keyed(values(snapshot.mount))


def _if_sampled(value: Callable[[DiskSnapshot], Value]) -> Callable[[DiskSnapshot], Value]:
    """Return a function that has no value before the first sample, where totals would be 0."""
    return lambda snapshot: None if snapshot.counters is None else value(snapshot)


def _peak(field: str) -> Callable[[DiskSnapshot], Value]:
    """Return a function for a highest rate."""
    return _if_sampled(lambda snapshot: float(getattr(snapshot.peak, field)))


def _throttled_s(snapshot: DiskSnapshot) -> Value:
    by_limit = zip(LIMIT_KINDS, snapshot.verdict_totals.throttled_s, strict=True)
    of_machine = MACHINE_LIMITS.values()
    return keyed(
        {
            limit: seconds
            for limit, seconds in by_limit
            if seconds or snapshot.groups or limit not in of_machine
        }
    )


def _pressure(snapshot: DiskSnapshot) -> Value:
    host = snapshot.verdict_totals.host
    if host.pressure_some_s is None or host.pressure_full_s is None:
        return None
    return {("some",): host.pressure_some_s, ("full",): host.pressure_full_s}


_RARE = "Absent while it is 0, except in the profile full."
_PEAK = "in any sampling window within the last 60 s."
_LATENCIES: Mapping[Profile, Buckets] = {"default": Buckets(SHORT_LATENCY_BOUNDS_S)}
_LOADS: Mapping[Profile, Buckets] = {
    "lean": Buckets((0.8,), has_sum=False),
    "default": Buckets((0.8, 0.95)),
}
"""DiskLatencyAbovePromise needs the first bound, the dashboard the others."""

DISK_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    *IDENTITY_METRICS,
    lean("disksla_reads_completed_total", "Reads completed.", _total("reads")),
    lean(
        "disksla_writes_completed_total",
        "Writes completed. On disks with a write-back cache the kernel counts empty flushes, too.",
        _total("writes"),
    ),
    Metric(
        "disksla_data_writes_total",
        "Writes completed without empty flushes, counted by performance events. They need a"
        " permission (docs/service.md) and a disk with a write-back cache.",
        lambda snapshot: snapshot.data_writes,
    ),
    lean("disksla_read_bytes_total", "Bytes read.", _total("read_sectors", times=SECTOR_BYTES)),
    lean(
        "disksla_written_bytes_total",
        "Bytes written.",
        _total("written_sectors", times=SECTOR_BYTES),
    ),
    lean(
        "disksla_read_time_seconds_total",
        "Seconds that completed reads took, queueing included, summed over requests.",
        _total("read_ms", per=1000),
    ),
    lean(
        "disksla_write_time_seconds_total",
        "Seconds that completed writes took, queueing included, summed over requests.",
        _total("write_ms", per=1000),
    ),
    Metric(
        "disksla_nfs_operations_total",
        "Operations of an NFS mount besides reads and writes, since it was mounted. commit makes"
        " unstable writes durable; other is metadata, locks and sessions.",
        _mount(lambda mount: {"commit": mount.commits, "other": mount.others}),
        ("operation",),
    ),
    Metric(
        "disksla_nfs_wait_seconds_total",
        "Seconds of reads and writes of an NFS mount by where they waited, summed over requests"
        " since it was mounted. client (QUEUE of mountstats) is for a slot of the session and for"
        " the connection, server (RTT) for the network and the server.",
        _mount(lambda mount: {"client": mount.queue_ms / 1000, "server": mount.rtt_ms / 1000}),
        ("place",),
    ),
    Metric(
        "disksla_flushes_completed_total",
        f"Cache flushes completed (Linux 5.5). {_RARE}",
        _total("flushes"),
        is_rare=True,
    ),
    Metric(
        "disksla_flush_time_seconds_total",
        f"Seconds that completed cache flushes took, summed over requests (Linux 5.5). {_RARE}",
        _total("flush_ms", per=1000),
        is_rare=True,
    ),
    full(
        "disksla_discards_completed_total",
        "Discards (trims) completed (Linux 4.18).",
        _total("discards"),
    ),
    full(
        "disksla_discarded_bytes_total",
        "Bytes discarded (Linux 4.18).",
        _total("discarded_sectors", times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_inflight",
        "Reads and writes sent to the disk and not completed, at the last sample.",
        lambda snapshot: snapshot.inflight,
    ),
    Metric(
        "disksla_read_latency_seconds",
        "Seconds that reads took, queueing included, as means over sampling windows.",
        _if_sampled(lambda snapshot: snapshot.totals.read_latency.histogram),
        buckets=_LATENCIES,
        is_histogram=True,
    ),
    Metric(
        "disksla_write_latency_seconds",
        "Seconds that writes took, queueing included, without flushes, as means over sampling"
        " windows.",
        _if_sampled(lambda snapshot: snapshot.totals.write_latency.histogram),
        buckets=_LATENCIES,
        is_histogram=True,
    ),
    lean(
        "disksla_window_load_ratio",
        "Load of each sampling window: the share of the promised limits that its requests used, 1"
        " at the limit. Absent if the terms promise nothing.",
        _if_sampled(lambda snapshot: snapshot.load),
        buckets=_LOADS,
        is_histogram=True,
    ),
    lean(
        "disksla_verdict_seconds_total",
        "Seconds by verdict: idle, unproven (not tested), met, throttled, below (less than"
        " promised) or stalled (hung). docs/glossary.md explains them. A window that is throttled"
        " in part counts in part. A verdict may be decided up to two seconds late.",
        _if_sampled(
            lambda snapshot: keyed(
                dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
            )
        ),
        ("verdict",),
    ),
    lean(
        "disksla_throttled_seconds_total",
        "Seconds in which requests waited for a limiter, by limit. iops and bandwidth are of the"
        " disk, machine_iops and machine_bandwidth of the machine over several disks; unknown is a"
        " limiter whose rate no limit explains. Where the provider counts how long each limit"
        " throttles, it is that count.",
        _if_sampled(_throttled_s),
        ("limit",),
    ),
    lean(
        "disksla_slow_seconds_total",
        "Seconds in which requests took longer than promised or usual, and neither a limiter nor"
        " a hung disk was the reason. They are among the seconds of other verdicts. promise:"
        " above 1.2 times the latency of the terms, at a load of up to 0.8, with requests of up"
        " to 16 KiB, at most two in flight. usual: above five times what such requests of this"
        f" disk usually take. {_RARE}",
        _if_sampled(
            lambda snapshot: keyed(
                {"promise": snapshot.slow.above_promise_s, "usual": snapshot.slow.above_usual_s}
            )
        ),
        ("than",),
        is_rare=True,
    ),
    Metric(
        "disksla_usual_latency_seconds",
        "Seconds that a request of up to 16 KiB usually takes alone, while nothing is throttled."
        " Absent for the first ten minutes.",
        _if_sampled(
            lambda snapshot: keyed(
                {str(each): usual for each, usual in snapshot.usual_latency_s.items()}
            )
        ),
        ("direction",),
    ),
    Metric(
        "disksla_throttle_wait_seconds_total",
        "Seconds that requests waited because of throttling, summed over requests. With 32"
        " requests waiting, it grows by 32 seconds per second.",
        _if_sampled(lambda snapshot: snapshot.verdict_totals.wait_s),
    ),
    lean(
        "disksla_throttled_iowait_seconds_total",
        "CPU seconds in iowait during throttled windows, a symptom by correlation. They are"
        " divided among the disks that are throttled. Asynchronous I/O causes almost none.",
        _if_sampled(lambda snapshot: snapshot.verdict_totals.host.iowait_s),
    ),
    lean(
        "disksla_throttled_pressure_seconds_total",
        "Seconds in which tasks of the host waited for I/O (PSI) during throttled windows, a"
        " symptom by correlation. They are divided among the disks that are throttled. some"
        " tasks, or (profile full only) all.",
        _if_sampled(_pressure),
        ("kind",),
        only_in_full=frozenset({"full"}),
    ),
    *credits_rows(
        "disksla_",
        left="Burst credits left, as an estimate between the bounds. resource is their unit: iops"
        " (I/Os), bytes, or service_seconds (seconds of service at the baseline). Of a file"
        " storage, whose other clients use them, too, it is the upper bound.",
        least="Lowest level of burst credits that the observations allow.",
        most="Highest level of burst credits that the observations allow.",
        capacity="Burst credits of a full token bucket under the terms.",
        exhaustion="Seconds until the burst credits are used up at the load of the last second."
        " +Inf while they do not decrease.",
    ),
    Metric(
        "disksla_observed_ceiling_iops",
        "Reads and writes per second at which the disk was last throttled.",
        _ceiling("last_iops"),
    ),
    Metric(
        "disksla_observed_ceiling_bytes_per_second",
        "Bytes read and written per second at which the disk was last throttled.",
        _ceiling("bytes_per_second"),
    ),
    full(
        "disksla_observed_limiter_window_seconds",
        "How often the limiter that throttled the disk last lets requests pass. Absent for a"
        " limiter without windows.",
        _ceiling("window_s"),
    ),
    Metric(
        "disksla_peak_read_iops",
        f"Highest rate of reads completed per second {_PEAK}",
        _peak("read_iops"),
    ),
    Metric(
        "disksla_peak_write_iops",
        f"Highest rate of writes completed per second {_PEAK}",
        _peak("write_iops"),
    ),
    Metric(
        "disksla_peak_read_bytes_per_second",
        f"Highest rate of bytes read per second {_PEAK}",
        _peak("read_bytes_per_second"),
    ),
    Metric(
        "disksla_peak_written_bytes_per_second",
        f"Highest rate of bytes written per second {_PEAK}",
        _peak("written_bytes_per_second"),
    ),
    *LIMIT_METRICS,
)
