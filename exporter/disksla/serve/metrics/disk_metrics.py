"""Metrics of each disk: counters, latency, verdicts, credits and limits.

The fields of /proc/diskstats are documented in Documentation/admin-guide/iostats.rst of the
kernel.
"""

from collections.abc import Callable, Iterator, Mapping

from disksla.kernel.disks import Disk
from disksla.kernel.procfs import SECTOR_BYTES, Counters
from disksla.promise.catalogue import Limits, Rates
from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import (
    SHORT_LATENCY_BOUNDS_S,
    Buckets,
    Labelled,
    Metric,
    Value,
    credits_row,
    keyed,
)
from disksla.state.pipeline import DiskSnapshot
from disksla.verdict.throttling import LIMIT_KINDS, MACHINE_LIMITS, VERDICTS


def _total(
    counter: Callable[[Counters], int | None], times: int = 1, per: int = 1
) -> Callable[[DiskSnapshot], Value]:
    """Return a function for one kernel counter in base units.

    It multiplies and divides integers, so 300 ms are 0.3 s and not 0.30000004 s.
    """

    def value(snapshot: DiskSnapshot) -> Value:
        count = None if snapshot.counters is None else counter(snapshot.counters)
        return None if count is None else count * times / per

    return value


def _if_sampled(value: Callable[[DiskSnapshot], Value]) -> Callable[[DiskSnapshot], Value]:
    """Return a function that has no value before the first sample, where totals would be 0."""
    return lambda snapshot: None if snapshot.counters is None else value(snapshot)


def _burst_rates(limits: Limits) -> Rates | None:
    return None if limits.burst is None else limits.burst.rates


def _limit_rows(
    name: str, text: str, rates_of: Callable[[Limits], Rates | None], profile: Profile
) -> Iterator[Metric[DiskSnapshot]]:
    """Yield the rows of what is allowed of reads and writes, by `disksla_NAME_read_iops` etc."""
    for unit, what, field in (
        ("read_iops", "Reads", "read_iops"),
        ("write_iops", "Writes", "write_iops"),
        ("read_bytes_per_second", "Bytes read", "read_bytes_per_second"),
        ("written_bytes_per_second", "Bytes written", "write_bytes_per_second"),
    ):

        def value(snapshot: DiskSnapshot, field: str = field) -> Value:
            rates = rates_of(snapshot.assignment.limits)
            rate: float | None = getattr(rates, field, None)
            return rate

        yield Metric(f"disksla_{name}_{unit}", f"{what} per second {text}", value, profile=profile)


def _disk_info(snapshot: DiskSnapshot) -> Labelled:
    disk, limits = snapshot.disk, snapshot.assignment.limits
    return {
        (
            disk.serial or "",
            disk.wwn or "",
            disk.model or "",
            snapshot.assignment.provider,
            snapshot.assignment.terms,
            limits.budget.kind if limits.budget and limits.rates != Rates() else "",
            limits.latency_kind or "",
            _rotational(disk),
            snapshot.assignment.source,
            snapshot.machine_type or "",
            disk.kind,
        ): 1
    }


def _kubernetes_volume(snapshot: DiskSnapshot) -> Labelled | None:
    disk = snapshot.disk
    if disk.csi_driver is None and disk.persistent_volume is None:
        return None
    values = (
        disk.csi_driver,
        disk.volume_handle,
        disk.persistent_volume,
        disk.claim,
        disk.namespace,
        disk.storage_class,
    )
    return {tuple(value or "" for value in values): 1}


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


def _rotational(disk: Disk) -> str:
    return "" if disk.rotational is None else str(disk.rotational).lower()


_SINCE = "since disksla first sampled the disk, unwrapped to 64 bits"
_RARE = "Absent while it is 0, except in the profile full."
_PEAK = "in any sampling window (100 ms by default) within the last 60 s."
_SHARED = "If the budget on disksla_disk_info is sum or time_shared, reads and writes share it."
_LIMIT = f"promised by the terms for the size of this disk; absent without such a limit. {_SHARED}"
_BURST_LIMIT = f"allowed while burst credits last; absent without such a limit. {_SHARED}"
_MEAN = (
    "Each observation is the mean over one or more sampling windows, counted once per request;"
    " it is not the latency of a single request."
)
_DATA = (
    "All flushes are subtracted from the writes that the kernel counts, unless"
    " disksla_data_writes_total has the exact number."
)
_LATENCIES: Mapping[Profile, Buckets] = {"default": Buckets(SHORT_LATENCY_BOUNDS_S)}
_LOADS: Mapping[Profile, Buckets] = {
    "lean": Buckets((0.8,), has_sum=False),
    "default": Buckets((0.8, 0.95)),
}
"""DiskLatencyAbovePromise needs the first bound, the dashboard the others."""

