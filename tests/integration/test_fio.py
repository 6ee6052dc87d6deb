"""Real fio on files, file systems and disks."""

import os
import shutil
import subprocess
import threading
from contextlib import chdir
from pathlib import Path

import pytest

from disksla.base.units import KIB, MIB
from disksla.measure.fio.job import Pattern
from disksla.measure.fio.runner import find_fio
from lab.disk import made
from lab.scenario import read_scenario
from support.file_system import mounted_ext4
from support.fio_jobs import failure, job
from support.loop_device import attached, needs_loop

STALLS = Path(__file__).parent.parent / "measure" / "fio" / "stalls-for-10s.yml"

HANG_LIMIT_S = 1.0

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")

needs_fuse = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(),
    reason="NOT TESTED: a disk that stalls needs root and /dev/fuse",
)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    file = tmp_path / "disk"
    file.write_bytes(b"x" * 4 * MIB)
    return file


@needs_fio
@pytest.mark.parametrize(
    "pattern",
    [
        *("read", "randread", "write", "randwrite", "rw"),
        pytest.param("randrw", marks=pytest.mark.in_check),
    ],
)
def test_real_fio_follows_the_job(disk: Path, pattern: Pattern) -> None:
    what = job(disk, pattern, rate_iops=200, workers=2, queue_depth=2, runtime_s=1)
    if pattern in {"rw", "randrw"}:
        what = job(disk, pattern, rate_iops=200, workers=2, runtime_s=1, read_share=0.7)
    result = find_fio().run(what, limit_s=30, gentle=True)
    both = result.read.iops + result.write.iops
    assert 0 < both <= 220  # a slow disk serves fewer than the rate, and none serves more
    if pattern in {"rw", "randrw"}:
        assert result.read.iops / both == pytest.approx(0.7, abs=0.1)
    assert bool(result.write.requests) == what.writes
    for measured in (result.read, result.write):
        assert measured.bytes == measured.requests * 4 * KIB
        assert sum(one.requests for one in measured.bins) == measured.requests
        if measured.mean_latency_s is not None:
            total_s = sum(one.seconds * one.requests for one in measured.bins)
            assert total_s / measured.requests == pytest.approx(measured.mean_latency_s, rel=0.02)
    assert disk.stat().st_size == 4 * MIB


@needs_fio
def test_real_sequential_workers_divide_the_region(disk: Path) -> None:
    """Each worker writes its own half, and nothing outside the region."""
    region = {"offset_bytes": MIB, "span_bytes": 2 * MIB}
    what = job(disk, "write", workers=2, request_bytes=64 * KIB, runtime_s=1, **region)
    find_fio().run(what, limit_s=30)
    content = disk.read_bytes()
    assert content[:MIB] == content[3 * MIB :] == b"x" * MIB
    changed = [
        content[at : at + 64 * KIB] != b"x" * 64 * KIB for at in range(MIB, 3 * MIB, 64 * KIB)
    ]
    assert all(changed)


@needs_fio
def test_real_mixture_of_random_and_sequential(disk: Path) -> None:
    what = job(disk, "read", random_share=0.3, ramp_s=0.2, queue_depth=4)
    assert find_fio().run(what, limit_s=30).read.requests > 0


@needs_fio
def test_real_target_with_colons_is_one_file(tmp_path: Path) -> None:
    target = tmp_path / "pci-0000:00:1f.2 disk"
    target.write_bytes(bytes(MIB))
    (tmp_path / "pci-0000").write_bytes(bytes(MIB))
    assert find_fio().run(job(target), limit_s=30).read.requests > 0


@needs_fio
def test_real_fio_that_is_killed_leaves_no_file(disk: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    what = job(disk, "randrw", runtime_s=60, rate_iops=100)
    with chdir(tmp_path):
        assert failure(find_fio(), what, HANG_LIMIT_S).reason == "timeout"
    assert sorted(tmp_path.iterdir()) == before


@needs_fio
def test_real_file_system_that_is_full_or_read_only(tmp_path: Path) -> None:
    """The file is sparse, so writing needs space that the file system does not have."""
    with mounted_ext4(tmp_path, 16 * MIB) as (_, mount_point):
        target = mount_point / "file"
        with target.open("wb") as file:
            file.truncate(64 * MIB)
        assert failure(find_fio(), job(target, "write", runtime_s=20)).reason == "no_space"
        subprocess.run(["mount", "-o", "remount,ro", str(mount_point)], check=True)
        assert failure(find_fio(), job(target, "write")).reason == "read_only"


@pytest.mark.in_check
@needs_fio
@needs_loop
def test_real_device_is_read_and_written(disk: Path) -> None:
    with attached(disk) as device:
        target = f"/dev/{device}"
        fio = find_fio()
        assert fio.run(job(target, rate_iops=50), limit_s=30).read.requests > 10
        assert fio.run(job(target, "randwrite", rate_iops=50), limit_s=30).write.requests > 10


@needs_fio
@needs_loop
def test_real_disk_unplugged_under_load(disk: Path) -> None:
    with attached(disk) as device:
        target = Path(f"/dev/{device}")

        def unplug(_: float) -> None:
            # Detaching a loop device waits for its users; shrinking it takes effect at once.
            os.truncate(disk, 0)
            subprocess.run(["losetup", "--set-capacity", str(target)], check=True)

        failed = failure(find_fio(), job(target, runtime_s=20), on_second=unplug)
        assert failed.reason == "unplugged"
        assert "was removed while fio was running" in str(failed)
        assert failure(find_fio(), job(target)).reason == "unplugged"


@pytest.mark.in_check
@needs_fio
@needs_loop
@needs_fuse
def test_real_disk_that_stalls_does_not_block(tmp_path: Path) -> None:
    """Requests in flight cannot be cancelled: fio cannot be killed before they complete."""
    fio = find_fio()
    with made(STALLS, 0, read_scenario(STALLS).disks[0], tmp_path) as disk:
        what = job(f"/dev/{disk.device}", runtime_s=20, queue_depth=4, rate_iops=100)
        disk.begin()
        failed = failure(fio, what, limit_s=2)
        assert failed.reason == "timeout"
        assert "cannot be killed" in str(failed)
        assert "earlier fio" in str(failure(fio, what))
        reapers = [one for one in threading.enumerate() if one.name.startswith("reaper-")]
        assert reapers
        for reaper in reapers:
            reaper.join(30)
            assert not reaper.is_alive()
        assert fio.run(job(what.target), limit_s=30).read.requests > 0
