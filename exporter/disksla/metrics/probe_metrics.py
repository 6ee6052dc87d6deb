"""Metrics of the probes of each disk."""

from collections.abc import Callable, Mapping

from disksla.config import ProbeKind
from disksla.metrics.metric import Metric, Value
from disksla.pipeline import DiskSnapshot, ProbeResult, ProbeTotals


def _probe_latency(kind: ProbeKind) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Value:
        return snapshot.probes[kind].latency_s if kind in snapshot.probes else None

    return value


def _probes(value: Callable[[ProbeTotals], float | None]) -> Callable[[DiskSnapshot], Value]:
    """Give what holds for probes of each kind; nothing where there are none."""

    def values(snapshot: DiskSnapshot) -> Value:
        told = {(kind,): value(totals) for kind, totals in snapshot.probes.items()}
        return {kind: number for kind, number in told.items() if number is not None} or None

    return values


def _probe_intervals(snapshot: DiskSnapshot) -> Value:
    return {
        (kind,): each_s
        for kind, each_s in snapshot.probe_intervals_s.items()
        if each_s is not None
    } or None


def _probe_reasons(
    counts: Callable[[ProbeTotals], Mapping[str, int]],
) -> Callable[[DiskSnapshot], Value]:
    """Give the reasons that there were.

    The twenty of each kind, most of which never happen, would be a fifth of all series of a disk.
    What alerts need is told without them: runs, and how the last one went.
    """

    def values(snapshot: DiskSnapshot) -> Value:
        return {
            (kind, reason): count
            for kind, totals in snapshot.probes.items()
            for reason, count in counts(totals).items()
            if count
        } or None

    return values


def _last_probe(value: Callable[[ProbeResult], float | None]) -> Callable[[DiskSnapshot], Value]:
    """Give what holds for the last run of each kind; nothing before the first."""
    return _probes(lambda totals: None if totals.last is None else value(totals.last))


_PROBED = (
    "by probes (4 KiB, one in flight, at a low fixed rate), from fio's own latency bins, each"
    " request counted"
)
_LAST_RUN = "of the last probe that was run (and not skipped)"

PROBE_METRICS: tuple[Metric[DiskSnapshot], ...] = (
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
        "disksla_probe_last_attempt_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which the probe last ran, or was skipped for a temporary reason"
        " (suspended, stalled, throttled, below, busy, credits, daily, measurement_running);"
        " before that, at which it was configured.",
        _probes(lambda totals: totals.last_attempt_s),
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
        _probes(lambda totals: totals.runs),
        ("kind",),
    ),
    Metric(
        "disksla_probe_failures_total",
        "counter",
        "Probes that ran and failed, by reason: timeout (ended at its time limit), unplugged,"
        " no_space, read_only, permission, no_scratch_file (no scratch file could be made),"
        " bad_output (not the output of fio) or error. A reason has a series once it occurred.",
        _probe_reasons(lambda totals: totals.failures),
        ("kind", "reason"),
    ),
    Metric(
        "disksla_probe_skipped_total",
        "counter",
        "Probes that did not run, by reason: device_missing, suspended (by the kernel),"
        " not_sampled, stalled, throttled, below (its promise), busy, credits (low),"
        " limit_too_low (one request per second is over 1 % of the limit), no_file_system, daily"
        " (budget used up) or measurement_running. A reason has a series once it occurred.",
        _probe_reasons(lambda totals: totals.skips),
        ("kind", "reason"),
    ),
    Metric(
        "disksla_probe_ios_total",
        "counter",
        "Requests that probes completed; they are part of what the disk is seen to do.",
        _probes(lambda totals: totals.requests),
        ("kind",),
    ),
    Metric(
        "disksla_probe_bytes_total",
        "counter",
        "Bytes that probes transferred, files that they wrote before included; they are part of"
        " what the disk is seen to do.",
        _probes(lambda totals: totals.transferred_bytes),
        ("kind",),
    ),
)
