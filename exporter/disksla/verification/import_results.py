"""Import results of fio or DiskSpd that were made elsewhere, and judge them."""

import quopri
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from disksla.errors import DiskslaError
from disksla.limits import Limits, SharedLimits
from disksla.units import format_count
from disksla.verification.import_diskspd import is_diskspd, parse_diskspd
from disksla.verification.import_fio import parse_fio_jobs
from disksla.verification.import_fio_text import is_fio_text, parse_fio_text
from disksla.verification.judge import judge_test, without_measurement
from disksla.verification.measurement import Measurement
from disksla.verification.outside_suite import OutsideTest, outside_test
from disksla.verification.preconditions import short_runtime
from disksla.verification.report import SuiteTestResult
from disksla.verification.suites import Suite, SuiteTest, suite_limits, within_limits

LARGEST_BYTES = 64 * 1024**2
"""Size limit of an imported file, far above any real result."""
_MOST_SHOWN = 60
_QUOTE = re.compile(r"^(?:>[ \t]?)++", re.MULTILINE)
"""What mail programs put before the lines that they quote. Without the second plus, `re` keeps
each repetition in memory."""
_NO_REQUEST = "no request completed"
_LEAST_RATE_SHARE = 0.999
"""Share of the rate of a latency test; a rate that is lower was not just rounded."""
_LEAST_INFLIGHT_SHARE = 0.8
"""Share of the requests in flight on average of a queue that was full: the time in which fio
submits and collects requests is not part of the latency."""


