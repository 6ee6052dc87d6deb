"""Metrics of the last `disksla verify` of each disk."""

from collections.abc import Callable

from disksla.measure.verification import SuiteTestResult, VerificationReport
from disksla.serve.metrics.metric import Metric, Value, keyed


def _by_test(
    value: Callable[[SuiteTestResult], float | None],
) -> Callable[[VerificationReport], Value]:
    return lambda report: keyed({each.test: value(each) for each in report.tests}) or None


def _passed(result: SuiteTestResult) -> float | None:
    return {"pass": 1.0, "fail": 0.0}.get(result.verdict)


VERIFICATION_METRICS: tuple[Metric[VerificationReport], ...] = (
    Metric(
        "disksla_verification_ratio",
        "Result of the last valid `disksla verify` of the disk as a ratio to the promise, by test:"
        " measured over promised for rates, promised over measured for latency, so that more is"
        " better. Absent for skipped tests.",
        _by_test(lambda result: result.ratio),
        ("test",),
        profile="lean",
    ),
    Metric(
        "disksla_verification_required_ratio",
        "Ratio to the promise that the test requires for its request size. The test passes at this"
        " ratio less the configured tolerance. Absent for skipped tests.",
        _by_test(lambda result: result.required_ratio),
        ("test",),
        profile="lean",
    ),
    Metric(
        "disksla_verification_passed",
        "Whether the test passed (1 yes, 0 no). Absent for skipped tests, and for an indicative"
        " latency, which cannot fail.",
        _by_test(_passed),
        ("test",),
        profile="lean",
    ),
    Metric(
        "disksla_verification_timestamp_seconds",
        "Unix time in seconds at which the last valid `disksla verify` of the disk ended. Absent"
        " without one.",
        lambda report: report.ended_timestamp_s,
        profile="lean",
    ),
)
