"""Import results of fio or DiskSpd that were made elsewhere, and judge them."""

import html
import math
import quopri
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from disksla.base.errors import DiskslaError
from disksla.base.units import format_count, format_size
from disksla.measure.verification.import_diskspd import is_diskspd, parse_diskspd
from disksla.measure.verification.import_fio import parse_fio_jobs
from disksla.measure.verification.import_fio_text import is_fio_text, parse_fio_text
from disksla.measure.verification.judge import judge_test, without_measurement
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.preconditions import short_runtime
from disksla.measure.verification.report import SuiteTestResult
from disksla.measure.verification.suites import (
    Suite,
    SuiteTest,
    caption,
    requirement_of,
    short_name,
    suite_limits,
    within_limits,
)
from disksla.promise.catalogue import Limits, SharedLimits, Work

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
    names: Counter[str] = Counter()
    for load in measurements:
        matching, outside = _matching_test(suite, load), outside_test(suite, limits, load)
        test = matching or outside
        problem = _defect(load, test, tolerance_ratio)
        if test is None or problem:
            unjudged.append(f"{load.name}: {problem}")
            continue
        result = judge_test(test, load, tolerance_ratio)
        if result.unit != "seconds" and outside is not None:
            reasons = _why_untested(
                result, load, tolerance_ratio, test=outside, limits=limits, machine=machine
            )
            if reason := next(filter(None, reasons), ""):
                result = replace(result, verdict="untested", reason=reason)
        if matching is not None:
            judged[test.name].append(result)
            continue
        names[test.name] += 1
        number = f"-{names[test.name]}" if names[test.name] > 1 else ""
        others.append(replace(result, test=f"{test.name}{number}", in_suite=False))
    order = ("fail", "pass", "shown", "untested")
    results = [
        min(found, key=lambda each: (order.index(each.verdict), each.ratio or 0.0))
        if (found := judged[test.name])
        else without_measurement(test, "untested", "not in the imported result")
        if test.requirement is not None
        else without_measurement(test, "skipped", test.skip_reason)
        for test in suite.tests
    ]
    return (*results, *others), tuple(unjudged)


def outside_test(suite: Suite, limits: Limits, load: Measurement) -> SuiteTest | None:
    """Return a test of exactly this load: any mix, size and queue depth.

    None where nothing is promised for it, or nothing was done.
    """
    requests, write_share = load.measured.requests, load.write_share
    if not requests:
        return None
    request = Work(  # the mean of the load
        1 - write_share, write_share, load.read.bytes / requests, load.write.bytes / requests
    )
    found = requirement_of(suite_limits(suite.name, limits), request, load.request_bytes)
    if found is None:
        return None
    mix = f"-w{round(100 * write_share)}" if load.pattern in {"rw", "randrw"} else ""
    words = caption(load.pattern, write_share, load.request_bytes, load.inflight)
    at_rate = "" if load.rate_iops is None else f", at {format_count(load.rate_iops)} IOPS"
    return SuiteTest(
        name=f"{short_name(load.pattern, load.request_bytes)}{mix}-q{load.inflight}",
        caption=f"{words}{at_rate} (job {load.name})",
        pattern=load.pattern,
        request_bytes=load.request_bytes,
        write_share=write_share,
        queue_depth=load.inflight,
        requirement=found,
    )


def _matching_test(suite: Suite, measurement: Measurement) -> SuiteTest | None:
    """Return the test with the same load, or None. A test of latency needs its rate."""
    load = (measurement.pattern, measurement.request_bytes, measurement.inflight)
    rate_iops, has_latency = measurement.rate_iops, measurement.measured.mean_latency_s is not None
    for test in suite.tests:
        if (test.pattern, test.request_bytes, test.inflight) == load:
            if test.rate_iops is None and rate_iops is None:
                return test
            least_iops = (test.rate_iops or math.inf) * _LEAST_RATE_SHARE
            if has_latency and (rate_iops or 0.0) >= least_iops:
                return test
    return None


def _defect(measurement: Measurement, test: SuiteTest | None, tolerance_ratio: float) -> str:
    """Return why a measurement cannot be judged by its test; "" if it can."""
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
    if short is not None:
        return short.message
    requests = measurement.measured.requests
    nothing = "the terms promise nothing for such a load" if requests else "no request completed"
    return nothing if test is None else test.skip_reason


def _why_untested(
    result: SuiteTestResult,
    load: Measurement,
    tolerance_ratio: float,
    *,
    test: SuiteTest,
    limits: Limits,
    machine: Sequence[SharedLimits],
) -> Iterator[str]:
    """Yield why a rate says nothing of the disk, with "" where there is no reason.

    A load that asked for less than is promised, or kept fewer requests in flight than the promise
    needs, can pass, and cannot fail. A rate far above what the type can have is not a pass.
    """
    if result.verdict != "fail":
        times = (result.measured or 0.0) / max(result.promised or 0.0, result.burst or 0.0)
        yield f"{times:.3g} times the limit: {_ANOTHER_DISK}" if times > _MOST_TIMES else ""
        return
    least_inflight = test.requirement.least_inflight if test.requirement else 1
    yield _asked_for_less(load, tolerance_ratio, least_inflight)
    for shared in machine:
        yield within_limits(test, shared, tolerance_ratio)
    # A load that one allocation unit may serve proves nothing.
    unit, read, write = limits.one_unit, load.read, load.write
    work = Work(read.iops, write.iops, read.bytes_per_second, write.bytes_per_second)
    if unit is not None and (work.load(unit.promise_charges, 1.0) or 0.0) >= 1 - tolerance_ratio:
        each = f"each allocation unit of {format_size(unit.size_bytes)} has its own limit"
        yield f"{each}, and it may not have used all units"


def _asked_for_less(measurement: Measurement, tolerance_ratio: float, least_inflight: int) -> str:
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
