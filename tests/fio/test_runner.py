"""Running fio: the process, its limits, and failures of all kinds."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from disksla.errors import DiskslaError
from disksla.fio.job import FioJob, Pattern
from disksla.fio.process import MAX_OUTPUT_BYTES, run_process
from disksla.fio.result import FioError
from disksla.fio.runner import Fio, find_fio
from disksla.fio.sandbox import ProcessLimits
from lab.disk import made
from lab.scenario import read_scenario
from support.fake_fio import (
    ANSWERS,
    HANGS,
    HAS_A_GRANDCHILD,
    LEAVES_A_GRANDCHILD,
    PRINTS_ERRORS_FOR_EVER,
    PRINTS_FOR_EVER,
    fake_fio,
    pid_left,
)
from support.loop_device import attached, eventually, needs_loop

HERE = Path(__file__).parent
ANSWER = HERE / "results" / "reads.json"
KIB, MIB = 1024, 1024**2
HANG_LIMIT_S = 1.0

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")
needs_fuse = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(),
    reason="NOT TESTED: a disk that stalls needs root and /dev/fuse",
)


def job(target: Path | str, pattern: Pattern = "randread", **more: object) -> FioJob:
    defaults: dict[str, object] = {"request_bytes": 4 * KIB, "runtime_s": 0.5}
    return FioJob(name="test", target=str(target), pattern=pattern, **{**defaults, **more})  # type: ignore[arg-type]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    file = tmp_path / "disk"
    file.write_bytes(b"x" * 4 * MIB)
    return file


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """Return the directory of the fake fio and of the files that it creates."""
    directory = tmp_path / "bin"
    directory.mkdir()
    shutil.copy(ANSWER, directory / "answer")
    return directory


def fake(bin_dir: Path, body: str) -> Fio:
    fake_fio(bin_dir, body)
    return find_fio(str(bin_dir))


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; init may not have reaped it yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def memory_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def failure(fio: Fio, what: FioJob, limit_s: float = 30, **more: object) -> FioError:
    with pytest.raises(FioError) as caught:
        fio.run(what, limit_s=limit_s, **more)  # type: ignore[arg-type]
    return caught.value


# Finding fio.


def test_find_fio_without_fio_raises(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"not installed; expected fio 3\.1 or newer"):
        find_fio(str(tmp_path))


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("fio-2.99", 0, "found fio-2.99; expected fio 3.1 or newer"),
        ("fio-3.0", 0, "found fio-3.0; expected fio 3.1 or newer"),
        ("flexible", 0, "found flexible; expected a version of fio"),
        ("", 0, "found nothing"),
        ("fio-3.33", 3, "fio --version exited with status 3"),
    ],
)
def test_find_fio_refuses_old_versions_and_other_programs(
    bin_dir: Path, version: str, status: int, message: str
) -> None:
    fake_fio(bin_dir, "", version=version, version_status=status)
    with pytest.raises(DiskslaError, match=message) as refused:
        find_fio(str(bin_dir))
    assert str(bin_dir / "fio") in str(refused.value)


def test_find_fio_accepts_version_3_1(bin_dir: Path) -> None:
    fake_fio(bin_dir, "", version="fio-3.1")
    found = find_fio(str(bin_dir))
    assert (found.path, found.version) == (bin_dir / "fio", (3, 1))


def test_find_fio_refuses_a_program_that_cannot_run(bin_dir: Path) -> None:
    (bin_dir / "fio").write_text("#!/nowhere\n", encoding="ascii")
    (bin_dir / "fio").chmod(0o755)
    with pytest.raises(DiskslaError, match=r"exited with status 127: cannot run .*: No such file"):
        find_fio(str(bin_dir))


# Programs that misbehave.


def test_output_is_the_result(bin_dir: Path, disk: Path) -> None:
    seconds: list[float] = []
    result = fake(bin_dir, f"import time; time.sleep(1.2){ANSWERS}").run(
        job(disk), limit_s=30, on_second=seconds.append
    )
    assert result.read.requests == 100
    assert len(seconds) >= 1
    assert seconds[0] >= 1


def test_readonly_option_unless_job_writes(bin_dir: Path, disk: Path) -> None:
    fio = fake(bin_dir, ANSWERS)
    fio.run(job(disk), limit_s=30)
    assert (bin_dir / "read-only").exists()
    assert not (bin_dir / "may-write").exists()
    fio.run(job(disk, "randwrite"), limit_s=30)
    assert (bin_dir / "may-write").exists()


def test_fio_that_ignores_sigterm_is_killed(bin_dir: Path, disk: Path) -> None:
    fio = fake(bin_dir, HANGS)
    failed = failure(fio, job(disk), limit_s=HANG_LIMIT_S)
    assert failed.reason == "timeout"
    assert "time limit" in str(failed)
    pid = pid_left(bin_dir)
    assert not Path(f"/proc/{pid}").exists(), "reaped, not only dead"


def test_grandchild_that_hangs_is_killed(bin_dir: Path, disk: Path) -> None:
    assert failure(fake(bin_dir, HAS_A_GRANDCHILD), job(disk), HANG_LIMIT_S).reason == "timeout"
    grandchild = pid_left(bin_dir, "grandchild")
    assert eventually(lambda: is_gone(grandchild), 5)


def test_grandchild_left_behind_does_not_block(bin_dir: Path, disk: Path) -> None:
    assert fake(bin_dir, LEAVES_A_GRANDCHILD).run(job(disk), limit_s=30).read.requests == 100
    grandchild = pid_left(bin_dir, "grandchild")
    assert eventually(lambda: is_gone(grandchild), 5)


def test_stop_event_ends_fio(bin_dir: Path, disk: Path) -> None:
    fio = fake(bin_dir, HANGS)
    stop = threading.Event()

    def stop_when_it_runs() -> None:
        eventually((bin_dir / "hangs").exists, 30)
        stop.set()

    helper = threading.Thread(target=stop_when_it_runs)
    helper.start()
    failed = failure(fio, job(disk), limit_s=60, stop=stop)
    helper.join()
    assert failed.reason == "stopped"
    assert is_gone(pid_left(bin_dir))


def test_exception_of_a_callback_ends_fio(bin_dir: Path, disk: Path) -> None:
    def interrupted(_: float) -> None:
        if (bin_dir / "hangs").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fake(bin_dir, HANGS).run(job(disk), limit_s=60, on_second=interrupted)
    assert is_gone(pid_left(bin_dir))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_fio_dies_with_its_parent(bin_dir: Path, disk: Path, number: signal.Signals) -> None:
    fake_fio(bin_dir, HANGS)
    code = f"""