DISK_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    Metric(
        "disksla_disk_info",
        "Always 1. Labels describe the disk and its terms; the label of an unknown value is empty."
        " budget is empty if and only if the disk has no limits."
        " terms_source is who says what the disk is: configuration, file (of terms.d), api,"
        " metadata, or none. kind is disk, or nfs for an NFS mount.",
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
            "terms_source",
            "machine_type",
            "kind",
        ),
        profile="lean",
    ),
    Metric(
        "disksla_mount_info",
        "Always 1. The label mountpoint is where a file system of the disk was mounted first,"
        " through partitions, LVM and dm-crypt too; each subvolume of btrfs counts as one. Bind"
        " mounts, and what pods and containers mount, are left out.",
        lambda snapshot: {(point,): 1 for point in snapshot.disk.file_system_mounts},
        ("mountpoint",),
        profile="lean",
    ),
    Metric(
        "disksla_disk_holder_info",
        "Always 1. The label holder is a device (device-mapper, md) stacked on this disk or on one"
        " of its partitions (sysfs holders).",
        lambda snapshot: {(holder,): 1 for holder in snapshot.disk.holders},
        ("holder",),
    ),
    Metric(
        "disksla_kubernetes_volume_info",
        "Always 1. The volume of Kubernetes that the disk is; absent for other disks. The label of"
        " an unknown value is empty: persistentvolumeclaim, its namespace and storage_class need a"
        " terms file with the volumes.",
        _kubernetes_volume,
        (
            "csi_driver",
            "volume_handle",
            "persistentvolume",
            "persistentvolumeclaim",
            "namespace",
            "storage_class",
        ),
        profile="lean",
    ),
    Metric(
        "disksla_disk_size_bytes",
        "Size of the disk in bytes as reported by the kernel (sysfs size x 512). The configuration"
        " can set another size to derive limits from. Absent for an NFS mount.",
        lambda snapshot: None if snapshot.disk.is_mount else snapshot.disk.size_bytes,
    ),
    Metric(
        "disksla_reads_completed_total",
        f"Reads completed (reads completed of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.reads),
        profile="lean",
    ),
    Metric(
        "disksla_writes_completed_total",
        f"Writes completed (writes completed of /proc/diskstats), {_SINCE}. On disks with a"
        " write-back cache the kernel counts an empty flush as a write.",
        _total(lambda counters: counters.writes),
        profile="lean",
    ),
    Metric(
        "disksla_data_writes_total",
        "Writes completed without the empty flushes among disksla_writes_completed_total, counted"
        " exactly by performance events since disksla counted the first. Absent while they are not"
        " counted: it needs a permission (docs/service.md), and a disk with a write-back cache.",
        lambda snapshot: snapshot.data_writes,
    ),
    Metric(
        "disksla_read_bytes_total",
        f"Bytes read (sectors read of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda counters: counters.read_sectors, times=SECTOR_BYTES),
        profile="lean",
    ),
    Metric(
        "disksla_written_bytes_total",
        f"Bytes written (sectors written of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda counters: counters.written_sectors, times=SECTOR_BYTES),
        profile="lean",
    ),
    Metric(
        "disksla_read_time_seconds_total",
        "Seconds that completed reads took, queueing included, summed over requests"
        f" (ms spent reading of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.read_ms, per=1000),
        profile="lean",
    ),
    Metric(
        "disksla_write_time_seconds_total",
        "Seconds that completed writes took, queueing included, summed over requests"
        f" (ms spent writing of /proc/diskstats), {_SINCE}.",
        _total(lambda counters: counters.write_ms, per=1000),
        profile="lean",
    ),
    Metric(
        "disksla_nfs_operations_total",
        "Operations of an NFS mount besides reads and writes (mountstats), since it was mounted:"
        " commit (COMMIT, which makes unstable writes durable) and other (metadata, locks,"
        " sessions). Absent for disks.",
        lambda snapshot: (
            None
            if snapshot.mount is None
            else keyed({"commit": snapshot.mount.commits, "other": snapshot.mount.others})
        ),
        ("operation",),
    ),
    Metric(
        "disksla_nfs_wait_seconds_total",
        "Seconds of reads and writes of an NFS mount by where they waited (mountstats), summed"
        " over requests since it was mounted: client (QUEUE: for a slot of the session and for"
        " the connection) and server (RTT: for the network and the server). Absent for disks.",
        lambda snapshot: (
            None
            if snapshot.mount is None
            else keyed(
                {"client": snapshot.mount.queue_ms / 1000, "server": snapshot.mount.rtt_ms / 1000}
            )
        ),
        ("place",),
    ),
    Metric(
        "disksla_flushes_completed_total",
        "Cache flushes completed (flush requests of /proc/diskstats; absent before Linux 5.5),"
        f" {_SINCE}. {_RARE}",
        _total(lambda counters: counters.flushes),
        is_rare=True,
    ),
    Metric(
        "disksla_flush_time_seconds_total",
        "Seconds that completed cache flushes took, summed over requests (ms spent flushing of"
        f" /proc/diskstats; absent before Linux 5.5), {_SINCE}. {_RARE}",
        _total(lambda counters: counters.flush_ms, per=1000),
        is_rare=True,
    ),
    Metric(
        "disksla_discards_completed_total",
        "Discards (trims) completed (discards completed of /proc/diskstats; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda counters: counters.discards),
        profile="full",
    ),
    Metric(
        "disksla_discarded_bytes_total",
        "Bytes discarded (sectors discarded of /proc/diskstats x 512; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda counters: counters.discarded_sectors, times=SECTOR_BYTES),
        profile="full",
    ),
    Metric(
        "disksla_inflight",
        "Reads and writes sent to the disk and not completed, at the last sample;"
        " absent while /proc/diskstats does not list the disk.",
        lambda snapshot: snapshot.inflight,
    ),
    Metric(
        "disksla_read_latency_seconds",
        f"Seconds that reads took, queueing included. {_MEAN}",
        _if_sampled(lambda snapshot: snapshot.totals.read_latency.histogram),
        buckets=_LATENCIES,
        is_histogram=True,
    ),
    Metric(
        "disksla_write_latency_seconds",
        f"Seconds that writes took, queueing included, without flushes. {_MEAN} {_DATA}",
        _if_sampled(lambda snapshot: snapshot.totals.write_latency.histogram),
        buckets=_LATENCIES,
        is_histogram=True,
    ),
    Metric(
        "disksla_window_load_ratio",
        "Load of each sampling window (100 ms by default): share of the promised limits that its"
        " requests used, under the cost model of the terms; 1 is at the limit. Absent if the terms"
        f" promise nothing. {_DATA}",
        _if_sampled(lambda snapshot: snapshot.load),
        profile="lean",
        buckets=_LOADS,
        is_histogram=True,
    ),
    Metric(
        "disksla_verdict_seconds_total",
        "Assessed seconds by the verdict on each sampling window: idle, unproven (the load is less"
        " than the promise and is served, or nothing is promised), met (the load is at or above"
        " the promise), throttled (a limiter makes requests wait), below (the disk gives less than"
        " promised, to a load that is deep enough or by a limiter that is seen), stalled (requests"
        " in flight, and none completes for more than a second). A window that is throttled in"
        " part counts in part. The sum over all verdicts is all time assessed, except for the last"
        " windows: a verdict may be decided up to two seconds late.",
        _if_sampled(
            lambda snapshot: keyed(
                dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))
            )
        ),
        ("verdict",),
        profile="lean",
    ),
    Metric(
        "disksla_throttled_seconds_total",
        "Seconds in which requests waited for a limiter, by limit: iops, bandwidth, machine_iops"
        " or machine_bandwidth (those of the machine over several disks; absent for a disk without"
        " such limits), or unknown (a limiter is seen, and no limit explains its rate). Where the"
        " provider counts how long each limit throttles, it is that count.",
        _if_sampled(_throttled_s),
        ("limit",),
        profile="lean",
    ),
    Metric(
        "disksla_slow_seconds_total",
        "Seconds in which nothing was throttled, below its promise or stalled, and requests took"
        " longer than: promise (the latency of the terms, times 1.2; at a load of up to 0.8, with"
        " requests of up to 16 KiB, two of them in flight at most), or usual (five times what such"
        " requests of this disk usually take, learned for ten minutes or more and forgotten within"
        " a day). They are among the seconds of the other verdicts. Absent while it is 0, except"
        " in the profile full.",
        _if_sampled(
            lambda snapshot: keyed(
                {"promise": snapshot.slow.above_promise_s, "usual": snapshot.slow.above_usual_s}
            )
        ),
        ("than",),
        profile="lean",
        is_rare=True,
    ),
    Metric(
        "disksla_usual_latency_seconds",
        "Seconds that a request of up to 16 KiB usually takes alone, while nothing is throttled:"
        " the mean of logarithms over the last six hours or so. Absent until it was seen for ten"
        " minutes.",
        _if_sampled(
            lambda snapshot: keyed(
                {str(each): usual for each, usual in snapshot.usual_latency_s.items()}
            )
        ),
        ("direction",),
    ),
    Metric(
        "disksla_throttle_wait_seconds_total",
        "I/O-seconds that requests waited because of throttling: what they took, times the share"
        " of the time in which the disk was throttled. Counted when requests complete; with 32"
        " requests waiting it grows by 32 seconds per second.",
        _if_sampled(lambda snapshot: snapshot.verdict_totals.wait_s),
    ),
    Metric(
        "disksla_throttled_iowait_seconds_total",
        "CPU seconds in iowait (all CPUs, /proc/stat) during throttled windows, divided among the"
        " disks throttled at the time in proportion to how long requests waited at each. A symptom"
        " by correlation: asynchronous I/O (libaio) causes almost none, and other CPU work hides"
        " it. Absent if iowait cannot be read.",
        _if_sampled(lambda snapshot: snapshot.verdict_totals.host.iowait_s),
        profile="lean",
    ),
    Metric(
        "disksla_throttled_pressure_seconds_total",
        "Seconds in which some, or (profile full only) all, tasks of the host were stalled on I/O"
        " (/proc/pressure/io) during throttled windows, divided among the disks throttled at the"
        " time. A symptom by correlation: asynchronous I/O (libaio) causes almost none. Absent if"
        " PSI cannot be read.",
        _if_sampled(_pressure),
        ("kind",),
        profile="lean",
        only_in_full=frozenset({"full"}),
    ),
    credits_row(
        "disksla_burst_credits",
        "Burst credits left, as an estimate between the bounds (of a file storage, whose other"
        " clients use them, too, the upper bound), in the unit of resource: iops"
        " (I/Os), bytes, or service_seconds (seconds of service at the baseline). Absent if the"
        " terms have no burst.",
        lambda level: level.estimate_credits,
    ),
    credits_row(
        "disksla_burst_credits_lower_bound",
        "Lowest level of burst credits that the observations allow, whatever the disk did while"
        " disksla was not running; unit and absence as for disksla_burst_credits.",
        lambda level: level.lower_credits,
    ),
    credits_row(
        "disksla_burst_credits_upper_bound",
        "Highest level of burst credits that the observations allow, whatever the disk did while"
        " disksla was not running; unit and absence as for disksla_burst_credits.",
        lambda level: level.upper_credits,
    ),
    credits_row(
        "disksla_burst_credits_capacity",
        "Burst credits of a full token bucket under the terms; unit and absence as for"
        " disksla_burst_credits.",
        lambda level: level.capacity_credits,
    ),
    credits_row(
        "disksla_burst_exhaustion_seconds",
        "Seconds until the burst credits are used up at the load of the last second, from the"
        " estimate; +Inf while they do not decrease. Absent if the terms have no burst.",
        lambda level: level.exhaustion_s,
    ),
    Metric(
        "disksla_observed_ceiling_iops",
        "Reads and writes per second at which the disk was last throttled; absent until it was"
        " throttled. Where flushes leave a doubt about the number of data writes, the value is the"
        " last one without a doubt.",
        lambda snapshot: snapshot.ceiling.last_iops if snapshot.ceiling is not None else None,
    ),
    Metric(
        "disksla_observed_ceiling_bytes_per_second",
        "Bytes read and written per second at which the disk was last throttled; absent until it"
        " was throttled.",
        lambda snapshot: (
            snapshot.ceiling.bytes_per_second if snapshot.ceiling is not None else None
        ),
    ),
    Metric(
        "disksla_observed_limiter_window_seconds",
        "Window of the limiter that throttled the disk last: how often it lets requests pass, as"
        " the ends of pauses show. Absent for a limiter without windows.",
        lambda snapshot: snapshot.ceiling.window_s if snapshot.ceiling is not None else None,
        profile="full",
    ),
    Metric(
        "disksla_peak_read_iops",
        f"Highest rate of reads completed per second {_PEAK}",
        _if_sampled(lambda snapshot: snapshot.peak.read_iops),
    ),
    Metric(
        "disksla_peak_write_iops",
        f"Highest rate of writes completed per second {_PEAK} {_DATA}",
        _if_sampled(lambda snapshot: snapshot.peak.write_iops),
    ),
    Metric(
        "disksla_peak_read_bytes_per_second",
        f"Highest rate of bytes read per second {_PEAK}",
        _if_sampled(lambda snapshot: snapshot.peak.read_bytes_per_second),
    ),
    Metric(
        "disksla_peak_written_bytes_per_second",
        f"Highest rate of bytes written per second {_PEAK}",
        _if_sampled(lambda snapshot: snapshot.peak.written_bytes_per_second),
    ),
    *_limit_rows("limit", _LIMIT, lambda limits: limits.rates, "lean"),
    Metric(
        "disksla_limit_latency_seconds",
        "Latency of a request in seconds that the terms state, under their conditions; absent if"
        " they state none. latency_kind on disksla_disk_info: guaranteed or indicative.",
        lambda snapshot: snapshot.assignment.limits.latency_s,
        profile="lean",
    ),
    *_limit_rows("burst_limit", _BURST_LIMIT, _burst_rates, "default"),
)
