"""The plan of a verification: which tests of a suite run, on which target, for how long."""

from typing import NamedTuple

import msgspec

from disksla.measure.fio import FioJob
from disksla.measure.verification.judge import without_measurement
from disksla.measure.verification.report import SuiteTestResult
from disksla.measure.verification.suites import Suite, SuiteTest
from disksla.promise.catalogue import Limits

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
        return msgspec.structs.replace(
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
