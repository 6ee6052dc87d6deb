"""Plan a verification, compare measurements with requirements, and build the report."""

from typing import NamedTuple

from msgspec.structs import replace

from disksla import VERSION
from disksla.base.units import format_count
from disksla.kernel.disks import Disk, disk_key
from disksla.measure.fio import FioJob
from disksla.measure.verification.measurement import Measurement
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import (
    MeasuredLevel,
    SuiteTestResult,
    SuiteTestVerdict,
    Target,
    VerificationReport,
    report_verdict,
    summarize,
)
from disksla.measure.verification.suites import Suite, SuiteTest
from disksla.promise.catalogue import Assignment, Limits
from disksla.verdict.throttling import Verdict


def judge_test(
    test: SuiteTest,
    measurement: Measurement,
    tolerance_ratio: float,
    *,
    is_throttled_at_base: bool = False,
    other_share: float | None = None,
    window_seconds: dict[Verdict, float] | None = None,
) -> SuiteTestResult:
    """Compare a measurement with the requirement of its test.

    A rate passes if it is at least `required` less the tolerance, a latency if its mean is at most
    `required` plus the tolerance. `is_throttled_at_base` means that the limiter throttled the disk
    at its baseline by the end of the test.
    """
    requirement = test.requirement
    if requirement is None:
        return without_measurement(test, "skipped", test.skip_reason)
    done, promised = measurement.measured, requirement.promised
    is_latency = requirement.unit == "seconds"
    measured: float | None = getattr(done, "mean_latency_s" if is_latency else requirement.unit)
    ratio = (measured or 0.0) / promised
    if is_latency and measured is not None:
        ratio = promised / max(measured, 1e-9)
    required_ratio = requirement.required / promised
    passed = ratio >= required_ratio * (1 - tolerance_ratio)
    verdict: SuiteTestVerdict = "pass" if passed else "fail"
    reasons = []
    if not requirement.is_binding:
        verdict = "shown"
        reasons.append("the latency is indicative; it is shown, not judged")
    if not done.requests:
        reasons.append("no request completed")
    elif is_latency and done.iops < (test.rate_iops or 0.0) * (1 - tolerance_ratio):
        rates = f"{format_count(done.iops)} of {format_count(test.rate_iops or 0.0)}"
        reasons.append(f"the disk completed only {rates} IOPS, so requests queued")
    level: MeasuredLevel | None = None
    if requirement.burst is not None and measured is not None:
        level = "burst_then_base" if is_throttled_at_base else "burst"
        if measured <= promised * (1 + tolerance_ratio):
            level = "base"
    return replace(
        without_measurement(test, verdict, "; ".join(reasons)),
        burst=requirement.burst,
        measured=measured,
        ratio=ratio,
        required_ratio=required_ratio,
        level=level,
        iops=done.iops,
        bytes_per_second=done.bytes_per_second,
        mean_latency_s=done.mean_latency_s,
        percentiles=measurement.percentiles,
        runtime_s=done.runtime_s,
        other_share=other_share,
        window_seconds=window_seconds or {},
    )


def make_report(  # noqa: PLR0913 -- fields of the report, by name
    suite: Suite,
    assignment: Assignment,
    disk: Disk | None,
    results: tuple[SuiteTestResult, ...],
    *,
    target: Target,
    tool: str,
    tolerance_ratio: float,
    began_timestamp_s: float,
    ended_timestamp_s: float,
    violations: tuple[Violation, ...] = (),
    unjudged: tuple[str, ...] = (),
) -> VerificationReport:
    """Return the report of a run with these results; `disk` is None if it is not known."""
    return VerificationReport(
        disksla_version=VERSION,
        verdict=report_verdict(results, violations),
        summary=summarize(results, unjudged, is_imported=target == "elsewhere"),
        device=disk.name if disk else None,
        key=disk_key(disk) if disk else None,
        serial=disk.serial if disk else None,
        wwn=disk.wwn if disk else None,
        model=disk.model if disk else None,
        size_bytes=assignment.size_bytes,
        terms=assignment.terms,
        provider=assignment.provider,
        suite=suite.name,
        procedure=suite.source,
        tolerance_ratio=tolerance_ratio,
        target=target,
        tool=tool,
        began_timestamp_s=began_timestamp_s,
        ended_timestamp_s=ended_timestamp_s,
        violations=violations,
        unjudged=unjudged,
        tests=results,
    )


def without_measurement(
    test: SuiteTest, verdict: SuiteTestVerdict, reason: str
) -> SuiteTestResult:
    """Return the result of a test that has no measurement.

    It is `skipped` if it is not meant to run, `unmeasured` if it should have run, and `untested`
    if it is missing in an imported result.
    """
    requirement = test.requirement
    return SuiteTestResult(
        test=test.name,
        caption=test.caption,
        writes=test.writes,
        verdict=verdict,
        reason=reason,
        unit=requirement.unit if requirement else None,
        promised=requirement.promised if requirement else None,
        required=requirement.required if requirement else None,
        why=requirement.why if requirement else "",
    )


IDLE_CHECK_S = 2.0
"""For how long the disk is checked for other load before the first test."""
OVERHEAD_S = 1.0
"""Time that each test needs beside its runtime, to start and end fio."""
_NO_WRITES = "writes are tested only with --file DIR or --write-to-raw-device NAME"


class SuitePlan(NamedTuple):
    """Which tests of a suite run, and on which part of which target."""

    suite: Suite
    target: str
    """Absolute path of the device, or of a scratch file."""
    span_bytes: int | None
    """Length of the region that is used; None for the whole target."""
    runtime_s: float
    """Duration of each test."""
    tolerance_ratio: float
    with_writes: bool
    wait_for_base: bool = False
    """Whether each test begins only after the burst credits are used up."""
    offset_bytes: int = 0
    """Start of the region."""
    is_file: bool = False

    def runs(self, test: SuiteTest) -> bool:
        """Return whether a test has a requirement and does nothing that is not allowed."""
        return test.requirement is not None and (self.with_writes or not test.writes)

    def job(self, test: SuiteTest) -> FioJob:
        """Return the fio job of a test."""
        return replace(
            test,
            target=self.target,
            runtime_s=self.runtime_s,
            span_bytes=self.span_bytes,
            offset_bytes=self.offset_bytes,
        )

    @property
    def tests(self) -> tuple[SuiteTest, ...]:
        """The tests that run."""
        return tuple(test for test in self.suite.tests if self.runs(test))

    @property
    def estimate_s(self) -> float:
        """The expected duration, without the time to use up burst credits."""
        return IDLE_CHECK_S + len(self.tests) * (self.runtime_s + OVERHEAD_S)

    def skipped(self, test: SuiteTest) -> SuiteTestResult:
        """Return the result of a test that does not run."""
        return without_measurement(test, "skipped", test.skip_reason or _NO_WRITES)

    def not_run(self, reason: str) -> tuple[SuiteTestResult, ...]:
        """Return the results of a suite of which no test was started."""
        return tuple(
            without_measurement(test, "unmeasured", reason)
            if self.runs(test)
            else self.skipped(test)
            for test in self.suite.tests
        )


def base_estimate_s(limits: Limits) -> float:
    """Return the time to use up all full buckets, one after another, each at its peak rate."""
    return sum(bucket.seconds for bucket in limits.buckets)
