"""Every metric that leaves the house, one row each: name, kind, help, labels, value.

A metric is added here and nowhere else: the collector and docs/metrics.md walk these tables.
Names and units follow https://prometheus.io/docs/practices/naming/; what the fields of
/proc/diskstats mean stands in Documentation/admin-guide/iostats.rst of the kernel.
"""

from collections.abc import Callable, Mapping
from typing import Generic, Literal, TypeVar

import msgspec

from disksla.core.disk import Disk
from disksla.core.diskstats import SECTOR_BYTES, Counters
from disksla.core.histogram import Histogram
from disksla.core.limits import Rates
from disksla.core.probeledger import ProbeLedger
from disksla.core.probeoutcome import ProbeOutcome
from disksla.core.purse import CreditLevel
from disksla.core.settings import ProbeKind
from disksla.core.throttle import LIMIT_KINDS
from disksla.core.verdict import VERDICTS
from disksla.core.verification import JudgedLine
from disksla.core.view import DiskView, SamplerView

Kind = Literal["counter", "gauge", "histogram"]
Labelled = Mapping[tuple[str, ...], float]
"""Values by the values of a row's `labels`, in their order."""
Value = float | Histogram | Labelled | None
Subject = TypeVar("Subject")


class Metric(msgspec.Struct, Generic[Subject], frozen=True):
    """One row: what is published of every `Subject`."""

    name: str
    """As it is queried, with `_total` on counters."""
    kind: Kind
    help: str
    """One or two sentences for people: source, unit, window and denominator."""
    value: Callable[[Subject], Value]
    """None where nothing is known, which gives no sample."""
    labels: tuple[str, ...] = ()
    """Labels beside `device`; a row with some gives values by label."""


class About(msgspec.Struct, frozen=True):
    """What the daemon knows of itself beside its sampling."""

    version: str
    python_version: str
    kernel_release: str
    reload_successful: bool
    """Whether the configuration was accepted when it was last read."""
    reload_success_timestamp_s: float
    """Unix time at which a configuration was last accepted."""


def _total(
    counter: Callable[[Counters], int | None], times: int = 1, per: int = 1
) -> Callable[[DiskView], Value]:
    """Give the value of one kernel counter in base units; division keeps 0.3 s from 0.30000004."""

    def value(view: DiskView) -> Value:
        count = None if view.totals is None else counter(view.totals)
        return None if count is None else count * times / per

    return value


def _sampled(value: Callable[[DiskView], Value]) -> Callable[[DiskView], Value]:
    """Give what samples add up to; nothing before the first, for absent is not zero."""
    return lambda view: None if view.totals is None else value(view)


def _burst(rate: Callable[[Rates], float | None]) -> Callable[[DiskView], Value]:
    def value(view: DiskView) -> Value:
        burst = view.assignment.limits.burst
        return None if burst is None else rate(burst.rates)

    return value


def _disk_info(view: DiskView) -> Labelled:
    disk, limits = view.disk, view.assignment.limits
    return {
        (
            disk.serial or "",
            disk.wwn or "",
            disk.model or "",
            view.assignment.provider,
            view.assignment.terms,
            limits.budget or "",
            limits.latency_kind or "",
            _yes_or_no(disk),
            ",".join(disk.mount_points),
        ): 1
    }


def _credits(value: Callable[[CreditLevel], float]) -> Callable[[DiskView], Value]:
    def values(view: DiskView) -> Value:
        return {(level.resource,): value(level) for level in view.credits} or None

    return values


def _pressure(view: DiskView) -> Value:
    host = view.ledger.host
    if host.pressure_some_s is None or host.pressure_full_s is None:
        return None
    return {("some",): host.pressure_some_s, ("full",): host.pressure_full_s}


def _probe_latency(kind: ProbeKind) -> Callable[[DiskView], Value]:
    def value(view: DiskView) -> Value:
        return view.probes[kind].latency_s if kind in view.probes else None

    return value


def _probes(value: Callable[[ProbeLedger], float | None]) -> Callable[[DiskView], Value]:
    """Give what holds for probes of each kind; nothing where there are none."""

    def values(view: DiskView) -> Value:
        told = {(kind,): value(ledger) for kind, ledger in view.probes.items()}
        return {kind: number for kind, number in told.items() if number is not None} or None

    return values