def decode_text(data: bytes) -> str:
    """Return the text of a result: UTF-8, or UTF-16 as PowerShell writes redirected output."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def parse_result(text: str) -> tuple[Measurement, ...]:
    """Return the measurements in a result of fio (JSON or normal) or DiskSpd (XML or text).

    Raise DiskslaError for any other text.
    """
    if "(groupid=3D" in text:  # a mail as it was sent, in quoted-printable
        text = decode_text(quopri.decodestring(text.encode(errors="replace")))
    text = _QUOTE.sub("", text)
    if is_diskspd(text):
        return parse_diskspd(text)
    if '"fio version"' in text or text.lstrip().startswith("{"):
        return parse_fio_jobs(text)
    if is_fio_text(text):
        return parse_fio_text(text)
    beginning = " ".join(text.split())[:_MOST_SHOWN]
    raise DiskslaError(
        f"found '{beginning}'; expected output of fio (JSON or normal) or DiskSpd (XML or text)"
    )


def judge_imported(
    suite: Suite,
    limits: Limits,
    measurements: tuple[Measurement, ...],
    tolerance_ratio: float,
    machine: Iterable[SharedLimits] = (),
) -> tuple[tuple[SuiteTestResult, ...], tuple[str, ...]]:
    """Return the results, and the measurements that were not judged, each with its reason.

    The results are those of each test of the suite, then those of the loads that are not part of
    it, which are judged by the limits. If several measurements belong to one test, the worst one
    counts.
    """
    judged: dict[str, list[SuiteTestResult]] = {test.name: [] for test in suite.tests}
    others: list[SuiteTestResult] = []
    unjudged: list[str] = []
    for measurement in measurements:
        test = _matching_test(suite, measurement)
        outside = outside_test(suite_limits(suite.name, limits), measurement)
        problem = _defect(measurement, tolerance_ratio)
        if problem is None and test is not None:
            problem = test.skip_reason
        if problem:
            unjudged.append(f"{measurement.name}: {problem}")
        elif test is not None:
            judged[test.name].append(_judge(test, measurement, tolerance_ratio, test.inflight))
        elif outside is not None:
            others.append(_judge_outside(outside, measurement, tolerance_ratio, machine))
        else:
            has_requests = measurement.measured.requests > 0
            why = "the terms promise nothing for such a load" if has_requests else _NO_REQUEST
            unjudged.append(f"{measurement.name}: {why}")
    results = [
        _worst(judged[test.name])
        if judged[test.name]
        else without_measurement(test, "untested", "not in the imported result")
        if test.requirement is not None
        else without_measurement(test, "skipped", test.skip_reason)
        for test in suite.tests
    ]
    return (*results, *_numbered(others)), tuple(unjudged)


def _matching_test(suite: Suite, measurement: Measurement) -> SuiteTest | None:
    """Return the test with the same load, or None. A test of latency needs its rate."""
    return next(
        (
            test
            for test in suite.tests
            if (test.pattern, test.request_bytes, test.inflight)
            == (measurement.pattern, measurement.request_bytes, measurement.inflight)
            and _is_at_rate(test, measurement)
        ),
        None,
    )


def _is_at_rate(test: SuiteTest, measurement: Measurement) -> bool:
    if test.rate_iops is None or measurement.rate_iops is None:
        return test.rate_iops is None and measurement.rate_iops is None
    return (
        measurement.rate_iops >= test.rate_iops * _LEAST_RATE_SHARE
        and measurement.measured.mean_latency_s is not None
    )


def _defect(measurement: Measurement, tolerance_ratio: float) -> str | None:
    """Return why a measurement cannot be judged; None if it can."""
    if len(measurement.targets) > 1:
        return (
            f"found a load of several disks or directories ({', '.join(measurement.targets)});"
            " expected one disk"
        )
    if measurement.problem:
        return measurement.problem
    if measurement.is_direct is None:
        return (
            "the result does not say whether I/O was direct; use --direct if it was, or"
            " --output-format=json"
        )
    if not measurement.is_direct:
        return (
            "found buffered I/O, which measures the cache and not the disk; expected direct I/O"
            " (direct=1 of fio, -Sh of DiskSpd)"
        )
    short = short_runtime(measurement.measured.runtime_s, tolerance_ratio)
    return None if short is None else short.message


def _judge_outside(
    outside: OutsideTest,
    measurement: Measurement,
    tolerance_ratio: float,
    machine: Iterable[SharedLimits],
) -> SuiteTestResult:
    test = outside.test
    result = _judge(test, measurement, tolerance_ratio, outside.least_inflight)
    reasons = [within_limits(test, shared, tolerance_ratio) for shared in machine]
    if measurement.measured.iops >= outside.iops_at_latency * (1 - tolerance_ratio):
        iops = format_count(outside.iops_at_latency)
        reasons.append(f"at the stated latency, {measurement.inflight} in flight are {iops} IOPS")
    reason = next(filter(None, reasons), None)
    if reason is not None and result.verdict == "fail":
        result = _untested(result, reason)
    return msgspec.structs.replace(result, in_suite=False)


def _judge(
    test: SuiteTest, measurement: Measurement, tolerance_ratio: float, least_inflight: int
) -> SuiteTestResult:
    """Judge a measurement; a rate below the requirement must be one that the disk is at fault for.

    A load that asked for less than is promised, or kept fewer requests in flight than the promise
    needs, can pass, and cannot fail.
    """
    result = judge_test(test, measurement, tolerance_ratio)
    if result.verdict != "fail" or result.unit == "seconds":
        return result
    rate_iops, iops = measurement.rate_iops, measurement.measured.iops
    if rate_iops is not None and iops >= rate_iops * (1 - tolerance_ratio):
        return _untested(result, f"it asked for only {format_count(rate_iops)} IOPS")
    if measurement.is_paced:
        return _untested(result, "it paused between requests, so it asked for less than it could")
    if measurement.inflight < least_inflight:
        return _untested(
            result, f"{measurement.inflight} in flight; the promise needs {least_inflight}"
        )
    mean = measurement.mean_inflight
    if mean < _LEAST_INFLIGHT_SHARE * least_inflight:
        return _untested(
            result,
            f"only {format_count(mean)} in flight on average; the promise needs {least_inflight}",
        )
    return result


def _untested(result: SuiteTestResult, reason: str) -> SuiteTestResult:
    return msgspec.structs.replace(result, verdict="untested", reason=reason)


def _worst(results: list[SuiteTestResult]) -> SuiteTestResult:
    """Return the result that counts: a failure before a pass, and this before what is untested."""
    order = ("fail", "pass", "shown", "untested")
    return min(results, key=lambda result: (order.index(result.verdict), result.ratio or 0.0))


def _numbered(results: list[SuiteTestResult]) -> list[SuiteTestResult]:
    """Return the results with a number in the names that several have."""
    counts: Counter[str] = Counter()
    numbered = []
    for result in results:
        counts[result.test] += 1
        number = counts[result.test]
        name = result.test if number == 1 else f"{result.test}-{number}"
        numbered.append(msgspec.structs.replace(result, test=name))
    return numbered
