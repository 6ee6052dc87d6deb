"""Metrics of each disk: counters, latency, verdicts, credits and limits.

What the fields of /proc/diskstats mean is documented in the kernel's
Documentation/admin-guide/iostats.rst.
"""

from collections.abc import Callable

from disksla.credits import CreditLevel
from disksla.disks import Disk
from disksla.limits import Rates
from disksla.metrics.metric import Labelled, Metric, Value, keyed
from disksla.pipeline import DiskSnapshot
from disksla.procfs import SECTOR_BYTES, Counters
from disksla.verdict import LIMIT_KINDS, VERDICTS


def _total(
    counter: Callable[[Counters], int | None], times: int = 1, per: int = 1
) -> Callable[[DiskSnapshot], Value]:
    """Give the value of one kernel counter in base units; division keeps 0.3 s from 0.30000004."""

    def value(snapshot: DiskSnapshot) -> Value:
        count = None if snapshot.counters is None else counter(snapshot.counters)
        return None if count is None else count * times / per

    return value


def sampled(value: Callable[[DiskSnapshot], Value]) -> Callable[[DiskSnapshot], Value]:
    """Give what samples add up to; nothing before the first, for absent is not zero."""
    return lambda snapshot: None if snapshot.counters is None else value(snapshot)


def _burst(rate: Callable[[Rates], float | None]) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Value:
        burst = snapshot.assignment.limits.burst
        return None if burst is None else rate(burst.rates)

    return value


def _disk_info(snapshot: DiskSnapshot) -> Labelled:
    disk, limits = snapshot.disk, snapshot.assignment.limits
    return {
        (
            disk.serial or "",
            disk.wwn or "",
            disk.model or "",
            snapshot.assignment.provider,
            snapshot.assignment.terms,
            limits.budget or "",
            limits.latency_kind or "",
            _yes_or_no(disk),
            ",".join(disk.mount_points),
        ): 1
    }


def _credits(value: Callable[[CreditLevel], float]) -> Callable[[DiskSnapshot], Value]:
    def values(snapshot: DiskSnapshot) -> Value:
        return {(level.resource,): value(level) for level in snapshot.credits} or None

    return values


def _pressure(snapshot: DiskSnapshot) -> Value:
    host = snapshot.verdict_totals.host
    if host.pressure_some_s is None or host.pressure_full_s is None:
        return None
    return {("some",): host.pressure_some_s, ("full",): host.pressure_full_s}


def _yes_or_no(disk: Disk) -> str:
    return "" if disk.rotational is None else str(disk.rotational).lower()


_SINCE = "since disksla first saw the disk, unwrapped to 64 bit"
_PEAK = "in any sampling window (100 ms by default) within the last 60 s."
_SHARED = "Where the budget on disksla_disk_info is sum or time_shared, reads and writes share it."
_PROMISED = f"promised by the terms for the size of this disk. {_SHARED}"
_BURSTING = f"allowed while burst credits last. {_SHARED}"
_IN_WINDOW = "The mean of windows, as many as make it meaningful, counted once per request"