def _probe_intervals(view: DiskView) -> Value:
    return {
        (kind,): each_s for kind, each_s in view.probe_intervals_s.items() if each_s is not None
    } or None


def _probe_reasons(
    counts: Callable[[ProbeLedger], Mapping[str, int]],
) -> Callable[[DiskView], Value]:
    """Give the reasons that there were.

    The twenty of each kind, most of which never happen, would be a fifth of all series of a disk.
    What alerts need is told without them: runs, and how the last one went.
    """

    def values(view: DiskView) -> Value:
        return {
            (kind, reason): count
            for kind, ledger in view.probes.items()
            for reason, count in counts(ledger).items()
            if count
        } or None

    return values


def _last_probe(value: Callable[[ProbeOutcome], float | None]) -> Callable[[DiskView], Value]:
    """Give what holds for the last run of each kind; nothing before the first."""
    return _probes(lambda ledger: None if ledger.last is None else value(ledger.last))


def _verified(value: Callable[[JudgedLine], float | None]) -> Callable[[DiskView], Value]:
    """Give what holds for each test that was judged, or only shown."""

    def values(view: DiskView) -> Value:
        lines = view.verification.lines if view.verification is not None else ()
        told = {(line.test,): value(line) for line in lines}
        return {test: number for test, number in told.items() if number is not None} or None

    return values


def _passed(line: JudgedLine) -> float | None:
    return {"pass": 1.0, "fail": 0.0}.get(line.verdict)


def _keyed(values: Mapping[str, float]) -> Labelled:
    return {(key,): value for key, value in values.items()}


def _yes_or_no(disk: Disk) -> str:
    return "" if disk.rotational is None else str(disk.rotational).lower()


_SINCE = "since disksla first saw the disk, unwrapped to 64 bit"
_PEAK = "in any sampling window (100 ms by default) within the last 60 s."
_SHARED = "Where the budget on disksla_disk_info is sum or time_shared, reads and writes share it."
_PROMISED = f"promised by the terms for the size of this disk. {_SHARED}"
_BURSTING = f"allowed while burst credits last. {_SHARED}"
_PROBED = (
    "by probes (4 KiB, one in flight, at a low fixed rate), from fio's own latency bins, each"
    " request counted"
)
_LAST_RUN = "of the last probe that was run (and not skipped)"
_IN_WINDOW = "The mean of windows, as many as make it meaningful, counted once per request"

