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
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import MIB
from disksla.measure.fio.job import FioJob
from disksla.measure.fio.process import MAX_OUTPUT_BYTES, run_process
from disksla.measure.fio.runner import Fio, find_fio
from disksla.measure.fio.sandbox import ProcessLimits
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
from support.fio_jobs import failure, job
from support.waiting import eventually

HERE = Path(__file__).parent

ANSWER = HERE / "results" / "reads.json"

HANG_LIMIT_S = 1.0


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
    return Fio(fake_fio(bin_dir, body), (3, 33))


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


def test_find_fio_without_fio_raises(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"not installed; expected fio 3\.1 or newer"):
        find_fio(str(tmp_path))


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("fio-3.1", 0, None),
        ("fio-3.0", 0, "found fio-3.0; expected fio 3.1 or newer"),
        ("", 0, "found nothing; expected a version of fio"),
        ("fio-3.33", 3, "fio --version exited with status 3"),
    ],
)
def test_find_fio_refuses_old_versions_and_other_programs(
    bin_dir: Path, version: str, status: int, message: str | None
) -> None:
    fake_fio(bin_dir, "", version=version, version_status=status)
    if message is None:
        found = find_fio(str(bin_dir))
        assert (found.path, found.version) == (bin_dir / "fio", (3, 1))
        return
    with pytest.raises(DiskslaError, match=message) as refused:
        find_fio(str(bin_dir))
    assert str(bin_dir / "fio") in str(refused.value)


def test_find_fio_refuses_a_program_that_cannot_run(bin_dir: Path) -> None:
    (bin_dir / "fio").write_text("#!/nowhere\n", encoding="ascii")
    (bin_dir / "fio").chmod(0o755)
    with pytest.raises(DiskslaError, match=r"exited with status 127: cannot run .*: No such file"):
        find_fio(str(bin_dir))


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
from disksla.measure.fio.job import FioJob
from disksla.measure.fio.runner import find_fio
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


@pytest.mark.parametrize("body", ["", "os.write(1, bytes(range(256)))"])
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


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"{ANSWERS}\nprint('fio: out of\\nluck \\a', file=sys.stderr); raise SystemExit(5)",
            "fio exited with status 5: fio: out of luck ?",
        ),
        ("os.kill(os.getpid(), 9)", "fio was killed by signal 9"),
    ],
)
def test_how_it_ended_is_a_failure(bin_dir: Path, disk: Path, body: str, message: str) -> None:
    failed = failure(fake(bin_dir, body), job(disk))
    assert (failed.reason, str(failed)) == ("error", message)


def test_job_error_gives_the_reason(bin_dir: Path, disk: Path) -> None:
    document = json.loads(ANSWER.read_text(encoding="utf-8"))
    document["jobs"][0]["error"] = errno.ENOSPC
    (bin_dir / "answer").write_text(json.dumps(document, indent=2), encoding="utf-8")
    failed = failure(fake(bin_dir, f"{ANSWERS}\nraise SystemExit(1)"), job(disk))
    assert failed.reason == "no_space"
    assert "ENOSPC" in str(failed)


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


def test_limits_of_fio(bin_dir: Path, disk: Path) -> None:
    """One that reads cannot write a byte, and one that writes cannot extend its file."""

    def applied(what: FioJob, *, gentle: bool) -> dict[str, Any]:
        failed = failure(fake(bin_dir, PRINTS_ITS_LIMITS), what, gentle=gentle)
        found: dict[str, Any] = json.loads(str(failed).partition(": ")[2])
        return found

    lowest = [psutil.IOPRIO_CLASS_BE, 7]
    reads, writes = applied(job(disk), gentle=False), applied(job(disk, "write"), gentle=True)
    assert (reads["CORE"], reads["FSIZE"], reads["cwd"]) == (0, 0, "/proc")
    assert 2 * 1024**3 < reads["AS"] < 3 * 1024**3
    assert writes["FSIZE"] == 4 * MIB
    assert (writes["nice"], writes["io"]) == (max(os.nice(0), 5), lowest)
    assert reads["nice"] == os.nice(0)
    assert reads["io"] != lowest