import signal
from disksla.fio.job import FioJob
from disksla.fio.runner import find_fio
signal.signal(signal.SIGINT, signal.default_int_handler)
job = FioJob(name="x", target={str(disk)!r}, pattern="read", request_bytes=4096, runtime_s=1)
find_fio({str(bin_dir)!r}).run(job, limit_s=600)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        assert eventually((bin_dir / "hangs").exists, 30)
        caller.send_signal(number)
        assert caller.wait(30) == -number
    finally:
        caller.kill()
        caller.wait()
    pid = pid_left(bin_dir)
    assert eventually(lambda: is_gone(pid), 5)


def test_fio_survives_the_end_of_other_threads(bin_dir: Path, disk: Path) -> None:
    """Only the end of the thread that started fio, and waits for it, kills fio."""
    fio = fake(bin_dir, f"time.sleep(0.5){ANSWERS}")
    results = []
    runner = threading.Thread(target=lambda: results.append(fio.run(job(disk), limit_s=30)))
    runner.start()
    other = threading.Thread(target=lambda: None)
    other.start()
    other.join()
    runner.join()
    assert [result.read.requests for result in results] == [100]


def test_process_does_not_start_without_its_parent(tmp_path: Path) -> None:
    limits = ProcessLimits(parent=1, file_bytes=None, memory_bytes=2**32, gentle=False)
    ended = run_process(("/bin/touch", str(tmp_path / "started")), limits, limit_s=30)
    assert ended.status == 1
    assert "the parent process has ended" in ended.errors
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    "body",
    [
        "",
        "print('not json')",
        "print('{')",
        "print('{}')",
        "print('[1, 2]')",
        "os.write(1, bytes(range(256)))",
        'print(\'{"fio version": "fio-3.33", "jobs": []}\')',
    ],
)
def test_invalid_output_is_a_failure(bin_dir: Path, disk: Path, body: str) -> None:
    assert failure(fake(bin_dir, body), job(disk)).reason == "bad_output"


