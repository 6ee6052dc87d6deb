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
from disksla.fio import process as child
from disksla.fio.job import FioJob, Pattern
from disksla.fio.result import FioError
from disksla.fio.runner import Fio, find_fio
from disksla.fio.sandbox import ProcessLimits
from lab.disk import made
from lab.scenario import read_scenario
from support.fake_fio import (
    ANSWERS,
    COMPLAINS_FOR_EVER,
    HANGS,
    HAS_A_GRANDCHILD,
    LEAVES_A_GRANDCHILD,
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
    usual: dict[str, object] = {"request_bytes": 4 * KIB, "runtime_s": 0.5}
    return FioJob(name="test", target=str(target), pattern=pattern, **{**usual, **more})  # type: ignore[arg-type]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    file = tmp_path / "disk"
    file.write_bytes(b"x" * 4 * MIB)
    return file


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Where a fake fio is, with what it leaves."""
    room = tmp_path / "bin"
    room.mkdir()
    shutil.copy(ANSWER, room / "answer")
    return room


def fake(room: Path, body: str) -> Fio:
    fake_fio(room, body)
    return find_fio(str(room))


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; init may still have to reap it."""
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


# Finding it.


def test_a_missing_fio_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"not installed; expected fio 3\.1 or newer"):
        find_fio(str(tmp_path))


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [
        ("fio-2.99", 0, "found fio-2.99; expected fio 3.1 or newer"),
        ("fio-3.0", 0, "found fio-3.0; expected fio 3.1 or newer"),
        ("flexible", 0, "found flexible; expected a version of fio"),
        ("", 0, "found nothing"),
        ("fio-3.33", 3, "ended with status 3"),
    ],
)
def test_another_program_or_an_old_one_is_refused(
    room: Path, version: str, status: int, words: str
) -> None:
    fake_fio(room, "", version=version, version_status=status)
    with pytest.raises(DiskslaError, match=words) as refused:
        find_fio(str(room))
    assert str(room / "fio") in str(refused.value)


def test_a_new_one_is_taken(room: Path) -> None:
    fake_fio(room, "", version="fio-3.1")
    found = find_fio(str(room))
    assert (found.path, found.version) == (room / "fio", (3, 1))


def test_a_program_that_the_kernel_cannot_start_is_refused(room: Path) -> None:
    (room / "fio").write_text("#!/nowhere\n", encoding="ascii")
    (room / "fio").chmod(0o755)
    with pytest.raises(
        DiskslaError, match=r"ended with status 127: .* cannot be run: No such file"
    ):
        find_fio(str(room))


# What is done with a fio that misbehaves.


def test_what_it_answers_is_the_result(room: Path, disk: Path) -> None:
    seconds: list[float] = []
    result = fake(room, f"import time; time.sleep(1.2){ANSWERS}").run(
        job(disk), limit_s=30, on_second=seconds.append
    )
    assert result.read.requests == 100
    assert len(seconds) >= 1
    assert seconds[0] >= 1


def test_it_is_told_to_read_only(room: Path, disk: Path) -> None:
    fio = fake(room, ANSWERS)
    fio.run(job(disk), limit_s=30)
    assert (room / "told-to-read-only").exists()
    assert not (room / "may-write").exists()
    fio.run(job(disk, "randwrite"), limit_s=30)
    assert (room / "may-write").exists()


def test_one_that_ignores_sigterm_is_killed_at_the_time_limit(room: Path, disk: Path) -> None:
    fio = fake(room, HANGS)
    failed = failure(fio, job(disk), limit_s=HANG_LIMIT_S)
    assert failed.reason == "timeout"
    assert "time limit" in str(failed)
    pid = pid_left(room)
    assert not Path(f"/proc/{pid}").exists(), "reaped, not only dead"


def test_a_grandchild_that_hangs_is_killed_too(room: Path, disk: Path) -> None:
    assert failure(fake(room, HAS_A_GRANDCHILD), job(disk), HANG_LIMIT_S).reason == "timeout"
    grandchild = pid_left(room, "grandchild")
    assert eventually(lambda: is_gone(grandchild), 5)


