"""A suite that is run on a disk of files by a fio of our own."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.config.custom_terms import SumBurst, SumTerms, custom_limits
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.fio.runner import Fio, find_fio
from disksla.limits.catalog import load_catalog
from disksla.limits.limits import Limits
from disksla.system.roots import Roots
from disksla.verification.report import MeasuredLevel
from disksla.verification.runner import SuitePlan, SuiteRunner, base_estimate_s, not_run_tests
from disksla.verification.suites import make_suite
from disksla.verification.watch import DiskMonitor, monitored
from support.fake_fio import ANSWERS, HANGS, fake_fio
from support.loop_device import eventually
from support.simulated_host import a_disk

ANSWER = Path(__file__).parent.parent / "fio" / "results" / "reads.json"
CONTRACT = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8500.0))
LIMITS = custom_limits(CONTRACT)
DISK = a_disk("vdx")
QUIET = f" 254 0 vdx 100 0 800 10 50 0 400 20{' 0' * 9}\n"


class Room:
    """A machine of files with one disk, and a fio."""

    def __init__(self, directory: Path, body: str) -> None:
        self.paths = Roots(procfs=directory / "proc", sysfs=directory / "sys")
        self.paths.procfs.mkdir()
        self.diskstats = self.paths.procfs / "diskstats"
        self.diskstats.write_text(QUIET)
        (self.paths.procfs / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
        bin_directory = directory / "bin"
        bin_directory.mkdir()
        (bin_directory / "answer").write_bytes(ANSWER.read_bytes())
        fake_fio(bin_directory, body)
        self.fio: Fio = find_fio(str(bin_directory))
        self.hangs = bin_directory / "hangs"
        self.target = directory / "disk"
        self.target.write_bytes(b"x" * 4096)
        self.stop = threading.Event()

    def plan(self, **told: object) -> SuitePlan:
        suite = make_suite("terms", LIMITS, 0.03)
        plan = SuitePlan(suite, str(self.target), None, 10.0, 0.03, with_writes=False)
        return plan._replace(**told)  # type: ignore[arg-type]


@pytest.fixture
def watch(room: Room) -> Iterator[DiskMonitor]:
    settings = Settings(disks=(DiskEntry(match=DiskMatch(device="vdx"), terms=CONTRACT),))
    with monitored(room.paths, settings, load_catalog(), DISK, (DISK, a_disk("vdy"))) as found:
        assert eventually(lambda: bool(found.window_seconds()), 5)
        yield found


@pytest.fixture
def room(tmp_path: Path, request: pytest.FixtureRequest) -> Room:
    return Room(tmp_path, getattr(request, "param", ANSWERS))


def acceptance(
    room: Room, watch: DiskMonitor, limits: Limits = LIMITS, **told: object
) -> SuiteRunner:
    return SuiteRunner(room.plan(**told), room.fio, watch, limits, room.stop)


def test_lines_are_run_or_skipped_and_judged(room: Room, watch: DiskMonitor) -> None:
    lines, violations = acceptance(room, watch).run()
    assert [line.verdict for line in lines] == [
        *("fail", "skipped", "skipped"),  # IOPS; bandwidth and latency are not promised
        *("skipped", "skipped", "skipped"),
    ]
    measured = lines[0]
    level: MeasuredLevel = "base"
    assert measured.level == level
    assert measured.percentiles
    assert measured.other_share == 0.0  # the disk of files did nothing at all
    assert violations == ()
    assert "--file DIR" in lines[3].reason


@pytest.mark.parametrize("room", ["print('nonsense')"], indirect=True)
def test_a_fio_that_fails_leaves_its_line_unmeasured(room: Room, watch: DiskMonitor) -> None:
    lines, _ = acceptance(room, watch).run()
    assert lines[0].verdict == "unmeasured"
    assert "not valid fio JSON" in lines[0].reason


@pytest.mark.parametrize("room", [HANGS], indirect=True)
def test_a_test_that_is_stopped_ends_soon(room: Room, watch: DiskMonitor) -> None:
    def stop_soon() -> None:
        eventually(room.hangs.exists, 20)
        room.stop.set()

    thread = threading.Thread(target=stop_soon)
    thread.start()
    lines, _ = acceptance(room, watch).run()
    thread.join()
    assert (lines[0].verdict, lines[0].reason) == ("unmeasured", "fio was stopped")
    again, _ = acceptance(room, watch).run()
    assert again[0].reason == "the test was ended before"


def test_a_disk_that_is_gone_cannot_be_measured(room: Room, watch: DiskMonitor) -> None:
    room.diskstats.write_text("")
    lines, _ = acceptance(room, watch).run()
    assert "vdx is not in diskstats" in lines[0].reason


def test_a_base_that_is_not_reached_spoils_the_line(room: Room, watch: DiskMonitor) -> None:
    lines, [violation] = acceptance(room, watch, wait_for_base=True).run()
    assert violation.precondition == "base_not_reached"
    assert lines[0].verdict == "unmeasured"
    assert base_estimate_s(LIMITS) == pytest.approx(5)
    assert "within 67.5 s" in lines[0].reason


def looking(room: Room, watch: DiskMonitor, times: int) -> SuiteRunner:
    """Let others read from the disk so many times while it is looked at."""
    reads = iter(range(900, 900 + 800 * times, 800))

    def others(_what: str, _seconds: float) -> None:
        count = next(reads, None)
        if count is not None:
            room.diskstats.write_text(QUIET.replace(" 100 0 800", f" {count} 0 {8 * count}"))

    return SuiteRunner(room.plan(), room.fio, watch, LIMITS, room.stop, others)


def test_other_load_is_seen_before_the_test(room: Room, watch: DiskMonitor) -> None:
    found = looking(room, watch, times=10).look_for_load(0.1)
    assert found is not None
    assert found.precondition == "other_load"


def test_a_disk_may_come_to_rest(room: Room, watch: DiskMonitor) -> None:
    assert looking(room, watch, times=2).look_for_load(0.1) is None


def test_nobody_looks_any_more_once_it_is_stopped(room: Room, watch: DiskMonitor) -> None:
    room.stop.set()
    assert looking(room, watch, times=10).look_for_load(600) is None


def test_what_was_not_begun_is_unmeasured_or_skipped(room: Room) -> None:
    lines = not_run_tests(room.plan(), "why")
    assert [line.reason for line in lines][:2] == [
        "why",
        "the terms promise no bandwidth for reads",
    ]
    assert room.plan().estimate_s == pytest.approx(13)
