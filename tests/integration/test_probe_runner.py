"""Single probes with the real fio: on a device, and on a file system."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import measurement_lock
from disksla.base.units import KIB, MIB
from disksla.kernel.disks.inventory import read_disks
from disksla.measure.fio.job import FioJob
from disksla.measure.fio.runner import find_fio
from disksla.measure.fio.scratch_file import SCRATCH_DIRECTORY
from disksla.measure.fio.scratch_file_rules import ScratchFileError
from disksla.measure.probes.probe_plan import ProbePlan, plan_probe
from disksla.measure.probes.probe_runner import (
    ProbeContext,
    file_directory,
    is_suspended,
    remove_scratch_leftovers,
    run_probe,
)
from disksla.promise.catalogue.limits import NO_LIMITS
from disksla.promise.configuration.settings import ProbeEntry
from disksla.state.pipeline.probe_results import ProbeResult, quantile_s
from support.loop_device import attached, needs_loop
from support.simulated_host import a_disk

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
READS = ProbeEntry(kind="read-latency", runtime_s=1.0)
WRITES = ProbeEntry(kind="write-latency", runtime_s=1.0, file_size_bytes=64 * KIB)

MountDevice = Callable[..., Path]


def planned(entry: ProbeEntry, device: str) -> ProbePlan:
    return plan_probe(entry, device, NO_LIMITS)


def context_of(device: str, state_directory: Path) -> ProbeContext:
    disks = read_disks(Roots()).disks
    (disk,) = (disk for disk in disks if disk.name == device)
    return ProbeContext(disk, disks, state_directory)


def probe(
    entry: ProbeEntry, context: ProbeContext, stop: threading.Event | None = None
) -> tuple[ProbeResult, list[FioJob]]:
    jobs: list[FioJob] = []
    plan = planned(entry, context.disk.name)
    result = run_probe(find_fio(), plan, context, stop or threading.Event(), jobs.append)
    return result, jobs


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "disk"
    with file.open("wb") as made:
        os.posix_fallocate(made.fileno(), 0, 64 * MIB)
    with attached(file) as name:
        yield name


def unmount(mount_point: Path) -> None:
    subprocess.run(["umount", mount_point], check=True)


@pytest.fixture
def mounted(device: str, tmp_path: Path) -> Iterator[MountDevice]:
    """Return a function that makes a file system on the device and mounts it with options."""
    with ExitStack() as cleanup:

        def mount(*options: str) -> Path:
            subprocess.run(["mkfs.ext4", "-q", f"/dev/{device}"], check=True)
            mount_point = tmp_path / "mounted"
            mount_point.mkdir()
            subprocess.run(["mount", *options, f"/dev/{device}", mount_point], check=True)
            cleanup.callback(unmount, mount_point)
            return mount_point

        yield mount


def left_on(mount_point: Path) -> set[str]:
    return {path.name for path in mount_point.iterdir()} - {"lost+found"}


@pytest.mark.in_check
@needs_loop
@needs_fio
def test_device_is_read_and_never_written(device: str, tmp_path: Path) -> None:
    before = (tmp_path / "disk").read_bytes()
    result, (job,) = probe(READS, context_of(device, tmp_path))
    assert result.is_success, result.message
    assert job.target == f"/dev/{device}"
    assert not job.writes
    assert result.requests == pytest.approx(20, abs=3)
    assert result.achieved_iops == pytest.approx(20, rel=0.2)
    assert result.transferred_bytes == 4 * KIB * result.requests
    assert sum(each.requests for each in result.bins) == result.requests
    assert 0 < (quantile_s(result.bins, 0.5) or 0) < 0.1
    assert 1 <= result.duration_s < 10
    assert (tmp_path / "disk").read_bytes() == before


@pytest.mark.in_check
@needs_loop
@needs_fio
@pytest.mark.parametrize(
    "entry", [WRITES, msgspec.structs.replace(WRITES, kind="read-latency", target="file")]
)
def test_scratch_file_is_created_and_removed(
    entry: ProbeEntry, device: str, mounted: MountDevice, tmp_path: Path
) -> None:
    mount_point = mounted()
    (mount_point / "data").write_text("of another user")
    context = context_of(device, tmp_path)
    result, (job,) = probe(entry, context)
    assert result.is_success, result.message
    assert job.writes == (entry.kind == "write-latency")
    assert not Path(job.target).exists()
    assert left_on(mount_point) == {"data"}
    assert (mount_point / "data").read_text() == "of another user"
    assert result.transferred_bytes == 4 * KIB * result.requests + 64 * KIB


@needs_loop
@needs_fio
def test_scratch_file_is_in_the_state_directory(device: str, mounted: MountDevice) -> None:
    state_directory = mounted() / "lib"
    state_directory.mkdir()
    assert file_directory(context_of(device, state_directory)) == state_directory


@needs_loop
@needs_fio
def test_writing_the_scratch_file_can_be_stopped(
    device: str, mounted: MountDevice, tmp_path: Path
) -> None:
    mount_point = mounted()
    stop = threading.Event()
    stop.set()
    result, jobs = probe(
        msgspec.structs.replace(WRITES, file_size_bytes=MIB), context_of(device, tmp_path), stop
    )
    assert result.failure == "stopped"
    assert jobs == []
    assert left_on(mount_point) == set()


@needs_loop
@needs_fio
def test_read_only_file_system_is_a_failure(
    device: str, mounted: MountDevice, tmp_path: Path
) -> None:
    mounted("-o", "ro")
    result, _ = probe(WRITES, context_of(device, tmp_path))
    assert (result.failure, "read-only" in result.message) == ("read_only", True)


@needs_loop
@needs_fio
def test_directory_of_another_program_is_a_failure(
    device: str, mounted: MountDevice, tmp_path: Path
) -> None:
    mount_point = mounted()
    (mount_point / SCRATCH_DIRECTORY).write_text("of another user")
    result, _ = probe(WRITES, context_of(device, tmp_path))
    assert result.failure == "no_scratch_file", result.message
    assert (mount_point / SCRATCH_DIRECTORY).read_text() == "of another user"


@needs_fio
def test_probe_is_skipped_during_a_measurement(tmp_path: Path) -> None:
    context = ProbeContext(a_disk("disksla-nowhere"), (), tmp_path)
    with measurement_lock(tmp_path):
        result, jobs = probe(READS, context)
    assert result.skipped == "measurement_running"
    assert jobs == []


@needs_fio
def test_disk_without_a_file_system_is_a_failure(tmp_path: Path) -> None:
    context = ProbeContext(a_disk("disksla-nowhere"), (), tmp_path)
    result, _ = probe(WRITES, context)
    assert result.failure == "no_scratch_file"
    with pytest.raises(ScratchFileError):
        file_directory(context)
    remove_scratch_leftovers(context)


@pytest.mark.in_check
@pytest.mark.parametrize(
    ("status", "suspended"),
    [("suspended", True), ("suspending", True), ("active", False), ("unsupported", False)],
)
def test_is_suspended_reads_runtime_status(tmp_path: Path, status: str, suspended: bool) -> None:
    power = tmp_path / "class" / "block" / "cciss!c0d0" / "device" / "power"
    power.mkdir(parents=True)
    (power / "runtime_status").write_text(f"{status}\n")
    assert is_suspended(Roots(sysfs=tmp_path), "cciss/c0d0") is suspended
    assert not is_suspended(Roots(sysfs=tmp_path), "vda")