def test_output_without_end_is_bounded(bin_dir: Path, disk: Path) -> None:
    before_bytes = memory_bytes()
    failed = failure(fake(bin_dir, PRINTS_FOR_EVER), job(disk), limit_s=60)
    assert failed.reason == "bad_output"
    assert "printed more than 16 MiB" in str(failed)
    grown_bytes = memory_bytes() - before_bytes
    assert grown_bytes < 8 * MAX_OUTPUT_BYTES


def test_errors_without_end_are_bounded(bin_dir: Path, disk: Path) -> None:
    failed = failure(fake(bin_dir, PRINTS_ERRORS_FOR_EVER), job(disk), limit_s=HANG_LIMIT_S)
    assert failed.reason == "timeout"
    assert len(str(failed)) < 1000


def test_exit_status_is_a_failure_with_its_errors(bin_dir: Path, disk: Path) -> None:
    body = f"{ANSWERS}\nprint('fio: out of\\nluck \\a', file=sys.stderr); raise SystemExit(5)"
    failed = failure(fake(bin_dir, body), job(disk))
    assert failed.reason == "error"
    assert str(failed) == "fio exited with status 5: fio: out of luck ?"


def test_signal_is_a_failure(bin_dir: Path, disk: Path) -> None:
    failed = failure(fake(bin_dir, "os.kill(os.getpid(), 9)"), job(disk))
    assert (failed.reason, str(failed)) == ("error", "fio was killed by signal 9")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "no_space"),
        (errno.EROFS, "read_only"),
        (errno.EACCES, "permission"),
        (errno.ENXIO, "unplugged"),
        (errno.EIO, "error"),
    ],
)
def test_job_error_gives_the_reason(bin_dir: Path, disk: Path, code: int, reason: str) -> None:
    document = json.loads(ANSWER.read_text(encoding="utf-8"))
    document["jobs"][0]["error"] = code
    (bin_dir / "answer").write_text(json.dumps(document, indent=2), encoding="utf-8")
    failed = failure(fake(bin_dir, f"{ANSWERS}\nraise SystemExit(1)"), job(disk))
    assert failed.reason == reason
    assert errno.errorcode[code] in str(failed)


def test_too_long_arguments_are_a_failure(bin_dir: Path, disk: Path) -> None:
    too_long = msgspec.structs.replace(job(disk), name="x" * 2**20)
    failed = failure(fake(bin_dir, ANSWERS), too_long)
    assert failed.reason == "error"
    assert ": Argument list too long" in str(failed)


def test_target_removed_while_running_is_unplugged(bin_dir: Path, disk: Path) -> None:
    fio = fake(bin_dir, f"os.unlink({str(disk)!r}); raise SystemExit(1)")
    failed = failure(fio, job(disk))
    assert failed.reason == "unplugged"
    assert "was removed while fio was running" in str(failed)


def test_missing_target_is_unplugged(bin_dir: Path, tmp_path: Path) -> None:
    fio = fake(bin_dir, ANSWERS)
    assert failure(fio, job(tmp_path / "gone")).reason == "unplugged"
    assert not list(bin_dir.glob("pid.*")), "fio was not started"


@pytest.mark.parametrize("target", ["/dev/null", "/dev"])
def test_target_that_is_not_a_disk_is_refused(bin_dir: Path, target: str) -> None:
    with pytest.raises(DiskslaError, match="neither a block device nor a file"):
        fake(bin_dir, ANSWERS).run(job(target), limit_s=30)


# Process limits.

PRINTS_ITS_LIMITS = """
import json, resource
import psutil
me = psutil.Process()
limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
          for name in ("CORE", "FSIZE", "AS")}
applied = {**limits, "nice": me.nice(), "io": list(me.ionice()), "cwd": os.getcwd()}
print(json.dumps(applied), file=sys.stderr)
raise SystemExit(1)
"""


