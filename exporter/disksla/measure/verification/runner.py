"""Run a verification: check the preconditions, run the tests of the suite, return the report.

Meanwhile the pipeline monitors the disk: its counters, verdicts and burst credits.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.console import ProgressCallback
from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import measurement_lock
from disksla.base.units import KIB, format_duration
from disksla.kernel.disks import Disk, parts_of
from disksla.kernel.procfs import CounterValues
from disksla.kernel.procfs.files import DiskstatsFile
from disksla.measure.fio import FioError
from disksla.measure.fio.raw_device import exclusive_device
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.fio.scratch_file import remove_leftovers, scratch_file
from disksla.measure.verification.judge import (
    IDLE_CHECK_S,
    OVERHEAD_S,
    SuitePlan,
    base_estimate_s,
    judge_test,
    make_report,
    without_measurement,
)
from disksla.measure.verification.measurement import measurement_of
from disksla.measure.verification.preconditions import (
    Violation,
    journal_writes,
    other_load,
    other_share,
    transferred_between,
    transferred_by,
)
from disksla.measure.verification.report import SuiteTestResult, VerificationReport
from disksla.measure.verification.suites import SuiteTest, Unit
from disksla.promise.catalogue import Assignment, Charge, Limits, Resource, Work
from disksla.promise.configuration import Configuration
from disksla.state.pipeline import State, counters_of, disk_snapshot
from disksla.state.pipeline.sampler import Sampler
from disksla.verdict.credits import throttled_by
from disksla.verdict.throttling import VERDICTS, Verdict

_EMPTY_SHARE = 0.01
"""Share of the capacity; credits whose upper bound is below it count as used up."""
_IDLE_CHECKS = 4
_TIMEOUT_S = 60.0
_TIMEOUT_RATIO = 1.5
_RESOURCES_OF: dict[Unit, tuple[Resource, ...]] = {
    "iops": ("iops", "service_seconds"),
    "bytes_per_second": ("bytes", "service_seconds"),
    "seconds": (),
}
_INTERRUPTED = "interrupted before this test"


class DiskMonitor:
    """The counters of one disk, and the verdicts and credits that a sampler derives from them."""

    def __init__(
        self, roots: Roots, disk: Disk, disks: tuple[Disk, ...], sampler: Sampler
    ) -> None:
        """Read the disk under `roots`; `sampler` must be sampling it."""
        self._disk = disk
        self._disks = disks
        self._diskstats = DiskstatsFile(roots.procfs)
        self._sampler = sampler

    def reading(self) -> CounterValues:
        """Return the current counters of the disk. Raise DiskslaError if there are none."""
        return counters_of(self._diskstats.read, self._disk, self._disks)

    def window_seconds(self) -> dict[Verdict, float]:
        """Return the seconds by verdict since sampling began; empty before the first window."""
        snapshot = disk_snapshot(self._sampler.state, self._disk.name)
        if snapshot is None:
            return {}
        return dict(zip(VERDICTS, snapshot.verdict_totals.seconds, strict=True))

    def is_at_base(self, resources: Collection[Resource]) -> bool:
        """Return whether the disk has certainly used up its credits of all these resources.

        Of each, next to none are left, or its limiter was seen at the baseline in the last second.
        """
        disk = self._sampler.state.monitored.get(self._disk.name)
        if disk is None or disk.credits is None:
            return False
        last = disk.window_verdict
        seen = last.throttle if last is not None and last.is_seen else None
        return all(
            throttled_by(bucket, seen) == "base"
            or credit.upper_credits < _EMPTY_SHARE * bucket.capacity
            for credit, bucket in zip(
                disk.credits.bucket_credits, disk.assignment.limits.buckets, strict=True
            )
            if bucket.resource in resources
        )

    def close(self) -> None:
        """Close /proc/diskstats."""
        self._diskstats.close()


@contextlib.contextmanager
def monitored(
    roots: Roots, configuration: Configuration, disk: Disk, disks: tuple[Disk, ...]
) -> Iterator[DiskMonitor]:
    """Sample a disk, its paths and partitions, and no others, until the end of the block."""
    sampler = Sampler(roots, State(configuration))
    sampler.post(parts_of(disk, disks))
    sampler.start()
    monitor = DiskMonitor(roots, disk, disks, sampler)
    try:
        yield monitor
    finally:
        sampler.stop()
        monitor.close()


class VerificationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to verify, and on which machine."""

    roots: Roots
    configuration: Configuration
    disks: tuple[Disk, ...]
    """All block devices of the machine."""
    disk: Disk
    assignment: Assignment
    """The terms and limits to verify."""
    plan: SuitePlan
    directory: Path | None = None
    """Where to create the scratch file; None to test the device itself."""
    violations: tuple[Violation, ...] = ()
    """Violated preconditions that are known before the disk is accessed."""
    destroy_data: str | None = None
    """Serial of the disk, or its WWN, if it may be overwritten although it is not empty."""
    force: bool = False
    """Whether to run the tests although a precondition is violated."""


