"""One probe, run for real: on a device, and on a file system of its own."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from disksla.config.settings import ProbeEntry
from disksla.disks.inventory import read_disks
from disksla.fio.job import FioJob
from disksla.fio.runner import find_fio
from disksla.fio.scratch_file import SCRATCH_DIRECTORY
from disksla.fio.scratch_file_rules import ScratchFileError
from disksla.limits.limits import NO_LIMITS
from disksla.pipeline.probe_results import ProbeResult, quantile_s
from disksla.probes.plan import ProbePlan, plan_probe
from disksla.probes.runner import (
    ProbeContext,
    file_directory,
    is_suspended,
    remove_scratch_leftovers,
    run_probe,
)
from disksla.system.lock import measurement_lock
from disksla.system.roots import Roots
from disksla.units import KIB, MIB
from support.loop_device import attached, needs_loop
from support.simulated_host import a_disk

WITHIN_S = 20.0

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
READS = ProbeEntry(kind="read-latency", runtime_s=1.0)
WRITES = ProbeEntry(kind="write-latency", runtime_s=1.0, file_size_bytes=64 * KIB)

Formatted = Callable[..., Path]


def planned(entry: ProbeEntry, device: str) -> ProbePlan:
    return plan_probe(entry, device, NO_LIMITS)


def surroundings(device: str, state_directory: Path) -> ProbeContext:
    disks = read_disks(Roots()).disks
    (disk,) = (disk for disk in disks if disk.name == device)
    return ProbeContext(disk, disks, state_directory)


def probe(
    entry: ProbeEntry, around: ProbeContext, stop: threading.Event | None = None
) -> tuple[ProbeResult, list[FioJob]]:
    jobs: list[FioJob] = []
    plan = planned(entry, around.disk.name)
    outcome = run_probe(find_fio(), plan, around, stop or threading.Event(), jobs.append)
    return outcome, jobs


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "disk"
    with file.open("wb") as made:
        os.posix_fallocate(made.fileno(), 0, 64 * MIB)
    with attached(file) as name:
        yield name


def unmount(place: Path) -> None:
    subprocess.run(["umount", place], check=True)


@pytest.fixture
def mounted(device: str, tmp_path: Path) -> Iterator[Formatted]:
    """Make a file system on the device and mount it, with options."""
    with ExitStack() as undo:

        def mount(*options: str) -> Path:
            subprocess.run(["mkfs.ext4", "-q", f"/dev/{device}"], check=True)
            place = tmp_path / "mounted"
            place.mkdir()
            subprocess.run(["mount", *options, f"/dev/{device}", place], check=True)
            undo.callback(unmount, place)
            return place

        yield mount


def left_on(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()} - {"lost+found"}


@needs_loop
@needs_fio
def test_a_device_is_read_and_never_written(device: str, tmp_path: Path) -> None:
    before = (tmp_path / "disk").read_bytes()
    outcome, (job,) = probe(READS, surroundings(device, tmp_path))
    assert outcome.is_success, outcome.message
    assert job.target == f"/dev/{device}"
    assert not job.writes
    assert outcome.requests == pytest.approx(20, abs=3)
    assert outcome.achieved_iops == pytest.approx(20, rel=0.2)
    assert outcome.transferred_bytes == 4 * KIB * outcome.requests
    assert sum(each.requests for each in outcome.bins) == outcome.requests
    assert 0 < (quantile_s(outcome.bins, 0.5) or 0) < 0.1
    assert 1 <= outcome.duration_s < 10
    assert (tmp_path / "disk").read_bytes() == before


@needs_loop
@needs_fio
@pytest.mark.parametrize(
    "entry", [WRITES, msgspec.structs.replace(WRITES, kind="read-latency", target="file")]
)
def test_a_file_of_our_own_is_made_and_removed(
    entry: ProbeEntry, device: str, mounted: Formatted, tmp_path: Path
) -> None:
    place = mounted()
    (place / "precious").write_text("somebody else's")
    around = surroundings(device, tmp_path)
    outcome, (job,) = probe(entry, around)
    assert outcome.is_success, outcome.message
    assert job.writes == (entry.kind == "write-latency")
    assert not Path(job.target).exists()
    assert left_on(place) == {"precious"}
    assert (place / "precious").read_text() == "somebody else's"
    assert outcome.transferred_bytes == 4 * KIB * outcome.requests + 64 * KIB


@needs_loop
@needs_fio
def test_a_file_lies_in_the_state_directory_if_that_is_on_the_disk(
    device: str, mounted: Formatted
) -> None:
    state_directory = mounted() / "lib"
    state_directory.mkdir()
    assert file_directory(surroundings(device, state_directory)) == state_directory


@needs_loop
@needs_fio
def test_a_file_is_written_slowly_and_the_writing_can_be_stopped(
    device: str, mounted: Formatted, tmp_path: Path
) -> None:
    place = mounted()
    stop = threading.Event()
    stop.set()
    outcome, jobs = probe(
        msgspec.structs.replace(WRITES, file_size_bytes=MIB), surroundings(device, tmp_path), stop
    )
    assert outcome.failure == "stopped"
    assert jobs == []
    assert left_on(place) == set()


@needs_loop
@needs_fio
def test_a_file_system_that_is_read_only_is_refused(
    device: str, mounted: Formatted, tmp_path: Path
) -> None:
    mounted("-o", "ro")
    outcome, _ = probe(WRITES, surroundings(device, tmp_path))
    assert (outcome.failure, "read only" in outcome.message) == ("read_only", True)


@needs_loop
@needs_fio
def test_a_full_file_system_is_refused_and_left_as_it_was(
    device: str, mounted: Formatted, tmp_path: Path
) -> None:
    place = mounted()
    room = os.statvfs(place)
    with (place / "big").open("wb") as big:
        os.posix_fallocate(big.fileno(), 0, room.f_bavail * room.f_frsize - MIB)
    outcome, _ = probe(WRITES, surroundings(device, tmp_path))
    assert outcome.failure == "no_space", outcome.message
    assert left_on(place) == {"big"}


@needs_loop
@needs_fio
def test_a_directory_that_is_somebody_elses_is_refused(
    device: str, mounted: Formatted, tmp_path: Path
) -> None:
    place = mounted()
    (place / SCRATCH_DIRECTORY).write_text("somebody else's")
    outcome, _ = probe(WRITES, surroundings(device, tmp_path))
    assert outcome.failure == "no_scratch_file", outcome.message
    assert (place / SCRATCH_DIRECTORY).read_text() == "somebody else's"


@needs_loop
def test_what_a_killed_daemon_left_is_removed_and_nothing_else(
    device: str, mounted: Formatted, tmp_path: Path
) -> None:
    place = mounted()
    own = place / SCRATCH_DIRECTORY
    own.mkdir(mode=0o700)
    (own / "disksla-probe-4711-0123456789abcdef.tmp").write_bytes(b"left")
    (own / "precious").write_text("somebody else's")
    remove_scratch_leftovers(surroundings(device, tmp_path))
    assert left_on(own) == {"precious"}
    (own / "precious").unlink()
    remove_scratch_leftovers(surroundings(device, tmp_path))
    assert left_on(place) == set()


@needs_fio
def test_a_disk_that_is_gone_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    around = ProbeContext(a_disk("disksla-nowhere"), (), tmp_path)
    outcome, _ = probe(READS, around)
    assert outcome.failure == "unplugged"
    assert "/dev/disksla-nowhere is not there" in outcome.message


@needs_fio
def test_a_disk_without_a_file_system_has_no_place_for_a_file(tmp_path: Path) -> None:
    around = ProbeContext(a_disk("disksla-nowhere"), (), tmp_path)
    outcome, _ = probe(WRITES, around)
    assert outcome.failure == "no_scratch_file"
    with pytest.raises(ScratchFileError):
        file_directory(around)
    remove_scratch_leftovers(around)


@needs_fio
def test_while_somebody_else_measures_there_is_no_probe(tmp_path: Path) -> None:
    around = ProbeContext(a_disk("disksla-nowhere"), (), tmp_path)
    with measurement_lock(tmp_path):
        outcome, jobs = probe(READS, around)
    assert outcome.skipped == "measurement_running"
    assert jobs == []


@pytest.mark.parametrize(
    ("status", "asleep"),
    [("suspended", True), ("suspending", True), ("active", False), ("unsupported", False)],
)
def test_the_kernel_tells_which_disks_sleep(tmp_path: Path, status: str, asleep: bool) -> None:
    power = tmp_path / "class" / "block" / "cciss!c0d0" / "device" / "power"
    power.mkdir(parents=True)
    (power / "runtime_status").write_text(f"{status}\n")
    assert is_suspended(Roots(sysfs=tmp_path), "cciss/c0d0") is asleep
    assert not is_suspended(Roots(sysfs=tmp_path), "vda")