DISK_METRICS: tuple[Metric[DiskView], ...] = (
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
        lambda view: {(holder,): 1 for holder in view.disk.holders},
        ("holder",),
    ),
    Metric(
        "disksla_disk_size_bytes",
        "gauge",
        "Size of the disk in bytes as the kernel reports it (sysfs size x 512). Limits may be"
        " derived from another size that the configuration states.",
        lambda view: view.disk.size_bytes,
    ),
    Metric(
        "disksla_reads_completed_total",
        "counter",
        f"Reads completed (reads completed of /proc/diskstats), {_SINCE}.",
        _total(lambda totals: totals.reads),
    ),
    Metric(
        "disksla_writes_completed_total",
        "counter",
        f"Writes completed (writes completed of /proc/diskstats), {_SINCE}.",
        _total(lambda totals: totals.writes),
    ),
    Metric(
        "disksla_read_bytes_total",
        "counter",
        f"Bytes read (sectors read of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda totals: totals.read_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_written_bytes_total",
        "counter",
        f"Bytes written (sectors written of /proc/diskstats x 512), {_SINCE}.",
        _total(lambda totals: totals.written_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_read_time_seconds_total",
        "counter",
        "Seconds that completed reads took, queueing included, added up over requests"
        f" (ms spent reading of /proc/diskstats), {_SINCE}.",
        _total(lambda totals: totals.read_ms, per=1000),
    ),
    Metric(
        "disksla_write_time_seconds_total",
        "counter",
        "Seconds that completed writes took, queueing included, added up over requests"
        f" (ms spent writing of /proc/diskstats), {_SINCE}.",
        _total(lambda totals: totals.write_ms, per=1000),
    ),
    Metric(
        "disksla_flushes_completed_total",
        "counter",
        "Cache flushes completed (flush requests of /proc/diskstats; absent before Linux 5.5),"
        f" {_SINCE}.",
        _total(lambda totals: totals.flushes),
    ),
    Metric(
        "disksla_flush_time_seconds_total",
        "counter",
        "Seconds that completed cache flushes took, added up over requests (ms spent flushing of"
        f" /proc/diskstats; absent before Linux 5.5), {_SINCE}.",
        _total(lambda totals: totals.flush_ms, per=1000),
    ),
    Metric(
        "disksla_discards_completed_total",
        "counter",
        "Discards (trims) completed (discards completed of /proc/diskstats; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda totals: totals.discards),
    ),
    Metric(
        "disksla_discarded_bytes_total",
        "counter",
        "Bytes discarded (sectors discarded of /proc/diskstats x 512; absent before"
        f" Linux 4.18), {_SINCE}.",
        _total(lambda totals: totals.discarded_sectors, times=SECTOR_BYTES),
    ),
    Metric(
        "disksla_inflight",
        "gauge",
        "Reads and writes sent to the disk and not yet completed, at the last sample"
        " (sysfs inflight).",
        lambda view: view.inflight,
    ),
    Metric(
        "disksla_read_latency_seconds",
        "histogram",
        f"Seconds that reads took, queueing included. {_IN_WINDOW}: not the latency of each read.",
        _sampled(lambda view: view.read_latency_s),
    ),
    Metric(
        "disksla_write_latency_seconds",
        "histogram",
        f"Seconds that writes took, queueing included. {_IN_WINDOW}: not the latency of each"
        " write.",
        _sampled(lambda view: view.write_latency_s),
    ),
    Metric(
        "disksla_window_load_ratio",
        "histogram",
        "Load of each sampling window (100 ms by default): what its requests used of the promised"
        " limits, under the cost law of the terms; 1 is exactly at the promise.",
        _sampled(lambda view: view.load),
    ),
    Metric(
        "disksla_verdict_seconds_total",
        "counter",
        "Seconds by what was said of each sampling window: idle, unproven (asks for less than the"
        " promise, or nothing is promised), met (at or above the promise), throttled (held at its"
        " limit while requests wait), below (gives less than promised to a load that is deep"
        " enough), stalled (requests in flight, none completes). Together, all seconds assessed.",
        _sampled(lambda view: _keyed(dict(zip(VERDICTS, view.ledger.seconds, strict=True)))),
        ("verdict",),
    ),
    Metric(
        "disksla_throttled_seconds_total",
        "counter",
        "Seconds in which the disk was held at a limit while requests waited, by the limit: iops,"
        " bandwidth, or unknown (held at a flat rate that no terms explain).",
        _sampled(
            lambda view: _keyed(dict(zip(LIMIT_KINDS, view.ledger.throttled_s, strict=True)))
        ),
        ("limit",),
    ),
    Metric(
        "disksla_throttle_wait_seconds_total",
        "counter",
        "I/O-seconds that requests waited because the disk was throttled, beyond its own service"
        " time; told when they complete. With 32 in flight, 32 a second.",
        _sampled(lambda view: view.ledger.wait_s),
    ),
    Metric(
        "disksla_throttled_iowait_seconds_total",
        "counter",
        "CPU seconds in iowait (all CPUs, /proc/stat) that fell into throttled windows, shared"
        " between the disks that were throttled by how long requests waited at each. A symptom by"
        " correlation: asynchronous I/O (libaio) causes next to none, and other work hides it.",
        _sampled(lambda view: view.ledger.host.iowait_s),
    ),
    Metric(
        "disksla_throttled_pressure_seconds_total",
        "counter",
        "Seconds in which some tasks, or all (full), of the host stood still for I/O"
        " (/proc/pressure/io) that fell into throttled windows, shared between the disks that were"
        " throttled. A symptom by correlation: asynchronous I/O (libaio) causes next to none.",
        _sampled(_pressure),
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
        lambda view: view.ceiling.iops if view.ceiling is not None else None,
    ),
    Metric(
        "disksla_observed_ceiling_bytes_per_second",
        "gauge",
        "Bytes read and written per second at which the disk was last seen held.",
        lambda view: view.ceiling.bytes_per_second if view.ceiling is not None else None,
    ),
    Metric(
        "disksla_peak_read_iops",
        "gauge",
        f"Highest rate of reads completed per second {_PEAK}",
        _sampled(lambda view: view.peak.read_iops),
    ),
    Metric(
        "disksla_peak_write_iops",
        "gauge",
        f"Highest rate of writes completed per second {_PEAK}",
        _sampled(lambda view: view.peak.write_iops),
    ),
    Metric(
        "disksla_peak_read_bytes_per_second",
        "gauge",
        f"Highest rate of bytes read per second {_PEAK}",
        _sampled(lambda view: view.peak.read_bytes_per_second),
    ),
    Metric(
        "disksla_peak_written_bytes_per_second",
        "gauge",
        f"Highest rate of bytes written per second {_PEAK}",
        _sampled(lambda view: view.peak.written_bytes_per_second),
    ),
    Metric(
        "disksla_limit_read_iops",
        "gauge",
        f"Reads per second {_PROMISED}",
        lambda view: view.assignment.limits.rates.read_iops,
    ),
    Metric(
        "disksla_limit_write_iops",
        "gauge",
        f"Writes per second {_PROMISED}",
        lambda view: view.assignment.limits.rates.write_iops,
    ),
    Metric(
        "disksla_limit_read_bytes_per_second",
        "gauge",
        f"Bytes read per second {_PROMISED}",
        lambda view: view.assignment.limits.rates.read_bytes_per_second,
    ),
    Metric(
        "disksla_limit_written_bytes_per_second",
        "gauge",
        f"Bytes written per second {_PROMISED}",
        lambda view: view.assignment.limits.rates.write_bytes_per_second,
    ),
    Metric(
        "disksla_limit_latency_seconds",
        "gauge",
        "Seconds that a request may take by the terms, under the conditions that they state;"
        " latency_kind on disksla_disk_info tells a guarantee from an indication.",
        lambda view: view.assignment.limits.latency_s,
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
    Metric(
        "disksla_probe_read_latency_seconds",
        "histogram",
        f"Seconds that reads took {_PROBED}. Only where such probes are configured.",
        _probe_latency("read-latency"),
    ),
    Metric(
        "disksla_probe_write_latency_seconds",
        "histogram",
        f"Seconds that writes took {_PROBED}. Only where such probes are configured.",
        _probe_latency("write-latency"),
    ),
    Metric(
        "disksla_probe_success",
        "gauge",
        f"Whether latencies were measured, {_LAST_RUN} (1 yes, 0 no).",
        _last_probe(lambda last: last.is_success),
        ("kind",),
    ),
    Metric(
        "disksla_probe_last_run_timestamp_seconds",
        "gauge",
        f"Unix time in seconds of the end {_LAST_RUN}.",
        _last_probe(lambda last: last.timestamp_s),
        ("kind",),
    ),
    Metric(
        "disksla_probe_last_turn_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which the probe was last run, or put off for a reason that passes"
        " (asleep, stalled, throttled, below, busy, credits, daily, another); until then, at which"
        " it was asked for.",
        _probes(lambda ledger: ledger.turn_s),
        ("kind",),
    ),
    Metric(
        "disksla_probe_interval_seconds",
        "gauge",
        "Seconds between two turns, as configured; absent where a crontab line says when.",
        _probe_intervals,
        ("kind",),
    ),
    Metric(
        "disksla_probe_duration_seconds",
        "gauge",
        f"Seconds that it took fio to begin, measure and end, {_LAST_RUN}.",
        _last_probe(lambda last: last.duration_s),
        ("kind",),
    ),
    Metric(
        "disksla_probe_target_iops",
        "gauge",
        "Requests per second that fio was asked for: as configured, or a hundredth of the promise"
        f" where that is less, {_LAST_RUN}.",
        _last_probe(lambda last: last.target_iops),
        ("kind",),
    ),
    Metric(
        "disksla_probe_achieved_iops",
        "gauge",
        f"Requests per second that fio completed, {_LAST_RUN}; absent if it failed.",
        _last_probe(lambda last: last.achieved_iops),
        ("kind",),
    ),
    Metric(
        "disksla_probe_runs_total",
        "counter",
        "Probes that were run, whatever came of them.",
        _probes(lambda ledger: ledger.runs),
        ("kind",),
    ),
    Metric(
        "disksla_probe_failures_total",
        "counter",
        "Probes that were run and failed, by reason, each from its first time on: timeout (ended"
        " at its time limit), unplugged, no_space, read_only, permission, place (no"
        " file of ours may be made there), garbage (not what fio prints), or error.",
        _probe_reasons(lambda ledger: ledger.failures),
        ("kind", "reason"),
    ),
    Metric(
        "disksla_probe_skipped_total",
        "counter",
        "Probes that were not run, by reason, each from its first time on: gone, asleep (suspended"
        " by the kernel), unseen (not sampled), stalled, throttled, below (its"
        " promise), busy, credits (low), small_promise (one request per second is over 1 %),"
        " no_file_system, daily (allowance used up), another (probe runs).",
        _probe_reasons(lambda ledger: ledger.skips),
        ("kind", "reason"),
    ),
    Metric(
        "disksla_probe_ios_total",
        "counter",
        "Requests that probes completed; they are part of what the disk is seen to do.",
        _probes(lambda ledger: ledger.requests),
        ("kind",),
    ),
    Metric(
        "disksla_probe_bytes_total",
        "counter",
        "Bytes that probes transferred, files that they wrote before included; they are part of"
        " what the disk is seen to do.",
        _probes(lambda ledger: ledger.transferred_bytes),
        ("kind",),
    ),
    Metric(
        "disksla_verification_ratio",
        "gauge",
        "Share of the promise that the last `disksla verify` measured, by test: of rates measured"
        " over promised, of latency promised over measured, so that more is better.",
        _verified(lambda line: line.ratio),
        ("test",),
    ),
    Metric(
        "disksla_verification_required_ratio",
        "gauge",
        "Share of the promise that the provider stands by for requests of that size; a test passes"
        " at this, less the tolerance of the configuration.",
        _verified(lambda line: line.required_ratio),
        ("test",),
    ),
    Metric(
        "disksla_verification_passed",
        "gauge",
        "Whether the test was passed (1 yes, 0 no). A latency that is not guaranteed has no"
        " sample: it cannot fail.",
        _verified(_passed),
        ("test",),
    ),
    Metric(
        "disksla_verification_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which the last `disksla verify` of this disk ended.",
        lambda view: view.verification.ended_timestamp_s if view.verification else None,
    ),
)

SAMPLER_METRICS: tuple[Metric[SamplerView], ...] = (
    Metric(
        "disksla_sampler_ticks_total",
        "counter",
        "Times that all disks were sampled.",
        lambda sampler: sampler.ticks,
    ),
    Metric(
        "disksla_sampler_missed_ticks_total",
        "counter",
        "Sampling deadlines that passed without a sample because the one before came too late."
        " The counters of the disks lose nothing; windows grow longer.",
        lambda sampler: sampler.missed_ticks,
    ),
    Metric(
        "disksla_sampler_lateness_seconds",
        "histogram",
        "Seconds between the deadline of a sample and the moment it was taken.",
        lambda sampler: sampler.lateness_s,
    ),
    Metric(
        "disksla_gaps_total",
        "counter",
        "Breaks between two samples, of one disk or of all, across which no window was assessed,"
        " by reason.",
        lambda sampler: _keyed(sampler.gaps),
        ("reason",),
    ),
    Metric(
        "disksla_collector_success",
        "gauge",
        "Whether a source of data could be read when it was last tried (1 yes, 0 no).",
        lambda sampler: _keyed(sampler.collectors),
        ("collector",),
    ),
    Metric(
        "disksla_errors_total",
        "counter",
        "Errors met while reading a source of data.",
        lambda sampler: _keyed(sampler.errors),
        ("source",),
    ),
)

ABOUT_METRICS: tuple[Metric[About], ...] = (
    Metric(
        "disksla_build_info",
        "gauge",
        "Always 1: versions of disksla, of the Python that runs it and of the kernel below.",
        lambda about: {
            (
                about.version,
                about.python_version,
                about.kernel_release,
            ): 1
        },
        ("version", "python_version", "kernel_release"),
    ),
    Metric(
        "disksla_config_last_reload_successful",
        "gauge",
        "Whether the configuration was accepted when it was last read (1 yes, 0 no);"
        " if not, the one before stays in force.",
        lambda about: about.reload_successful,
    ),
    Metric(
        "disksla_config_last_reload_success_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which a configuration was last accepted.",
        lambda about: about.reload_success_timestamp_s,
    ),
)