class _StoppedError(DiskslaError):
    """The verification was interrupted while the scratch file was written."""


def any_target() -> None:
    """Accept a target that needs no check: a scratch file, or a device that is only read."""


def run_verification(
    request: VerificationRequest, stop: threading.Event, progress: ProgressCallback
) -> VerificationReport:
    """Run the tests of the plan and return the report.

    It ends soon after `stop` is set; tests that were not measured by then are reported as such.
    Raise DiskslaError if fio is missing, or the device or the scratch file cannot be used.
    """
    fio = find_fio()
    plan, limits = request.plan, request.assignment.limits
    began_s = time.time()
    violations = [*request.violations]
    with contextlib.ExitStack() as stack:
        lock = measurement_lock(Path(request.configuration.settings.state.directory))
        if not stack.enter_context(lock):
            violations.append(
                Violation("probed", "another measurement of disksla is running on this machine")
            )
        monitor = stack.enter_context(
            monitored(request.roots, request.configuration, request.disk, request.disks)
        )
        busy = check_other_load(monitor, limits.promise_charges, stop, progress)
        violations += filter(None, [busy])
        if violations and not request.force:
            results = plan.not_run("a precondition is violated; --force runs the test anyway")
        else:
            try:
                target, check = stack.enter_context(_target(request, stop, progress))
            except _StoppedError:
                results = plan.not_run(_INTERRUPTED)
            else:
                runner = SuiteRunner(
                    plan=plan._replace(target=target),
                    fio=fio,
                    monitor=monitor,
                    limits=limits,
                    stop=stop,
                    progress=progress,
                    check_target=check,
                )
                results, late_violations = runner.run()
                violations += late_violations
    return make_report(
        plan.suite,
        request.assignment,
        request.disk,
        results,
        target="file" if plan.is_file else "device",
        tool=f"fio {fio.version[0]}.{fio.version[1]}",
        tolerance_ratio=plan.tolerance_ratio,
        began_timestamp_s=began_s,
        ended_timestamp_s=time.time(),
        violations=tuple(violations),
    )


