"""A suite run by a fake fio on a simulated disk, whose /proc and /sys are files."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.verification.judge import SuitePlan, base_estimate_s
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import MeasuredLevel
from disksla.measure.verification.runner import (
    DiskMonitor,
    SuiteRunner,
    check_other_load,
    monitored,
)
from disksla.measure.verification.suites import make_suite
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.limits import Limits
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms, custom_limits
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from support.fake_fio import ANSWERS, HANGS, fake_fio
from support.simulated_host import a_disk
from support.waiting import eventually

ANSWER = Path(__file__).parents[2] / "measure" / "fio" / "results" / "reads.json"
TERMS = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8500.0))
LIMITS = custom_limits(TERMS)
DISK = a_disk("vdx")
IDLE = f" 254 0 vdx 100 0 800 10 50 0 400 20{' 0' * 9}\n"


class Machine:
    """A simulated machine with one disk and a fake fio."""

    def __init__(self, directory: Path, fio_body: str) -> None:
        self.roots = Roots(procfs=directory / "proc", sysfs=directory / "sys")
        self.roots.procfs.mkdir()
        self.diskstats = self.roots.procfs / "diskstats"
        self.diskstats.write_text(IDLE)
        (self.roots.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
        bin_directory = directory / "bin"
        bin_directory.mkdir()
        (bin_directory / "answer").write_bytes(ANSWER.read_bytes())
        fake_fio(bin_directory, fio_body)
        self.fio: Fio = find_fio(str(bin_directory))
        self.hangs = bin_directory / "hangs"
        self.target = directory / "disk"
        self.target.write_bytes(b"x" * 4096)
        self.stop = threading.Event()

    def plan(self, *, wait_for_base: bool = False) -> SuitePlan:
        suite = make_suite("terms", LIMITS, 0.03)
        return SuitePlan(
            suite,
            str(self.target),
            None,
            10.0,
            0.03,
            with_writes=False,
            wait_for_base=wait_for_base,
        )


@pytest.fixture
def monitor(machine: Machine) -> Iterator[DiskMonitor]:
    settings = Settings(disks=(DiskEntry(match=DiskMatch(device="vdx"), terms=TERMS),))
    disks = (DISK, a_disk("vdy"))
    with monitored(machine.roots, Configuration(settings, load_catalog()), DISK, disks) as found:
        assert eventually(lambda: bool(found.window_seconds()), 5)
        yield found


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    return Machine(tmp_path, getattr(request, "param", ANSWERS))


def suite_runner(
    machine: Machine, monitor: DiskMonitor, limits: Limits = LIMITS, *, wait_for_base: bool = False
) -> SuiteRunner:
    plan = machine.plan(wait_for_base=wait_for_base)
    return SuiteRunner(plan, machine.fio, monitor, limits, machine.stop)


def test_tests_are_run_or_skipped_and_judged(machine: Machine, monitor: DiskMonitor) -> None:
    results, violations = suite_runner(machine, monitor).run()
    assert [result.verdict for result in results] == [
        *("fail", "skipped", "skipped"),  # IOPS; bandwidth and latency are not promised
        *("skipped", "skipped", "skipped"),
    ]
    measured = results[0]
    level: MeasuredLevel = "base"
    assert measured.level == level
    assert measured.percentiles
    assert measured.other_share == 0.0  # the counters of the simulated disk do not change
    assert violations == ()
    assert "--file DIR" in results[3].reason


def test_no_test_runs_on_another_disk(machine: Machine, monitor: DiskMonitor) -> None:
    checks: list[None] = []

    def another_disk() -> None:
        checks.append(None)
        if len(checks) > 1:
            raise DiskslaError("vdx is now the name of another disk")

    plan = machine.plan()._replace(with_writes=True)
    runner = SuiteRunner(
        plan, machine.fio, monitor, LIMITS, machine.stop, check_target=another_disk
    )
    results, _ = runner.run()
    first, *others = [each for each in results if each.verdict != "skipped"]
    assert first.measured is not None
    assert others
    assert all(each.measured is None for each in others)
    assert {each.reason for each in others} == {"vdx is now the name of another disk"}
    assert len(checks) == 1 + len(others)


@pytest.mark.parametrize("machine", ["print('nonsense')"], indirect=True)
def test_failed_fio_leaves_its_test_unmeasured(machine: Machine, monitor: DiskMonitor) -> None:
    results, _ = suite_runner(machine, monitor).run()
    assert results[0].verdict == "unmeasured"
    assert "not valid fio JSON" in results[0].reason


@pytest.mark.parametrize("machine", [HANGS], indirect=True)
def test_stop_ends_the_suite_soon(machine: Machine, monitor: DiskMonitor) -> None:
    def stop_soon() -> None:
        eventually(machine.hangs.exists, 20)
        machine.stop.set()

    thread = threading.Thread(target=stop_soon)
    thread.start()
    results, _ = suite_runner(machine, monitor).run()
    thread.join()
    assert (results[0].verdict, results[0].reason) == ("unmeasured", "fio was stopped")
    again, _ = suite_runner(machine, monitor).run()
    assert again[0].reason == "interrupted before this test"


def test_removed_disk_is_not_measured(machine: Machine, monitor: DiskMonitor) -> None:
    machine.diskstats.write_text("")
    results, _ = suite_runner(machine, monitor).run()
    assert "vdx is not in /proc/diskstats" in results[0].reason


def test_base_not_reached_is_a_violation(machine: Machine, monitor: DiskMonitor) -> None:
    results, [violation] = suite_runner(machine, monitor, wait_for_base=True).run()
    assert violation.precondition == "base_not_reached"
    assert results[0].verdict == "unmeasured"
    assert base_estimate_s(LIMITS) == pytest.approx(5)
    assert "within 67.5 s" in results[0].reason


def check_with_reads(
    machine: Machine, monitor: DiskMonitor, times: int, seconds: float = 0.1
) -> Violation | None:
    """Check for other load while others read from the disk in the first `times` checks."""
    reads = iter(range(900, 900 + 800 * times, 800))

    def read_disk(_step: str, _seconds: float) -> None:
        count = next(reads, None)
        if count is not None:
            machine.diskstats.write_text(IDLE.replace(" 100 0 800", f" {count} 0 {8 * count}"))

    return check_other_load(monitor, LIMITS.promise_charges, machine.stop, read_disk, seconds)


def test_other_load_before_the_test_is_detected(machine: Machine, monitor: DiskMonitor) -> None:
    found = check_with_reads(machine, monitor, times=10)
    assert found is not None
    assert found.precondition == "other_load"
    machine.diskstats.write_text(IDLE)
    assert check_with_reads(machine, monitor, times=2) is None, "it became idle"


def test_stop_ends_the_check_for_other_load(machine: Machine, monitor: DiskMonitor) -> None:
    machine.stop.set()
    assert check_with_reads(machine, monitor, times=10, seconds=600) is None
