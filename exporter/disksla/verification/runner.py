"""Runs the lines of a suite on a disk, one after another, and judges each."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from disksla.credits import exhaustion_s, from_bounds
from disksla.disks import Transferred
from disksla.errors import DiskslaError
from disksla.fio import FioError, FioJob
from disksla.fio.runner import Fio
from disksla.limits import Charge, Limits, Resource
from disksla.units import KIB, format_duration
from disksla.verification.judge import judge_test, skipped_test, unmeasured_test
from disksla.verification.measurement import measurement_of
from disksla.verification.other_load import (
    journal_writes,
    other_share,
    transferred_between,
    transferred_by,
)
from disksla.verification.preconditions import Violation, other_load
from disksla.verification.report import SuiteTestResult
from disksla.verification.suites import Suite, SuiteTest, Unit
from disksla.verification.watch import DiskMonitor

QUIET_S = 2.0
"""For so long a disk is looked at before it is loaded."""
_LOOKS = 4
OVERHEAD_S = 1.0
"""Of a line: to start fio, and to let it end."""
_PATIENCE_S = 60.0
_BASE_PATIENCE_RATIO = 1.5
_RESOURCES_OF: dict[Unit, tuple[Resource, ...]] = {
    "iops": ("iops", "service_seconds"),
    "bytes_per_second": ("bytes", "service_seconds"),
    "seconds": (),
}
NO_WRITES = "writes are tested with --file DIR, or --write-to-raw-device NAME on an empty disk"

Progress = Callable[[str, float], None]
"""Told what is being done, and the seconds of it that have passed."""


class SuitePlan(NamedTuple):
    """What is to be run, and where."""

    suite: Suite
    target: str
    """Path of the device, or of a file of our own."""
    span_bytes: int | None
    """Length of the part that is used; None for all of it."""
    runtime_s: float
    tolerance_ratio: float
    with_writes: bool
    wait_for_base: bool = False
    offset_bytes: int = 0
    """Where that part begins."""
    is_file: bool = False

    def runs(self, line: SuiteTest) -> bool:
        """Tell whether a line is run: something is required of it, and it may be."""
        return line.requirement is not None and (self.with_writes or not line.writes)

    def job(self, line: SuiteTest) -> FioJob:
        """Give what fio is asked to do for a line."""
        return line.job(self.target, self.runtime_s, self.span_bytes, self.offset_bytes)

    @property
    def lines(self) -> tuple[SuiteTest, ...]:
        """Those that are run."""
        return tuple(line for line in self.suite.lines if self.runs(line))

    @property
    def estimate_s(self) -> float:
        """How long it takes, without waiting for the base."""
        return QUIET_S + len(self.lines) * (self.runtime_s + OVERHEAD_S)


class SuiteRunner:
    """A test under way. It ends soon after `stop` is set, with what was measured by then."""

    def __init__(
        self,
        plan: SuitePlan,
        fio: Fio,
        watch: DiskMonitor,
        limits: Limits,
        stop: threading.Event,
        progress: Progress = lambda _what, _seconds: None,
    ) -> None:
        """Take all that is needed; nothing is run yet."""
        self._plan = plan
        self._fio = fio
        self._watch = watch
        self._limits = limits
        self._stop = stop
        self._progress = progress

    def look_for_load(self, seconds: float = QUIET_S) -> Violation | None:
        """Watch the disk for a moment in which nobody should use it.

        It is looked at again where it was used, so that a disk that was just attached, or a file
        system that was just written to, can come to rest.
        """
        busy = None
        for _ in range(_LOOKS):
            before, begun_s = self._watch.reading(), time.monotonic()
            self._progress("looking for other load", 0.0)
            if self._stop.wait(seconds):
                return None
            disk = transferred_between(before, self._watch.reading())
            passed_s = time.monotonic() - begun_s
            share = other_share(self._charges, passed_s, disk, Transferred(), 4 * KIB)
            busy = other_load(share, "before the test")
            if busy is None:
                break
        return busy

    def run(self) -> tuple[tuple[SuiteTestResult, ...], tuple[Violation, ...]]:
        """Run all lines; give them judged, and what spoiled them."""
        judged, violations = [], []
        for line in self._plan.suite.lines:
            if self._plan.runs(line):
                one, spoiled = self._measure(line)
                violations += [spoiled] if spoiled is not None else []
            else:
                one = skipped_test(line, line.unpromised or NO_WRITES)
            judged.append(one)
        return tuple(judged), tuple(violations)

    @property
    def _charges(self) -> tuple[Charge, ...]:
        return self._limits.promise_charges

    def _measure(self, line: SuiteTest) -> tuple[SuiteTestResult, Violation | None]:
        if self._stop.is_set():
            return unmeasured_test(line, "the test was ended before"), None
        try:
            if self._plan.wait_for_base:
                violation = self._reach_base(line)
                if violation is not None:
                    return unmeasured_test(line, violation.message), violation
            return self._load(line)
        except (FioError, DiskslaError) as error:
            return unmeasured_test(line, str(error)), None

    def _load(self, line: SuiteTest) -> tuple[SuiteTestResult, Violation | None]:
        job = self._plan.job(line)
        resources = _drawn_on(line, self._limits)
        was_at_base = False
        ramp_s = 0.0
        if self._plan.wait_for_base and resources:
            ramp_s = _ramp_s(self._limits)
            job = msgspec.structs.replace(job, ramp_s=ramp_s)

        def on_second(passed_s: float) -> None:
            nonlocal was_at_base
            was_at_base |= bool(resources) and self._watch.is_at_base(resources)
            self._progress(line.test, passed_s)

        before, windows = self._watch.reading(), self._watch.window_seconds()
        begun_s = time.monotonic()
        result = self._fio.run(
            job,
            limit_s=ramp_s + _BASE_PATIENCE_RATIO * job.runtime_s + _PATIENCE_S,
            stop=self._stop,
            on_second=on_second,
        )
        passed_s = time.monotonic() - begun_s
        disk = transferred_between(before, self._watch.reading())
        own = transferred_by(result).plus(_uncounted(line, ramp_s))
        if self._plan.is_file:
            own = own.plus(journal_writes(passed_s))
        share = other_share(self._charges, passed_s, disk, own, line.request_bytes)
        judged = judge_test(
            line,
            measurement_of(job, result),
            self._plan.tolerance_ratio,
            is_throttled_at_base=was_at_base,
            other_share=share,
            window_seconds={
                verdict: seconds - windows.get(verdict, 0.0)
                for verdict, seconds in self._watch.window_seconds().items()
            },
        )
        return judged, other_load(share, f"during {line.test}")

    def _reach_base(self, line: SuiteTest) -> Violation | None:
        """Load the disk as the line does until its credits are proven to be gone."""
        resources = _drawn_on(line, self._limits)
        if not resources or self._watch.is_at_base(resources):
            return None
        enough = threading.Event()

        def on_second(passed_s: float) -> None:
            self._progress("using up burst credits", passed_s)
            if self._stop.is_set() or self._watch.is_at_base(resources):
                enough.set()

        most_s = base_estimate_s(self._limits) * _BASE_PATIENCE_RATIO + _PATIENCE_S
        job = msgspec.structs.replace(self._plan.job(line), runtime_s=most_s)
        try:
            self._fio.run(job, limit_s=most_s + _PATIENCE_S, stop=enough, on_second=on_second)
        except FioError as failure:
            if failure.reason != "stopped":
                raise
        if enough.is_set():
            return None
        return Violation(
            "base_not_reached",
            f"before {line.test}: credits were not seen to run out within"
            f" {format_duration(most_s)}",
        )


def not_run_tests(plan: SuitePlan, reason: str) -> tuple[SuiteTestResult, ...]:
    """Give the lines of a test that was not begun."""
    return tuple(
        unmeasured_test(line, reason)
        if plan.runs(line)
        else skipped_test(line, line.unpromised or NO_WRITES)
        for line in plan.suite.lines
    )


def base_estimate_s(limits: Limits) -> float:
    """Give the time in which full buckets run out at their peaks, one after another."""
    return sum(
        exhaustion_s(
            from_bounds(bucket, bucket.capacity, bucket.capacity, bucket.capacity),
            bucket,
            bucket.peak_per_second,
        )
        for bucket in limits.buckets
    )


def _ramp_s(limits: Limits) -> float:
    """Give the time in which what came back while fio was started is used up, twice over."""
    return 1.0 + 2 * sum(
        bucket.fill_per_second * OVERHEAD_S * base_estimate_s(limits) / bucket.capacity
        for bucket in limits.buckets
    )


def _uncounted(line: SuiteTest, ramp_s: float) -> Transferred:
    """Give the most that a line may have done in a ramp, of which fio gives no account."""
    requirement = line.requirement
    if not ramp_s or requirement is None or requirement.burst is None:
        return Transferred()
    in_requests = requirement.unit == "iops"
    most = requirement.burst * (ramp_s + OVERHEAD_S)
    requests = round(most if in_requests else most / line.request_bytes)
    transferred = requests * line.request_bytes
    if line.writes:
        return Transferred(writes=requests, written_bytes=transferred)
    return Transferred(reads=requests, read_bytes=transferred)


def _drawn_on(line: SuiteTest, limits: Limits) -> set[Resource]:
    """Give the credits that a line at full speed uses up; none for one that keeps to a rate."""
    requirement = line.requirement
    if requirement is None or requirement.burst is None:
        return set()
    return {
        bucket.resource
        for bucket in limits.buckets
        if bucket.resource in _RESOURCES_OF[requirement.unit]
    }
