"""Import results of fio or DiskSpd that were made elsewhere, and judge them by a suite."""

from disksla.errors import DiskslaError
from disksla.units import format_count, format_size
from disksla.verification.import_diskspd import is_diskspd, parse_diskspd
from disksla.verification.import_fio import parse_fio_jobs
from disksla.verification.judge import judge_test, skipped_test
from disksla.verification.measurement import Measurement
from disksla.verification.preconditions import short_runtime
from disksla.verification.report import SuiteTestResult
from disksla.verification.suites import Suite, SuiteTest

LARGEST_BYTES = 64 * 1024**2
"""Size limit of an imported file, far above any real result."""
_MOST_SHOWN = 60
_LEAST_RATE_SHARE = 0.999
"""Share of the rate of a latency test; a rate that is lower was not just rounded."""


def decode_text(data: bytes) -> str:
    """Return the text of a result: UTF-8, or UTF-16 as PowerShell writes redirected output."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def parse_result(text: str) -> tuple[Measurement, ...]:
    """Return the measurements in a result of fio (JSON) or DiskSpd (XML or text).

    Raise DiskslaError for any other text.
    """
    if is_diskspd(text):
        return parse_diskspd(text)
    if "{" in text:
        return parse_fio_jobs(text)
    beginning = " ".join(text.split())[:_MOST_SHOWN]
    raise DiskslaError(
        f"found '{beginning}'; expected fio JSON (--output-format=json), or DiskSpd XML or text"
    )


def judge_imported(
    suite: Suite, measurements: tuple[Measurement, ...], tolerance_ratio: float
) -> tuple[tuple[SuiteTestResult, ...], tuple[str, ...]]:
    """Return the result of each test, and the measurements not judged, each with its reason.

    If several measurements belong to one test, the worst one counts.
    """
    judged: dict[str, list[SuiteTestResult]] = {test.name: [] for test in suite.tests}
    unjudged = []
    for measurement in measurements:
        test = _matching_test(suite, measurement)
        problem = (
            _mismatch(suite, measurement)
            if test is None
            else _defect(test, measurement, tolerance_ratio)
        )
        if test is None or problem:
            unjudged.append(f"{measurement.name}: {problem}")
        else:
            judged[test.name].append(judge_test(test, measurement, tolerance_ratio))
    results = (
        min(judged[test.name], key=lambda result: result.ratio or 0.0)
        if judged[test.name]
        else skipped_test(test, test.skip_reason or "not in the imported result")
        for test in suite.tests
    )
    return tuple(results), tuple(unjudged)


def _matching_test(suite: Suite, measurement: Measurement) -> SuiteTest | None:
    """Return the test with the same kind of requests, or None."""
    return next(
        (
            test
            for test in suite.tests
            if (test.pattern, test.request_bytes, test.inflight)
            == (measurement.pattern, measurement.request_bytes, measurement.inflight)
            and (test.rate_iops is None) == (measurement.rate_iops is None)
        ),
        None,
    )


def _mismatch(suite: Suite, measurement: Measurement) -> str:
    """Return the first condition by which a measurement differs from all tests."""
    at_rate = (
        "" if measurement.rate_iops is None else f" at {format_count(measurement.rate_iops)} IOPS"
    )
    size = format_size(measurement.request_bytes)
    found = f"found {measurement.pattern}, {size}, {measurement.inflight} in flight{at_rate}"
    same_pattern = [test for test in suite.tests if test.pattern == measurement.pattern]
    same_size = [test for test in same_pattern if test.request_bytes == measurement.request_bytes]
    if not same_pattern:
        patterns = ", ".join(sorted({test.pattern for test in suite.tests}))
        return f"{found}; suite {suite.name} expects one of {patterns}"
    if not same_size:
        sizes = sorted({test.request_bytes for test in same_pattern})
        shown = ", ".join(format_size(each) for each in sizes)
        return f"{found}; suite {suite.name} expects {measurement.pattern} of {shown}"
    depths = sorted({test.inflight for test in same_size})
    if measurement.inflight not in depths:
        return f"{found}; suite {suite.name} expects {', '.join(map(str, depths))} in flight"
    rate = "at a fixed rate" if at_rate else "without a fixed rate"
    return f"{found}; suite {suite.name} has no such test {rate}"


def _defect(test: SuiteTest, measurement: Measurement, tolerance_ratio: float) -> str | None:
    """Return why a measurement of the right kind cannot be judged; None if it can."""
    short = short_runtime(measurement.measured.runtime_s, tolerance_ratio)
    if not measurement.is_direct:
        return "found buffered I/O, which measures the cache of the system; expected direct I/O"
    if short is not None:
        return short.message
    rate_iops = measurement.rate_iops or 0.0
    if test.rate_iops is not None and rate_iops < test.rate_iops * _LEAST_RATE_SHARE:
        return (
            f"found a rate of {format_count(rate_iops)} IOPS; expected"
            f" {format_count(test.rate_iops)} IOPS, at which the latency is promised"
        )
    return None