def test_a_grandchild_that_is_left_behind_holds_nobody_up(room: Path, disk: Path) -> None:
    assert fake(room, LEAVES_A_GRANDCHILD).run(job(disk), limit_s=30).read.requests == 100
    grandchild = pid_left(room, "grandchild")
    assert eventually(lambda: is_gone(grandchild), 5)


def test_it_ends_when_told_to(room: Path, disk: Path) -> None:
    fio = fake(room, HANGS)
    stop = threading.Event()

    def stop_when_it_runs() -> None:
        eventually((room / "hangs").exists, 30)
        stop.set()

    helper = threading.Thread(target=stop_when_it_runs)
    helper.start()
    failed = failure(fio, job(disk), limit_s=60, stop=stop)
    helper.join()
    assert failed.reason == "stopped"
    assert is_gone(pid_left(room))


def test_whatever_the_caller_raises_leaves_no_fio(room: Path, disk: Path) -> None:
    def interrupted(_: float) -> None:
        if (room / "hangs").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fake(room, HANGS).run(job(disk), limit_s=60, on_second=interrupted)
    assert is_gone(pid_left(room))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_dies_with_whoever_runs_it(room: Path, disk: Path, number: signal.Signals) -> None:
    fake_fio(room, HANGS)
    code = f"""
import signal
from disksla.fio.job import FioJob
from disksla.fio.runner import find_fio
signal.signal(signal.SIGINT, signal.default_int_handler)
job = FioJob(name="x", target={str(disk)!r}, pattern="read", request_bytes=4096, runtime_s=1)
find_fio({str(room)!r}).run(job, limit_s=600)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        assert eventually((room / "hangs").exists, 30)
        caller.send_signal(number)
        assert caller.wait(30) == -number
    finally:
        caller.kill()
        caller.wait()
    pid = pid_left(room)
    assert eventually(lambda: is_gone(pid), 5)


def test_it_lives_as_long_as_the_thread_that_runs_it(room: Path, disk: Path) -> None:
    """The thread that began it waits for it; others that end meanwhile do not matter."""
    fio = fake(room, f"time.sleep(0.5){ANSWERS}")
    results = []
    runner = threading.Thread(target=lambda: results.append(fio.run(job(disk), limit_s=30)))
    runner.start()
    other = threading.Thread(target=lambda: None)
    other.start()
    other.join()
    runner.join()
    assert [result.read.requests for result in results] == [100]


def test_it_does_not_begin_for_one_who_is_gone_already(tmp_path: Path) -> None:
    leash = ProcessLimits(parent=1, file_bytes=None, memory_bytes=2**32, gentle=False)
    ended = child.run_process(("/bin/touch", str(tmp_path / "begun")), leash, limit_s=30)
    assert ended.status == 1
    assert "whoever wanted this is gone" in ended.errors
    assert not (tmp_path / "begun").exists()


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
def test_garbage_is_a_failure(room: Path, disk: Path, body: str) -> None:
    assert failure(fake(room, body), job(disk)).reason == "bad_output"


def test_output_without_end_is_a_failure_and_does_not_fill_memory(room: Path, disk: Path) -> None:
    before_bytes = memory_bytes()
    failed = failure(fake(room, PRINTS_FOR_EVER), job(disk), limit_s=60)
    assert failed.reason == "bad_output"
    assert "without end" in str(failed)
    grown_bytes = memory_bytes() - before_bytes
    assert grown_bytes < 8 * child.MOST_OUTPUT_BYTES


def test_complaints_without_end_do_not_fill_memory(room: Path, disk: Path) -> None:
    failed = failure(fake(room, COMPLAINS_FOR_EVER), job(disk), limit_s=HANG_LIMIT_S)
    assert failed.reason == "timeout"
    assert len(str(failed)) < 1000


def test_a_status_is_a_failure_with_what_it_said(room: Path, disk: Path) -> None:
    body = f"{ANSWERS}\nprint('fio: out of\\nluck \\a', file=sys.stderr); raise SystemExit(5)"
    failed = failure(fake(room, body), job(disk))
    assert failed.reason == "error"
    assert str(failed) == "fio ended with status 5: fio: out of luck ?"


def test_a_signal_is_a_failure(room: Path, disk: Path) -> None:
    failed = failure(fake(room, "os.kill(os.getpid(), 9)"), job(disk))
    assert (failed.reason, str(failed)) == ("error", "fio ended with signal 9")


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
def test_the_error_of_a_job_is_the_reason(room: Path, disk: Path, code: int, reason: str) -> None:
    document = json.loads(ANSWER.read_text(encoding="utf-8"))
    document["jobs"][0]["error"] = code
    (room / "answer").write_text(json.dumps(document, indent=2), encoding="utf-8")
    failed = failure(fake(room, f"{ANSWERS}\nraise SystemExit(1)"), job(disk))
    assert failed.reason == reason
    assert errno.errorcode[code] in str(failed)


def test_one_that_cannot_be_started_is_a_failure(room: Path, disk: Path) -> None:
    endless = msgspec.structs.replace(job(disk), name="x" * 2**20)
    failed = failure(fake(room, ANSWERS), endless)
    assert failed.reason == "error"
    assert "cannot be started: Argument list too long" in str(failed)


def test_a_target_that_vanishes_meanwhile_is_the_reason(room: Path, disk: Path) -> None:
    fio = fake(room, f"os.unlink({str(disk)!r}); raise SystemExit(1)")
    failed = failure(fio, job(disk))
    assert failed.reason == "unplugged"
    assert "taken away" in str(failed)


def test_a_target_that_is_not_there_is_the_reason(room: Path, tmp_path: Path) -> None:
    fio = fake(room, ANSWERS)
    assert failure(fio, job(tmp_path / "gone")).reason == "unplugged"
    assert not list(room.glob("pid.*")), "fio was not even begun"


@pytest.mark.parametrize("target", ["/dev/null", "/dev"])
def test_what_is_no_disk_is_refused(room: Path, target: str) -> None:
    with pytest.raises(DiskslaError, match="neither a block device nor a file"):
        fake(room, ANSWERS).run(job(target), limit_s=30)


# What it is held to.

TELLS_ITS_LIMITS = """
import json, resource
import psutil
me = psutil.Process()
limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
          for name in ("CORE", "FSIZE", "AS")}
