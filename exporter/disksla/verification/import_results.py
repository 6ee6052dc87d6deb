"""Results that were made elsewhere: to which test of a suite a measurement belongs, if to any."""

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
"""No result that a person would hand in is as long as this."""
_MOST_SHOWN = 60


def decode_text(data: bytes) -> str:
    """Give the text of a result: UTF-8, or what PowerShell writes when output is redirected."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def parse_result(text: str) -> tuple[Measurement, ...]:
    """Give the measurements of a result of fio (JSON) or DiskSpd (XML or text).

    Raises Refusal, with what was found, for anything else.
    """
    if is_diskspd(text):
        return parse_diskspd(text)
    if "{" in text:
        return parse_fio_jobs(text)
    beginning = " ".join(text.split())[:_MOST_SHOWN]
    raise DiskslaError(
        f"neither JSON of fio (--output-format=json) nor XML or text of DiskSpd: '{beginning}'"
    )


def judge_imported(
    suite: Suite, measurements: tuple[Measurement, ...], tolerance_ratio: float
) -> tuple[tuple[SuiteTestResult, ...], tuple[str, ...]]:
    """Judge each test of a suite by the measurement that belongs to it.

    Given are the tests, and the measurements that were not judged, each with the reason. Of
    several measurements of one test the worst counts.
    """
    judged: dict[str, list[SuiteTestResult]] = {test.name: [] for test in suite.tests}
    unjudged = []
    for measurement in measurements:
        test = _test_of(suite, measurement)
        problem = (
            _misfit(suite, measurement)
            if test is None
            else _unfit(test, measurement, tolerance_ratio)
        )
        if test is None or problem:
            unjudged.append(f"{measurement.name}: {problem}")
        else:
            judged[test.name].append(judge_test(test, measurement, tolerance_ratio))
    tests = (
        min(judged[test.name], key=lambda each: each.ratio or 0.0)
        if judged[test.name]
        else skipped_test(test, test.unpromised or "not in the result")
        for test in suite.tests
    )
    return tuple(tests), tuple(unjudged)


def _test_of(suite: Suite, measurement: Measurement) -> SuiteTest | None:
    """Tell the test by the kind of requests, their size and number, and whether at a rate."""
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


def _misfit(suite: Suite, measurement: Measurement) -> str:
    """Say in which of its conditions a measurement is like no test."""
    at_rate = (
        "" if measurement.rate_iops is None else f" at {format_count(measurement.rate_iops)} IOPS"
    )
    size = format_size(measurement.request_bytes)
    found = f"{measurement.pattern}, {size}, {measurement.inflight} in flight{at_rate}"
    alike = [test for test in suite.tests if test.pattern == measurement.pattern]
    same_size = [test for test in alike if test.request_bytes == measurement.request_bytes]
    if not alike:
        known = ", ".join(sorted({test.pattern for test in suite.tests}))
        return f"{found}; suite {suite.name} has {known} only"
    if not same_size:
        sizes = sorted({test.request_bytes for test in alike})
        known = ", ".join(format_size(size) for size in sizes)
        return f"{found}; suite {suite.name} has {measurement.pattern} of {known} only"
    depths = sorted({test.inflight for test in same_size})
    if measurement.inflight not in depths:
        return f"{found}; suite {suite.name} has {', '.join(map(str, depths))} in flight here"
    return (
        f"{found}; suite {suite.name} has no such test {'at a' if at_rate else 'without a'} rate"
    )


def _unfit(test: SuiteTest, measurement: Measurement, tolerance_ratio: float) -> str | None:
    """Say why a measurement cannot be judged although it is of the right kind."""
    short = short_runtime(measurement.measured.runtime_s, tolerance_ratio)
    if not measurement.is_direct:
        return "went through the cache of the operating system, so it did not measure the disk"
    if short is not None:
        return short.message
    if test.rate_iops is not None and (measurement.rate_iops or 0.0) < test.rate_iops * 0.999:
        rate = format_count(measurement.rate_iops or 0.0)
        return f"latency at {rate} IOPS, where it is promised at {format_count(test.rate_iops)}"
    return None
