"""Runs the lines of a suite on a disk, one after another, and judges each."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from disksla.core.cost import Charge
from disksla.core.credits import exhaustion_s, known
from disksla.core.fio import FioFailure, FioJob
from disksla.core.limits import Limits, Resource
from disksla.core.otherload import Done, bookkeeping, done_between, done_by, other_share
from disksla.core.precondition import Violation, other_load
from disksla.core.refusal import Refusal
from disksla.core.suite import Line, Suite, Unit
from disksla.core.trial import trial_of
from disksla.core.units import KIB, format_duration
from disksla.core.verification import JudgedLine, judge, skipped, unmeasured
from disksla.runtime.diskwatch import DiskWatch
from disksla.runtime.fio import Fio

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


class Plan(NamedTuple):
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

    def runs(self, line: Line) -> bool:
        """Tell whether a line is run: something is required of it, and it may be."""
        return line.requirement is not None and (self.with_writes or not line.writes)

    def job(self, line: Line) -> FioJob:
        """Give what fio is asked to do for a line."""
        return line.job(self.target, self.runtime_s, self.span_bytes, self.offset_bytes)

    @property
    def lines(self) -> tuple[Line, ...]:
        """Those that are run."""
        return tuple(line for line in self.suite.lines if self.runs(line))

    @property
    def estimate_s(self) -> float:
        """How long it takes, without waiting for the base."""
        return QUIET_S + len(self.lines) * (self.runtime_s + OVERHEAD_S)


class Acceptance:
    """A test under way. It ends soon after `stop` is set, with what was measured by then."""

    def __init__(
        self,
        plan: Plan,
        fio: Fio,
        watch: DiskWatch,
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
            disk = done_between(before, self._watch.reading())
            passed_s = time.monotonic() - begun_s
            share = other_share(self._charges, passed_s, disk, Done(), 4 * KIB)
            busy = other_load(share, "before the test")
            if busy is None:
                break
        return busy

    def run(self) -> tuple[tuple[JudgedLine, ...], tuple[Violation, ...]]:
        """Run all lines; give them judged, and what spoiled them."""
        judged, violations = [], []
        for line in self._plan.suite.lines:
            if self._plan.runs(line):
                one, spoiled = self._measure(line)
                violations += [spoiled] if spoiled is not None else []
            else:
                one = skipped(line, line.unpromised or NO_WRITES)
            judged.append(one)
        return tuple(judged), tuple(violations)

    @property
    def _charges(self) -> tuple[Charge, ...]:
        return self._limits.promise_charges

    def _measure(self, line: Line) -> tuple[JudgedLine, Violation | None]:
        if self._stop.is_set():
            return unmeasured(line, "the test was ended before"), None
        try:
            if self._plan.wait_for_base:
                violation = self._reach_base(line)
                if violation is not None:
                    return unmeasured(line, violation.words), violation
            return self._load(line)
        except (FioFailure, Refusal) as refusal:
            return unmeasured(line, str(refusal)), None

    def _load(self, line: Line) -> tuple[JudgedLine, Violation | None]:
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
        disk = done_between(before, self._watch.reading())
        own = done_by(result).plus(_uncounted(line, ramp_s))
        if self._plan.is_file:
            own = own.plus(bookkeeping(passed_s))
        share = other_share(self._charges, passed_s, disk, own, line.request_bytes)
        judged = judge(
            line,
            trial_of(job, result),
            self._plan.tolerance_ratio,
            is_held_at_base=was_at_base,
            other_share=share,
            window_seconds={
                verdict: seconds - windows.get(verdict, 0.0)
                for verdict, seconds in self._watch.window_seconds().items()
            },
        )
        return judged, other_load(share, f"during {line.test}")

    def _reach_base(self, line: Line) -> Violation | None:
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
        except FioFailure as failure:
            if failure.reason != "stopped":
                raise
        if enough.is_set():
            return None
        return Violation(
            "base_not_reached",
            f"before {line.test}: credits were not seen to run out within"
            f" {format_duration(most_s)}",
        )


def not_run(plan: Plan, reason: str) -> tuple[JudgedLine, ...]:
    """Give the lines of a test that was not begun."""
    return tuple(
        unmeasured(line, reason)
        if plan.runs(line)
        else skipped(line, line.unpromised or NO_WRITES)
        for line in plan.suite.lines
    )


def base_estimate_s(limits: Limits) -> float:
    """Give the time in which full buckets run out at their peaks, one after another."""
    return sum(
        exhaustion_s(
            known(bucket, bucket.capacity, bucket.capacity, bucket.capacity),
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


def _uncounted(line: Line, ramp_s: float) -> Done:
    """Give the most that a line may have done in a ramp, of which fio gives no account."""
    requirement = line.requirement
    if not ramp_s or requirement is None or requirement.burst is None:
        return Done()
    in_requests = requirement.unit == "iops"
    most = requirement.burst * (ramp_s + OVERHEAD_S)
    requests = round(most if in_requests else most / line.request_bytes)
    transferred = requests * line.request_bytes
    if line.writes:
        return Done(writes=requests, written_bytes=transferred)
    return Done(reads=requests, read_bytes=transferred)


def _drawn_on(line: Line, limits: Limits) -> set[Resource]:
    """Give the credits that a line at full speed uses up; none for one that keeps to a rate."""
    requirement = line.requirement
    if requirement is None or requirement.burst is None:
        return set()
    return {
        bucket.resource
        for bucket in limits.buckets
        if bucket.resource in _RESOURCES_OF[requirement.unit]
    }
