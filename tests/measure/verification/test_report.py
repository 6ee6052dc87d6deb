"""Judging of measurements, and the report and its verdict that follow."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import MIB
from disksla.measure.fio.result import NOTHING, DirectionResult
from disksla.measure.verification.judge import judge_test, make_report, without_measurement
from disksla.measure.verification.measurement import Measurement, Percentile
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import (
    SuiteTestResult,
    SuiteTestVerdict,
    VerificationReport,
    decode_report,
    encode_report,
    format_result,
    format_subject,
    report_verdict,
)
from disksla.measure.verification.suites import Suite, SuiteTest, make_suite
from disksla.promise.catalogue.limits import Assignment
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumBurst,
    SumTerms,
    custom_limits,
)
from support.reports import RESULTS, a_report
from support.simulated_host import a_disk

TOLERANCE = 0.03
TERMS = SeparateTerms(
    read_iops=1000.0, read_bytes_per_second=100.0 * MIB, write_iops=500.0, latency_s=0.002
)
SUITE = make_suite("vk", custom_limits(TERMS), TOLERANCE)
ASSIGNMENT = Assignment("vk.ceph-ssd", "vk", "", 2**40, custom_limits(TERMS))
OTHER_LOAD = Violation("other_load", "other load")


def suite_test(test: str, suite: Suite = SUITE) -> SuiteTest:
    return next(each for each in suite.tests if each.name == test)


def measurement(test: SuiteTest, iops: float, mean_latency_s: float | None = 0.001) -> Measurement:
    done = DirectionResult(
        int(10 * iops),
        int(10 * iops) * test.request_bytes,
        10.0,
        iops,
        iops * test.request_bytes,
        mean_latency_s if iops else None,
    )
    return Measurement(
        name="x",
        tool="fio-3.33",
        pattern=test.pattern,
        request_bytes=test.request_bytes,
        inflight=test.inflight,
        read=NOTHING if test.writes else done,
        write=done if test.writes else NOTHING,
        percentiles=(Percentile(0.5, 0.001), Percentile(0.99, 0.004)),
    )


def judge(test: str, iops: float, mean_latency_s: float | None = 0.001) -> SuiteTestResult:
    return judge_test(
        suite_test(test), measurement(suite_test(test), iops, mean_latency_s), TOLERANCE
    )


@pytest.mark.parametrize(
    ("test", "iops", "verdict", "ratio", "required_ratio"),
    [
        ("randread-4k", 1000.0, "pass", 1.0, 1.0),
        ("randread-4k", 971.0, "pass", 0.971, 1.0),
        ("randread-4k", 969.0, "fail", 0.969, 1.0),
        ("randread-8k", 700.0, "fail", 0.7, 0.75),
        ("randread-8k", 730.0, "pass", 0.73, 0.75),
        ("randread-16k", 700.0, "pass", 0.7, 0.5),
        ("read-1m", 100.0, "pass", 1.0, 1.0),
        ("read-1m", 70.0, "fail", 0.7, 1.0),
        ("randread-4k", 0.0, "fail", 0.0, 1.0),
        ("write-1m", 1000.0, "skipped", None, None),
    ],
)
def test_rate_passes_within_tolerance(
    test: str, iops: float, verdict: str, ratio: float | None, required_ratio: float | None
) -> None:
    found = judge(test, iops)
    assert (found.verdict, found.level) == (verdict, None)
    assert (found.ratio, found.required_ratio) == pytest.approx((ratio, required_ratio))
    reason = {"skipped": "the terms promise no bandwidth for writes"}.get(verdict, "")
    assert found.reason == (reason if iops else "no request completed")


@pytest.mark.parametrize(
    ("iops", "mean_latency_s", "verdict", "ratio", "reason"),
    [
        (970.0, 0.001, "pass", 2.0, ""),
        (970.0, 0.00206, "pass", 0.97087, ""),
        (970.0, 0.0021, "fail", 0.95238, ""),
        (970.0, 0.0, "pass", 2e6, ""),
        (600.0, 0.05, "fail", 0.04, "the disk completed only 600 of 970 IOPS, so requests queued"),
        (0.0, None, "fail", 0.0, "no request completed"),
    ],
)
def test_latency_passes_within_tolerance(
    iops: float, mean_latency_s: float | None, verdict: str, ratio: float, reason: str
) -> None:
    found = judge("latency-randread-4k", iops, mean_latency_s)
    assert (found.verdict, found.unit, found.measured) == (verdict, "seconds", mean_latency_s)
    assert found.ratio == pytest.approx(ratio, rel=1e-4)
    assert (found.reason, found.level) == (reason, None)


def test_indicative_latency_never_fails() -> None:
    terms = msgspec.structs.replace(TERMS, latency_kind="indicative")
    test = suite_test("latency-randread-4k", make_suite("vk", custom_limits(terms), TOLERANCE))
    found = judge_test(test, measurement(test, 970.0, 0.05), TOLERANCE)
    assert found.verdict == "shown"
    assert found.ratio == pytest.approx(0.04)
    assert found.reason == "the latency is indicative; it is shown, not judged"


@pytest.mark.parametrize(
    ("iops", "is_throttled", "level"),
    [
        (300.0, True, "base"),
        (308.0, False, "base"),
        (200.0, False, "base"),
        (900.0, False, "burst"),
        (900.0, True, "burst_then_base"),
    ],
)
def test_level_is_reported_for_terms_with_credits(
    iops: float, is_throttled: bool, level: str
) -> None:
    terms = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0))
    test = make_suite("terms", custom_limits(terms), TOLERANCE).tests[0]
    found = judge_test(test, measurement(test, iops), TOLERANCE, is_throttled_at_base=is_throttled)
    assert found.level == level
    assert judge("randread-4k", iops).level is None


@pytest.mark.parametrize(
    ("verdicts", "violations", "verdict", "status"),
    [
        (("pass", "skipped", "shown"), (), "kept", 0),
        (("pass", "untested"), (), "part", 3),
        (("fail", "untested"), (), "broken", 1),
        (("untested", "shown"), (), "incomplete", 2),
        (("pass", "fail"), (), "broken", 1),
        (("pass", "fail", "unmeasured"), (), "incomplete", 2),
        (("skipped", "shown"), (), "incomplete", 2),
        ((), (), "incomplete", 2),
        (("pass",), (OTHER_LOAD,), "not_valid", 2),
        (("fail",), (OTHER_LOAD,), "not_valid", 2),
        (("unmeasured",), (OTHER_LOAD,), "not_valid", 2),
    ],
)
def test_report_verdict_follows_from_results(
    verdicts: tuple[SuiteTestVerdict, ...],
    violations: tuple[Violation, ...],
    verdict: str,
    status: int,
) -> None:
    results = tuple(
        SuiteTestResult(test="x", caption="", writes=False, verdict=each) for each in verdicts
    )
    assert report_verdict(results, violations) == verdict
    assert report_of(results, violations).status == status


def report_of(
    results: tuple[SuiteTestResult, ...], violations: tuple[Violation, ...] = ()
) -> VerificationReport:
    return make_report(
        SUITE,
        ASSIGNMENT,
        a_disk("vdb", serial="vol-1", model="M", wwn="0x5"),
        results,
        target="device",
        tool="fio 3.33",
        tolerance_ratio=TOLERANCE,
        began_timestamp_s=1.7e9,
        ended_timestamp_s=1.7e9 + 60,
        violations=violations,
    )


def test_report_identifies_its_disk() -> None:
    report = report_of((judge("randread-4k", 1000.0),))
    assert (report.device, report.key, report.serial) == ("vdb", "wwn:0x5", "vol-1")
    assert report.terms == "vk.ceph-ssd"


cases = st.builds(
    judge,
    st.sampled_from([each.name for each in SUITE.tests]),
    st.floats(0, 1e6),
    st.floats(0, 100),
) | st.sampled_from([without_measurement(each, "unmeasured", "why") for each in SUITE.tests])


@given(
    st.lists(cases, max_size=4).map(tuple), st.lists(st.just(OTHER_LOAD), max_size=1).map(tuple)
)
def test_report_round_trips_through_json(
    results: tuple[SuiteTestResult, ...], violations: tuple[Violation, ...]
) -> None:
    report = report_of(results, violations)
    assert decode_report(encode_report(report)) == report


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_more_iops_are_never_judged_worse(one: float, other: float) -> None:
    less, more = (judge("randread-8k", iops) for iops in sorted((one, other)))
    assert less.ratio is not None
    assert more.ratio is not None
    assert less.ratio <= more.ratio
    assert less.verdict == "fail" or more.verdict == "pass"


GOOD = encode_report(report_of((judge("randread-4k", 1000.0),)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"kept"', b'"broken"', "found verdict 'broken'; expected 'kept'"),
        (b'"kept"', b'"lovely"', "invalid verification report"),
        (b'"disksla_verification": 1', b'"disksla_verification": 2', "Invalid enum value"),
        (b'"measured": 1000.0', b'"measured": -1.0', ">= 0"),
        (b'"tool"', b'"fool"', "invalid verification report"),
        (GOOD, b"", "invalid verification report"),
        (GOOD, b"[" * 100_000, "invalid verification report"),
        (b"vol-1", b"\xff", "invalid verification report"),
    ],
)
def test_invalid_report_is_rejected(old: bytes, new: bytes, message: str) -> None:
    assert old in GOOD
    with pytest.raises(DiskslaError, match=message):
        decode_report(GOOD.replace(old, new))


@given(st.binary() | st.integers(0, len(GOOD)).map(lambda end: GOOD[:end]))
def test_any_bytes_are_decoded_or_rejected(text: bytes) -> None:
    try:
        decode_report(text)
    except DiskslaError:
        return
    assert text.strip() == GOOD.strip()


def test_result_is_one_sentence() -> None:
    sentences = {result.test: format_result(result) for result in RESULTS}
    assert sentences["read-1m"] == (
        "500 MiB/s measured, at least 125 MiB/s required (bandwidth limit of 125 MiB/s)"
    )
    assert sentences["latency-randread-4k"] == (
        "2 ms measured, at most 3 ms required (mean latency; the limit is indicative);"
        " the latency is indicative; it is shown, not judged"
    )
    assert sentences["randwrite-4k"] == "fio was stopped"


def test_subject_of_custom_terms_and_imported_results() -> None:
    custom = a_report(terms="custom")
    assert format_subject(custom) == "disk vdb, terms from the configuration"
    imported = a_report(device=None, target="elsewhere")
    assert format_subject(imported) == "imported result, terms vk.ceph-ssd"
    imported = a_report(target="elsewhere")
    assert format_subject(imported) == "imported result for disk vdb, terms vk.ceph-ssd"
