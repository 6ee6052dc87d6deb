"""Import results of fio or DiskSpd that were made elsewhere, and judge them."""

import html
import quopri
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.units import format_count
from disksla.measure.verification.import_diskspd import is_diskspd, parse_diskspd
from disksla.measure.verification.import_fio import parse_fio_jobs
from disksla.measure.verification.import_fio_text import is_fio_text, parse_fio_text
from disksla.measure.verification.judge import judge_test, without_measurement
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.outside_suite import outside_test, within_unit
from disksla.measure.verification.preconditions import short_runtime
from disksla.measure.verification.report import SuiteTestResult
from disksla.measure.verification.suites import Suite, SuiteTest, suite_limits, within_limits
from disksla.promise.catalogue import Limits, SharedLimits

LARGEST_BYTES = 64 * 1024**2
"""Size limit of an imported file, far above any real result."""
_TAG = re.compile(
    r"</?(?:(html|head|body|div|p|pre|br|td|tr|table)|code|span|a|b|i)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\n +(?:read|write) ?: ?(?:IOPS|io)=")
_FIO_JSON = re.compile(r'"fio version\\?" ?:')
_MARK = re.compile(
    r"\"fio version\"|<Results>|Results for timespan|(?:read|write) ?: ?(?:IOPS|io)="
)
_LONGEST_PREFIX = 80
_LEAST_RATE_SHARE = 0.999
"""Share of the rate of a latency test; a rate that is lower was not just rounded."""
_MOST_TIMES = 3.0
"""Rate over the highest of the terms, from which on it is not that of the disk. Disks with limits
have up to 1.2 times; pd-standard of Google had 2.2, and once 9."""
_ANOTHER_DISK = "it is a cache, memory or another disk that was measured"
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
    if "<Results>" not in text and _TAG.search(text):
        text = html.unescape(_TAG.sub(lambda tag: "\n" if tag[1] else "", text))
    if _ESCAPED.search(text):  # as other programs keep a text of several lines
        text = re.sub(r"\\{1,8}n", "\n", text)
    text = _without_prefix(text)
    if is_diskspd(text):
        return parse_diskspd(text)
    if _FIO_JSON.search(text):
        return parse_fio_jobs(text)
    if is_fio_text(text) and (found := parse_fio_text(text)):
        return found
    if "'fio version'" in text:
        raise DiskslaError("found JSON of fio as Python prints it; expected that of json.dumps")
    beginning = " ".join(text[:1000].split())[:60]
    raise DiskslaError(
        f"found '{beginning}'; expected output of fio (JSON or normal) or DiskSpd (XML or text)"
    )


def _without_prefix(text: str) -> str:
    """Return a text without what stands before each line of a result.

    That is the mark of a quote or of a comment, or a time: the numbers differ in each line.
    """
    for mark in _MARK.finditer(text):
        before = text[max(0, mark.start() - _LONGEST_PREFIX) : mark.start()]
        prefix = before.rpartition("\n")[2].strip()
        if prefix and not {*prefix} & {*'{"'}:
            break
    else:
        return text
    parts = (re.escape(part) for part in re.split(r"\d+", prefix))
    return re.sub(rf"^[ \t]*{r'[0-9]+'.join(parts)}[ \t]?", "", text, flags=re.MULTILINE)


def judge_imported(
    suite: Suite,
    limits: Limits,
    measurements: tuple[Measurement, ...],
    tolerance_ratio: float,
    machine: Sequence[SharedLimits] = (),
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
        matching = _matching_test(suite, measurement)
        outside = outside_test(suite_limits(suite.name, limits), measurement)
        test = matching or (None if outside is None else outside.test)
        problem = _defect(measurement, tolerance_ratio)
        if problem is None and test is None:
            has_requests = measurement.measured.requests > 0
            problem = (
                "the terms promise nothing for such a load"
                if has_requests
                else "no request completed"
            )
        if test is None or problem or test.skip_reason:
            unjudged.append(f"{measurement.name}: {problem or (test and test.skip_reason)}")
            continue
        least = 1 if outside is None else outside.least_inflight
        result = _judge(test, measurement, tolerance_ratio, least)
        if result.verdict == "fail" and result.unit != "seconds" and outside is not None:
            reasons = [within_limits(outside.test, each, tolerance_ratio) for each in machine]
            reasons.append(within_unit(limits, measurement, tolerance_ratio))
            result = _untested(result, next(filter(None, reasons), ""))
        (judged[test.name] if matching else others).append(
            msgspec.structs.replace(result, in_suite=matching is not None)
        )
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
    load = (measurement.pattern, measurement.request_bytes, measurement.inflight)
    same = [t for t in suite.tests if (t.pattern, t.request_bytes, t.inflight) == load]
    return next((test for test in same if _is_at_rate(test, measurement)), None)


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


def _judge(
    test: SuiteTest, measurement: Measurement, tolerance_ratio: float, least_inflight: int
) -> SuiteTestResult:
    """Judge a measurement; a rate below the requirement must be one that the disk is at fault for.

    A load that asked for less than is promised, or kept fewer requests in flight than the promise
    needs, can pass, and cannot fail. A rate far above what the type can have is not a pass.
    """
    result = judge_test(test, measurement, tolerance_ratio)
    if result.unit == "seconds" or result.promised is None or result.measured is None:
        return result
    if result.verdict == "fail":
        return _untested(result, _why_untested(measurement, tolerance_ratio, least_inflight))
    times = result.measured / max(result.promised, result.burst or 0.0)
    is_another = times > _MOST_TIMES
    return _untested(result, f"{times:.3g} times the limit: {_ANOTHER_DISK}" if is_another else "")


def _why_untested(measurement: Measurement, tolerance_ratio: float, least_inflight: int) -> str:
    """Return why a load asks for less than a promise; "" if it does not."""
    rate_iops, mean = measurement.rate_iops, measurement.mean_inflight
    is_counted = measurement.counted_inflight is not None
    if rate_iops is not None and measurement.measured.iops >= rate_iops * (1 - tolerance_ratio):
        return f"it asked for only {format_count(rate_iops)} IOPS"
    if measurement.is_paced:
        return "it paused between requests, so it asked for less than it could"
    if measurement.inflight < least_inflight and not is_counted:
        return f"{measurement.inflight} in flight; the promise needs {least_inflight}"
    if measurement.waits and not is_counted:
        return (
            f"requests wait for each other ({measurement.waits}), and the result does not show how"
            " many were in flight at the disk (disk_util of fio)"
        )
    if mean < _LEAST_INFLIGHT_SHARE * least_inflight:
        where = "at the disk on average" if is_counted else "on average"
        return f"only {format_count(mean)} in flight {where}; the promise needs {least_inflight}"
    return ""


def _untested(result: SuiteTestResult, reason: str) -> SuiteTestResult:
    """Return a result that is untested if there is a reason."""
    return msgspec.structs.replace(result, verdict="untested", reason=reason) if reason else result


def _worst(results: list[SuiteTestResult]) -> SuiteTestResult:
    """Return the result that counts: a failure before a pass, and this before what is untested."""
    order = ("fail", "pass", "shown", "untested")
    return min(results, key=lambda result: (order.index(result.verdict), result.ratio or 0.0))


def _numbered(results: list[SuiteTestResult]) -> list[SuiteTestResult]:
    """Return the results with a number in the names that several have."""
    counts: Counter[str] = Counter()
    numbered = []
    for result in results:
        number = counts[result.test] = counts[result.test] + 1
        name = result.test if number == 1 else f"{result.test}-{number}"
        numbered.append(msgspec.structs.replace(result, test=name))
    return numbered