held = {**limits, "nice": me.nice(), "io": list(me.ionice()), "cwd": os.getcwd()}
print(json.dumps(held), file=sys.stderr)
raise SystemExit(1)
"""


def held(room: Path, what: FioJob, *, gentle: bool) -> dict[str, object]:
    failed = failure(fake(room, TELLS_ITS_LIMITS), what, gentle=gentle)
    told: dict[str, object] = json.loads(str(failed).partition(": ")[2])
    return told


def test_what_only_reads_cannot_write_a_byte(room: Path, disk: Path) -> None:
    told = held(room, job(disk), gentle=False)
    assert (told["CORE"], told["FSIZE"], told["cwd"]) == (0, 0, "/proc")
    assert isinstance(told["AS"], int)
    assert 2 * 1024**3 < told["AS"] < 3 * 1024**3


def test_what_writes_cannot_make_its_file_longer(room: Path, disk: Path) -> None:
    assert held(room, job(disk, "write"), gentle=False)["FSIZE"] == 4 * MIB


def test_only_gentle_runs_come_last(room: Path, disk: Path) -> None:
    told = held(room, job(disk), gentle=True)
    assert told["nice"] == max(os.nice(0), 5)
    assert told["io"] == [psutil.IOPRIO_CLASS_BE, 7]
    told = held(room, job(disk), gentle=False)
    assert told["nice"] == os.nice(0)
    assert told["io"] != [psutil.IOPRIO_CLASS_BE, 7]


# The real one.


@needs_fio
@pytest.mark.parametrize("pattern", ["read", "randread", "write", "randwrite", "rw", "randrw"])
def test_real_runs_do_as_they_are_told(disk: Path, pattern: Pattern) -> None:
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
def test_a_real_run_that_reads_changes_nothing(disk: Path) -> None:
    before = disk.read_bytes()
    result = find_fio().run(job(disk, queue_depth=8), limit_s=30)
    assert result.read.requests > 0
    assert disk.read_bytes() == before


@needs_fio
def test_real_sequential_workers_share_the_span(disk: Path) -> None:
    """Each writes its own half, and nothing outside the region."""
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
def test_a_real_mixture_of_places(disk: Path) -> None:
    what = job(disk, "read", random_share=0.3, ramp_s=0.2, queue_depth=4)
    assert find_fio().run(what, limit_s=30).read.requests > 0


@needs_fio
def test_a_real_target_with_a_colon_is_meant_as_one(tmp_path: Path) -> None:
    target = tmp_path / "pci-0000:00:1f.2 disk"
    target.write_bytes(bytes(MIB))
    (tmp_path / "pci-0000").write_bytes(bytes(MIB))
    assert find_fio().run(job(target), limit_s=30).read.requests > 0


@needs_fio
def test_a_real_run_leaves_no_file_when_it_is_ended(disk: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    what = job(disk, "randrw", runtime_s=60, rate_iops=100)
    with chdir(tmp_path):
        assert failure(find_fio(), what, HANG_LIMIT_S).reason == "timeout"
    assert sorted(tmp_path.iterdir()) == before


@needs_fio
def test_a_real_file_system_without_room_or_right_to_write(tmp_path: Path) -> None:
    """The file is longer than its blocks, so that writing needs room that is not there."""
    with mounted_ext4(tmp_path) as place:
        target = place / "file"
        with target.open("wb") as file:
            file.truncate(64 * MIB)
        assert failure(find_fio(), job(target, "write", runtime_s=20)).reason == "no_space"
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert failure(find_fio(), job(target, "write")).reason == "read_only"


@contextmanager
def mounted_ext4(room: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("NOT TESTED: a small file system needs root and mkfs.ext4")
    image, place = room / "image", room / "mounted"
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True)
    with attached(image) as device:
        subprocess.run(["mount", f"/dev/{device}", str(place)], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", str(place)], check=True)


@needs_fio
@needs_loop
def test_a_real_device_is_read_and_written(disk: Path) -> None:
    with attached(disk) as device:
        target = f"/dev/{device}"
        fio = find_fio()
        assert fio.run(job(target, rate_iops=50), limit_s=30).read.requests > 10
        assert fio.run(job(target, "randwrite", rate_iops=50), limit_s=30).write.requests > 10


@needs_fio
@needs_loop
def test_a_real_disk_that_is_unplugged_under_load(disk: Path) -> None:
    with attached(disk) as device:
        target = Path(f"/dev/{device}")

        def unplug(_: float) -> None:
            # Detaching a loop device waits for its users; to shrink it is at once.
            os.truncate(disk, 0)
            subprocess.run(["losetup", "--set-capacity", str(target)], check=True)

        failed = failure(find_fio(), job(target, runtime_s=20), on_second=unplug)
        assert failed.reason == "unplugged"
        assert "taken away" in str(failed)
        assert failure(find_fio(), job(target)).reason == "unplugged"


@needs_fio
@needs_loop
@needs_fuse
def test_a_real_disk_that_stalls_holds_nobody_up(tmp_path: Path) -> None:
    """Its requests cannot be called back: the process hears no signal before they are done."""
    stalls = HERE / "stalls-for-10s.yml"
    fio = find_fio()
    with made(stalls, 0, read_scenario(stalls).disks[0], tmp_path) as disk:
        what = job(f"/dev/{disk.device}", runtime_s=20, queue_depth=4, rate_iops=100)
        disk.begin()
        failed = failure(fio, what, limit_s=2)
        assert failed.reason == "timeout"
        assert "cannot even be killed" in str(failed)
        assert "earlier fio" in str(failure(fio, what))
        reapers = [one for one in threading.enumerate() if one.name.startswith("reaper-")]
        assert reapers
        for reaper in reapers:
            reaper.join(30)
            assert not reaper.is_alive()
        assert fio.run(job(what.target), limit_s=30).read.requests > 0