DISK_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_disk_info",
        "gauge",
        "Always 1: what the disk is and the terms it is held against. Empty where not known;"
        " mount points (of the disk and its partitions) are joined by commas.",
        _disk_info,
        (
            "serial",
            "wwn",
            "model",
            "provider",
            "terms",
            "budget",
            "latency_kind",
            "rotational",
            "mountpoint",
        ),
    ),
    Metric(
        "disksla_disk_holder_info",
        "gauge",
        "Always 1: a device (device-mapper, md) stacked on this disk or one of its partitions,"
        " from the holders directories of sysfs.",
        lambda snapshot: {(holder,): 1 for holder in snapshot.disk.holders},
        ("holder",),
    ),
    Metric(
        "disksla_disk_size_bytes",
        "gauge",
        "Size of the disk in bytes as the kernel reports it (sysfs size x 512). Limits may be"
        " derived from another size that the configuration states.",
        lambda snapshot: snapshot.disk.size_bytes,
    ),
    Metric(
        "disksla_reads_completed_total",
        "counter",
        f"Reads completed (reads completed of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.reads),
    ),
    Metric(
        "disksla_writes_completed_total",
        "counter",
        f"Writes completed (writes completed of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.writes),
    ),
    Metric(
        "disksla_read_bytes_total",
        "counter",
        f"Bytes read (sectors read of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda counters: counters.read_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_written_bytes_total",
        "counter",
        f"Bytes written (sectors written of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda counters: counters.written_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_read_time_seconds_total",
        "counter",
        "Seconds that completed reads took, queueing included, added up over requests"
        f" (ms spent reading of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.read_ms, per=1000),
    ),
    Metric(
        "disksla_write_time_seconds_total",
        "counter",
        "Seconds that completed writes took, queueing included, added up over requests"
        f" (ms spent writing of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.write_ms, per=1000),
    ),
    Metric(
        "disksla_flushes_completed_total",
        "counter",
        "Cache flushes completed (flush requests of /proc/diskstats; absent before Linux 5.5),"
        f" {_SINCE}.",
        _total(lambda counters: counters.flushes),
    ),
    Metric(
        "disksla_flush_time_seconds_total",
        "counter",
        "Seconds that completed cache flushes took, added up over requests (ms spent flushing of"
        f" /proc/diskstats; absent before Linux 5.5), {_SINCE}.",
        _total(lambda counters: counters.flush_ms, per=1000),
    ),
    Metric(
        "disksla_discards_completed_total",
        "counter",
        "Discards (trims) completed (discards completed of /proc/diskstats; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda counters: counters.discards),
    ),
    Metric(
        "disksla_discarded_bytes_total",
        "counter",
        "Bytes discarded (sectors discarded of /proc/diskstats x 512; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda counters: counters.discarded_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_inflight",
        "gauge",
        "Reads and writes sent to the disk and not yet completed, at the last sample"
        " (sysfs inflight).",
        lambda snapshot: snapshot.inflight,
    ),
    Metric(
        "disksla_read_latency_seconds",
        "histogram",
        f"Seconds that reads took, queueing included. {_IN_WINDOW}: not the latency of each read.",
        sampled(lambda snapshot: snapshot.read_latency_s),
    ),
    Metric(
        "disksla_write_latency_seconds",
        "histogram",
        f"Seconds that writes took, queueing included. {_IN_WINDOW}: not the latency of each"
        " write.",
        sampled(lambda snapshot: snapshot.write_latency_s),
    ),
    Metric(
        "disksla_window_load_ratio",
        "histogram",
        "Load of each sampling window (100 ms by default): what its requests used of the promised"
        " limits, under the cost law of the terms; 1 is exactly at the promise.",
        sampled(lambda snapshot: snapshot.load),
    ),
    Metric(
        "disksla_verdict_seconds_total",
        "counter",
        "Seconds by what was said of each sampling window: idle, unproven (asks for less than the"
        " promise, or nothing is promised), met (at or above the promise), throttled (held at its"
        " limit while requests wait), below (gives less than promised to a load that is deep"
        " enough), stalled (requests in flight, none completes). Together, all seconds assessed.",
        sampled(
            lambda snapshot: keyed(
                dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
            )
        ),
        ("verdict",),
    ),
    Metric(
        "disksla_throttled_seconds_total",
        "counter",
        "Seconds in which the disk was held at a limit while requests waited, by the limit: iops,"
        " bandwidth, or unknown (held at a flat rate that no terms explain).",
        sampled(
            lambda snapshot: keyed(
                dict(zip(LIMIT_KINDS, snapshot.verdict_totals.throttled_s, strict=True))
            )
        ),
        ("limit",),
    ),
    Metric(
        "disksla_throttle_wait_seconds_total",
        "counter",
        "I/O-seconds that requests waited because the disk was throttled, beyond its own service"
        " time; told when they complete. With 32 in flight, 32 a second.",
        sampled(lambda snapshot: snapshot.verdict_totals.wait_s),
    ),
    Metric(
        "disksla_throttled_iowait_seconds_total",
        "counter",
        "CPU seconds in iowait (all CPUs, /proc/stat) that fell into throttled windows, shared"
        " between the disks that were throttled by how long requests waited at each. A symptom by"
        " correlation: asynchronous I/O (libaio) causes next to none, and other work hides it.",
        sampled(lambda snapshot: snapshot.verdict_totals.host.iowait_s),
    ),
    Metric(
        "disksla_throttled_pressure_seconds_total",
        "counter",
        "Seconds in which some tasks, or all (full), of the host stood still for I/O"
        " (/proc/pressure/io) that fell into throttled windows, shared between the disks that were"
        " throttled. A symptom by correlation: asynchronous I/O (libaio) causes next to none.",
        sampled(_pressure),
        ("kind",),
    ),
    Metric(
        "disksla_burst_credits",
        "gauge",
        "Estimate of the burst credits left, between the bounds, in the unit of `resource`:"
        " I/Os, bytes, or seconds of base-level service.",
        _credits(lambda level: level.estimate_credits),
        ("resource",),
    ),
    Metric(
        "disksla_burst_credits_lower_bound",
        "gauge",
        "Burst credits that are left at least, whatever happened before disksla looked; unit as"
        " of disksla_burst_credits.",
        _credits(lambda level: level.lower_credits),
        ("resource",),
    ),
    Metric(
        "disksla_burst_credits_upper_bound",
        "gauge",
        "Burst credits that are left at most, whatever happened before disksla looked; unit as"
        " of disksla_burst_credits.",
        _credits(lambda level: level.upper_credits),
        ("resource",),
    ),
    Metric(
        "disksla_burst_credits_capacity",
        "gauge",
        "Burst credits that a full bucket holds, by the terms; unit as of disksla_burst_credits.",
        _credits(lambda level: level.capacity_credits),
        ("resource",),
    ),
    Metric(
        "disksla_burst_exhaustion_seconds",
        "gauge",
        "Seconds until the burst credits are used up if the disk goes on as in the last second,"
        " by the estimate; +Inf while they do not get fewer.",
        _credits(lambda level: level.exhaustion_s),
        ("resource",),
    ),
    Metric(
        "disksla_observed_ceiling_iops",
        "gauge",
        "Reads and writes per second at which the disk was last seen held.",
        lambda snapshot: snapshot.ceiling.iops if snapshot.ceiling is not None else None,
    ),
    Metric(
        "disksla_observed_ceiling_bytes_per_second",
        "gauge",
        "Bytes read and written per second at which the disk was last seen held.",
        lambda snapshot: (
            snapshot.ceiling.bytes_per_second if snapshot.ceiling is not None else None
        ),
    ),
    Metric(
        "disksla_peak_read_iops",
        "gauge",
        f"Highest rate of reads completed per second {_PEAK}",
        sampled(lambda snapshot: snapshot.peak.read_iops),
    ),
    Metric(
        "disksla_peak_write_iops",
        "gauge",
        f"Highest rate of writes completed per second {_PEAK}",
        sampled(lambda snapshot: snapshot.peak.write_iops),
    ),
    Metric(
        "disksla_peak_read_bytes_per_second",
        "gauge",
        f"Highest rate of bytes read per second {_PEAK}",
        sampled(lambda snapshot: snapshot.peak.read_bytes_per_second),
    ),
    Metric(
        "disksla_peak_written_bytes_per_second",
        "gauge",
        f"Highest rate of bytes written per second {_PEAK}",
        sampled(lambda snapshot: snapshot.peak.written_bytes_per_second),
    ),
    Metric(
        "disksla_limit_read_iops",
        "gauge",
        f"Reads per second {_PROMISED}",
        lambda snapshot: snapshot.assignment.limits.rates.read_iops,
    ),
    Metric(
        "disksla_limit_write_iops",
        "gauge",
        f"Writes per second {_PROMISED}",
        lambda snapshot: snapshot.assignment.limits.rates.write_iops,
    ),
    Metric(
        "disksla_limit_read_bytes_per_second",
        "gauge",
        f"Bytes read per second {_PROMISED}",
        lambda snapshot: snapshot.assignment.limits.rates.read_bytes_per_second,
    ),
    Metric(
        "disksla_limit_written_bytes_per_second",
        "gauge",
        f"Bytes written per second {_PROMISED}",
        lambda snapshot: snapshot.assignment.limits.rates.write_bytes_per_second,
    ),
    Metric(
        "disksla_limit_latency_seconds",
        "gauge",
        "Seconds that a request may take by the terms, under the conditions that they state;"
        " latency_kind on disksla_disk_info tells a guarantee from an indication.",
        lambda snapshot: snapshot.assignment.limits.latency_s,
    ),
    Metric(
        "disksla_burst_limit_read_iops",
        "gauge",
        f"Reads per second {_BURSTING}",
        _burst(lambda rates: rates.read_iops),
    ),
    Metric(
        "disksla_burst_limit_write_iops",
        "gauge",
        f"Writes per second {_BURSTING}",
        _burst(lambda rates: rates.write_iops),
    ),
    Metric(
        "disksla_burst_limit_read_bytes_per_second",
        "gauge",
        f"Bytes read per second {_BURSTING}",
        _burst(lambda rates: rates.read_bytes_per_second),
    ),
    Metric(
        "disksla_burst_limit_written_bytes_per_second",
        "gauge",
        f"Bytes written per second {_BURSTING}",
        _burst(lambda rates: rates.write_bytes_per_second),
    ),
)
