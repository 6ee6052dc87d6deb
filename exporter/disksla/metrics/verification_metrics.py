"""Metrics of the last `disksla verify` of each disk."""

from collections.abc import Callable

from disksla.metrics.metric import Metric, Value
from disksla.verification import SuiteTestResult, VerificationReport


def _by_test(
    value: Callable[[SuiteTestResult], float | None],
) -> Callable[[VerificationReport], Value]:
    """Return the values of the tests that were judged or shown, by test."""

    def values(report: VerificationReport) -> Value:
        by_test = {(result.test,): value(result) for result in report.tests}
        return {test: number for test, number in by_test.items() if number is not None} or None

    return values


def _passed(result: SuiteTestResult) -> float | None:
    return {"pass": 1.0, "fail": 0.0}.get(result.verdict)


VERIFICATION_METRICS: tuple[Metric[VerificationReport], ...] = (
    Metric(
        "disksla_verification_ratio",
        "gauge",
        "Share of the promise that the last `disksla verify` measured, by test: of rates measured"
        " over promised, of latency promised over measured, so that more is better.",
        _by_test(lambda result: result.ratio),
        ("test",),
    ),
    Metric(
        "disksla_verification_required_ratio",
        "gauge",
        "Share of the promise that the provider stands by for requests of that size; a test passes"
        " at this, less the tolerance of the configuration.",
        _by_test(lambda result: result.required_ratio),
        ("test",),
    ),
    Metric(
        "disksla_verification_passed",
        "gauge",
        "Whether the test was passed (1 yes, 0 no). A latency that is not guaranteed has no"
        " sample: it cannot fail.",
        _by_test(_passed),
        ("test",),
    ),
    Metric(
        "disksla_verification_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which the last `disksla verify` of this disk ended.",
        lambda report: report.ended_timestamp_s,
    ),
)
