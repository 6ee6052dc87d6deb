"""Metrics of the probes and of the last verification of each disk."""

from collections.abc import Callable, Mapping

from disksla.measure.verification import SuiteTestResult, VerificationReport
from disksla.promise.configuration import ProbeKind, Profile
from disksla.serve.metrics.metric import (
    SHORT_LATENCY_BOUNDS_S,
    Buckets,
    Metric,
    Value,
    full,
    keyed,
    lean,
)
from disksla.state.pipeline import DiskSnapshot, ProbeResult, ProbeTotals


def _probe_latency(kind: ProbeKind) -> Callable[[DiskSnapshot], Value]:
    def value(snapshot: DiskSnapshot) -> Value:
        return snapshot.probes[kind].latency_s if kind in snapshot.probes else None

    return value


def _probes(value: Callable[[ProbeTotals], float | None]) -> Callable[[DiskSnapshot], Value]:
    """Return a value for each kind of probe; None without any."""
    return lambda snapshot: (
        keyed({kind: value(totals) for kind, totals in snapshot.probes.items()}) or None
    )


def _probe_reasons(
    counts: Callable[[ProbeTotals], Mapping[str, int]],
) -> Callable[[DiskSnapshot], Value]:
    """Return the counts of the reasons that occurred.

    The 20 reasons of each kind, most of which never occur, would be a fifth of all series of a
    disk. Alerts do not need them: they use the number of runs and the result of the last one.
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
    """Return a value of the last run of each kind; None before the first run."""
    return _probes(lambda totals: None if totals.last is None else value(totals.last))


_PROBED = "by probes (4 KiB, one in flight, at a low fixed rate), from the bins of fio."
_LAST_RUN = "of the last probe that ran (was not skipped)"
_PROBED_LATENCIES: Mapping[Profile, Buckets] = {
    "lean": Buckets(),
    "default": Buckets(SHORT_LATENCY_BOUNDS_S),
}

PROBE_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    lean(
        "disksla_probe_read_latency_seconds",
        f"Latency in seconds of reads {_PROBED}",
        _probe_latency("read-latency"),
        buckets=_PROBED_LATENCIES,
        is_histogram=True,
    ),
    lean(
        "disksla_probe_write_latency_seconds",
        f"Latency in seconds of writes {_PROBED}",
        _probe_latency("write-latency"),
        buckets=_PROBED_LATENCIES,
        is_histogram=True,
    ),
    lean(
        "disksla_probe_success",
        f"Success {_LAST_RUN}: 1 if latencies were measured, 0 if not.",
        _last_probe(lambda last: last.is_success),
        ("kind",),
    ),
    Metric(
        "disksla_probe_last_run_timestamp_seconds",
        f"Unix time in seconds of the end {_LAST_RUN}.",
        _last_probe(lambda last: last.timestamp_s),
        ("kind",),
    ),
    lean(
        "disksla_probe_last_attempt_timestamp_seconds",
        "Unix time in seconds at which the probe last ran, or was skipped for a temporary reason."
        " Before the first attempt, the time at which it was configured.",
        _probes(lambda totals: totals.last_attempt_s),
        ("kind",),
    ),
    lean(
        "disksla_probe_interval_seconds",
        "Configured seconds between two attempts. Absent if they are scheduled by `cron`.",
        lambda snapshot: keyed(snapshot.probe_intervals_s) or None,
        ("kind",),
    ),
    full(
        "disksla_probe_duration_seconds",
        f"Seconds from starting fio to its end, {_LAST_RUN}.",
        _last_probe(lambda last: last.duration_s),
        ("kind",),
    ),
    full(
        "disksla_probe_target_iops",
        f"Target rate of fio in requests per second, {_LAST_RUN}.",
        _last_probe(lambda last: last.target_iops),
        ("kind",),
    ),
    full(
        "disksla_probe_achieved_iops",
        f"Requests per second that fio completed, {_LAST_RUN}. Absent if it failed.",
        _last_probe(lambda last: last.achieved_iops),
        ("kind",),
    ),
    full(
        "disksla_probe_runs_total",
        "Probes that ran, failed or not.",
        _probes(lambda totals: totals.runs),
        ("kind",),
    ),
    Metric(
        "disksla_probe_failures_total",
        "Probes that ran and failed, by reason. timeout (stopped at the time limit), unplugged,"
        " no_space, read_only, permission, no_scratch_file (cannot create a scratch file),"
        " bad_output (fio printed no valid result) or error.",
        _probe_reasons(lambda totals: totals.failures),
        ("kind", "reason"),
    ),
    Metric(
        "disksla_probe_skipped_total",
        "Probes that did not run, by reason. docs/measure.md lists them.",
        _probe_reasons(lambda totals: totals.skips),
        ("kind", "reason"),
    ),
    full(
        "disksla_probe_ios_total",
        "Requests completed by probes.",
        _probes(lambda totals: totals.requests),
        ("kind",),
    ),
    full(
        "disksla_probe_bytes_total",
        "Bytes transferred by probes.",
        _probes(lambda totals: totals.transferred_bytes),
        ("kind",),
    ),
)


def _by_test(
    value: Callable[[SuiteTestResult], float | None],
) -> Callable[[VerificationReport], Value]:
    return lambda report: keyed({each.test: value(each) for each in report.tests}) or None


VERIFICATION_METRICS: tuple[Metric[VerificationReport], ...] = (
    lean(
        "disksla_verification_ratio",
        "Result of the last valid `disksla verify` as a ratio to the promise, by test. More is"
        " better: measured over promised for rates, promised over measured for latency.",
        _by_test(lambda result: result.ratio),
        ("test",),
    ),
    lean(
        "disksla_verification_required_ratio",
        "Ratio to the promise that the test requires for its request size. The test passes at this"
        " ratio less the configured tolerance.",
        _by_test(lambda result: result.required_ratio),
        ("test",),
    ),
    lean(
        "disksla_verification_passed",
        "Whether the test passed (1 yes, 0 no). Absent for an indicative latency, which"
        " cannot fail.",
        _by_test(lambda result: {"pass": 1.0, "fail": 0.0}.get(result.verdict)),
        ("test",),
    ),
    lean(
        "disksla_verification_timestamp_seconds",
        "Unix time in seconds at which the last valid `disksla verify` of the disk ended.",
        lambda report: report.ended_timestamp_s,
    ),
)