@contextlib.contextmanager
def _target(
    request: VerificationRequest, stop: threading.Event, progress: ProgressCallback
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield a target that can be used until the end of the block, and its check."""

    def check_stop(_written_bytes: int) -> None:
        if stop.is_set():
            raise _StoppedError

    plan = request.plan
    if request.directory is not None and plan.span_bytes is not None:
        remove_leftovers(request.directory)
        progress("writing the scratch file", 0.0)
        with scratch_file(request.directory, plan.span_bytes, on_written=check_stop) as path:
            yield str(path), any_target
    elif plan.with_writes:
        named = request.destroy_data
        with exclusive_device(request.disk, request.roots, destroy_data=named) as device:
            yield plan.target, device.check_identity
    else:
        yield plan.target, any_target


def check_other_load(
    monitor: DiskMonitor,
    charges: tuple[Charge, ...],
    stop: threading.Event,
    progress: ProgressCallback,
    seconds: float = IDLE_CHECK_S,
) -> Violation | None:
    """Return the violation if the disk is in use before it is tested.

    A disk in use is checked up to four times: one that was just attached, or a file system that
    was just written to, may become idle.
    """
    violation = None
    for _ in range(_IDLE_CHECKS):
        before, begun_s = monitor.reading(), time.monotonic()
        progress("checking for other load", 0.0)
        if stop.wait(seconds):
            return None
        disk = transferred_between(before, monitor.reading())
        passed_s = time.monotonic() - begun_s
        share = other_share(charges, passed_s, disk, Work(), 4 * KIB)
        violation = other_load(share, "before the test")
        if violation is None:
            break
    return violation


class SuiteRunner(NamedTuple):
    """Runs the tests of a suite on a disk, one after another, and judges each."""

    plan: SuitePlan
    fio: Fio
    monitor: DiskMonitor
    limits: Limits
    stop: threading.Event
    """`run` ends soon after it is set."""
    progress: ProgressCallback = lambda _step, _seconds: None
    check_target: Callable[[], None] = any_target
    """Raises DiskslaError before a run of fio that must not start."""

    def run(self) -> tuple[tuple[SuiteTestResult, ...], tuple[Violation, ...]]:
        """Run all tests; return their results, and the preconditions violated meanwhile."""
        results: list[SuiteTestResult] = []
        violations: list[Violation] = []
        for test in self.plan.suite.tests:
            if self.plan.runs(test):
                result, violation = self._measure(test)
                violations += filter(None, [violation])
            else:
                result = self.plan.skipped(test)
            results.append(result)
        return tuple(results), tuple(violations)

    def _measure(self, test: SuiteTest) -> tuple[SuiteTestResult, Violation | None]:
        if self.stop.is_set():
            return without_measurement(test, "unmeasured", _INTERRUPTED), None
        try:
            violation = self._reach_base(test) if self.plan.wait_for_base else None
            if violation is None:
                return self._load(test)
            return without_measurement(test, "unmeasured", violation.message), violation
        except DiskslaError as error:
            return without_measurement(test, "unmeasured", str(error)), None

    def _load(self, test: SuiteTest) -> tuple[SuiteTestResult, Violation | None]:
        job = self.plan.job(test)
        resources = _used_credits(test, self.limits)
        was_at_base = False
        ramp_s = 0.0
        if self.plan.wait_for_base and resources:
            ramp_s = _ramp_s(self.limits)
            job = msgspec.structs.replace(job, ramp_s=ramp_s)

        def on_second(passed_s: float) -> None:
            nonlocal was_at_base
            was_at_base |= bool(resources) and self.monitor.is_at_base(resources)
            self.progress(test.name, passed_s)

        self.check_target()
        before, windows = self.monitor.reading(), self.monitor.window_seconds()
        begun_s = time.monotonic()
        result = self.fio.run(
            job,
            limit_s=ramp_s + _TIMEOUT_RATIO * job.runtime_s + _TIMEOUT_S,
            stop=self.stop,
            on_second=on_second,
        )
        passed_s = time.monotonic() - begun_s
        disk = transferred_between(before, self.monitor.reading())
        own = transferred_by(result) + _ramp_transfer(test, ramp_s)
        if self.plan.is_file:
            own += journal_writes(passed_s)
        share = other_share(self.limits.promise_charges, passed_s, disk, own, test.request_bytes)
        judged = judge_test(
            test,
            measurement_of(job, result),
            self.plan.tolerance_ratio,
            is_throttled_at_base=was_at_base,
            other_share=share,
            window_seconds={
                verdict: seconds - windows.get(verdict, 0.0)
                for verdict, seconds in self.monitor.window_seconds().items()
            },
        )
        return judged, other_load(share, f"during {test.name}")

    def _reach_base(self, test: SuiteTest) -> Violation | None:
        """Load the disk as the test does until its credits are certainly used up."""
        resources = _used_credits(test, self.limits)
        if not resources or self.monitor.is_at_base(resources):
            return None
        done = threading.Event()

        def on_second(passed_s: float) -> None:
            self.progress("using up burst credits", passed_s)
            if self.stop.is_set() or self.monitor.is_at_base(resources):
                done.set()

        timeout_s = base_estimate_s(self.limits) * _TIMEOUT_RATIO + _TIMEOUT_S
        job = msgspec.structs.replace(self.plan.job(test), runtime_s=timeout_s)
        self.check_target()
        try:
            self.fio.run(job, limit_s=timeout_s + _TIMEOUT_S, stop=done, on_second=on_second)
        except FioError as failure:
            if failure.reason != "stopped":
                raise
        if done.is_set():
            return None
        return Violation(
            "base_not_reached",
            f"before {test.name}: burst credits did not run out within"
            f" {format_duration(timeout_s)}",
        )


def _ramp_s(limits: Limits) -> float:
    """Return twice the time to use up the credits that return while fio starts."""
    return 1.0 + 2 * sum(
        bucket.fill_per_second * OVERHEAD_S * base_estimate_s(limits) / bucket.capacity
        for bucket in limits.buckets
    )


def _ramp_transfer(test: SuiteTest, ramp_s: float) -> Work:
    """Return the most that a test can transfer during its ramp, which fio does not report."""
    requirement = test.requirement
    if not ramp_s or requirement is None or requirement.burst is None:
        return Work()
    in_requests = requirement.unit == "iops"
    most = requirement.burst * (ramp_s + OVERHEAD_S)
    requests = round(most if in_requests else most / test.request_bytes)
    transferred = requests * test.request_bytes
    both = (0, requests, 0, transferred) if test.writes else (requests, 0, transferred)
    return Work(*both)


def _used_credits(test: SuiteTest, limits: Limits) -> set[Resource]:
    """Return the credits that a test uses up: none if it runs at a fixed rate."""
    requirement = test.requirement
    if requirement is None or requirement.burst is None:
        return set()
    return {
        bucket.resource
        for bucket in limits.buckets
        if bucket.resource in _RESOURCES_OF[requirement.unit]
    }