def applied_limits(bin_dir: Path, what: FioJob, *, gentle: bool) -> dict[str, object]:
    failed = failure(fake(bin_dir, PRINTS_ITS_LIMITS), what, gentle=gentle)
    applied: dict[str, object] = json.loads(str(failed).partition(": ")[2])
    return applied


def test_reading_fio_cannot_write_a_byte(bin_dir: Path, disk: Path) -> None:
    applied = applied_limits(bin_dir, job(disk), gentle=False)
    assert (applied["CORE"], applied["FSIZE"], applied["cwd"]) == (0, 0, "/proc")
    assert isinstance(applied["AS"], int)
    assert 2 * 1024**3 < applied["AS"] < 3 * 1024**3


def test_writing_fio_cannot_extend_its_file(bin_dir: Path, disk: Path) -> None:
    assert applied_limits(bin_dir, job(disk, "write"), gentle=False)["FSIZE"] == 4 * MIB


def test_gentle_lowers_the_priority(bin_dir: Path, disk: Path) -> None:
    applied = applied_limits(bin_dir, job(disk), gentle=True)
    assert applied["nice"] == max(os.nice(0), 5)
    assert applied["io"] == [psutil.IOPRIO_CLASS_BE, 7]
    applied = applied_limits(bin_dir, job(disk), gentle=False)
    assert applied["nice"] == os.nice(0)
    assert applied["io"] != [psutil.IOPRIO_CLASS_BE, 7]


# The real fio.


@needs_fio
@pytest.mark.parametrize("pattern", ["read", "randread", "write", "randwrite", "rw", "randrw"])
def test_real_fio_follows_the_job(disk: Path, pattern: Pattern) -> None:
    what = job(disk, pattern, rate_iops=200, workers=2, queue_depth=2, runtime_s=1)
    if pattern in {"rw", "randrw"}:
        what = job(disk, pattern, rate_iops=200, workers=2, runtime_s=1, read_share=0.7)
    result = find_fio().run(what, limit_s=30, gentle=True)
    both = result.read.iops + result.write.iops
    assert both == pytest.approx(200, rel=0.1)
    if pattern in {"rw", "randrw"}:
        assert result.read.iops == pytest.approx(140, rel=0.1)
    assert bool(result.write.requests) == what.writes
    for measured in (result.read, result.write):
        assert measured.bytes == measured.requests * 4 * KIB
        assert sum(one.requests for one in measured.bins) == measured.requests
        if measured.mean_latency_s is not None:
            total_s = sum(one.seconds * one.requests for one in measured.bins)
            assert total_s / measured.requests == pytest.approx(measured.mean_latency_s, rel=0.02)
    assert disk.stat().st_size == 4 * MIB


@needs_fio
def test_real_read_changes_nothing(disk: Path) -> None:
    before = disk.read_bytes()
    result = find_fio().run(job(disk, queue_depth=8), limit_s=30)
    assert result.read.requests > 0
    assert disk.read_bytes() == before


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
    with mounted_ext4(tmp_path) as mount_point:
        target = mount_point / "file"
        with target.open("wb") as file:
            file.truncate(64 * MIB)
        assert failure(find_fio(), job(target, "write", runtime_s=20)).reason == "no_space"
        subprocess.run(["mount", "-o", "remount,ro", str(mount_point)], check=True)
        assert failure(find_fio(), job(target, "write")).reason == "read_only"


@contextmanager
def mounted_ext4(directory: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("NOT TESTED: a small file system needs root and mkfs.ext4")
    image, mount_point = directory / "image", directory / "mounted"
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    mount_point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True)
    with attached(image) as device:
        subprocess.run(["mount", f"/dev/{device}", str(mount_point)], check=True)
        try:
            yield mount_point
        finally:
            subprocess.run(["umount", str(mount_point)], check=True)


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


@needs_fio
@needs_loop
@needs_fuse
def test_real_disk_that_stalls_does_not_block(tmp_path: Path) -> None:
    """Requests in flight cannot be cancelled: fio cannot be killed before they complete."""
    stalls = HERE / "stalls-for-10s.yml"
    fio = find_fio()
    with made(stalls, 0, read_scenario(stalls).disks[0], tmp_path) as disk:
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
