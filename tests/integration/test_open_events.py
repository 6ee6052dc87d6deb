"""`disksla open-events` and a daemon without privileges: what it gets, and what it cannot do."""

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.kernel.performance_events import EventsRequest
from disksla.kernel.performance_events.opened import ask
from disksla.kernel.performance_events.opening import COMPLETED, QUEUED, REQUESTED
from support.daemon_process import DISKSLA
from support.loop_device import attached, needs_loop
from support.tracefs import sysfs_with_tracefs
from support.waiting import eventually

PATIENCE_S = 20.0
NOBODY = 65534
UNPRIVILEGED = Path(__file__).with_name("unprivileged.py")

pytestmark = needs_loop


@pytest.fixture
def roots(tmp_path: Path) -> Iterator[Roots]:
    with sysfs_with_tracefs(tmp_path) as found:
        yield found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "image"
    file.write_bytes(bytes(2**22))
    with attached(file, "--direct-io=on") as device:
        yield device


@contextmanager
def helping(roots: Roots, directory: Path, *before: str) -> Iterator[Path]:
    """Run the helper, for the group of nobody, and yield its socket; it ends at SIGTERM."""
    path = directory / "events.sock"
    command = [*before, str(DISKSLA), "open-events", "--listen", str(path)]
    options = ["--path.sysfs", str(roots.sysfs), "--log.level", "error"]
    with subprocess.Popen([*command, *options]) as process:
        try:
            assert eventually(path.exists, PATIENCE_S)
            os.chown(path, 0, NOBODY)
            for parent in (directory, *directory.parents[:3]):
                parent.chmod(parent.stat().st_mode | 0o055)
            yield path
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert not path.exists()


def unprivileged(path: Path, device: str, *arguments: str) -> list[str]:
    """Run tests/integration/unprivileged.py as nobody, and return the lines that it prints."""
    command = [sys.executable, str(UNPRIVILEGED), str(path), device, *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S * 2
    )
    if "NOT TESTED" in ended.stdout:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.in_check
def test_descriptors_permit_to_count_and_sample_and_nothing_more(
    roots: Roots, disk: str, tmp_path: Path
) -> None:
    """By a process that is nobody, and has capabilities in a user namespace of its own only."""
    with helping(roots, tmp_path) as path:
        assert unprivileged(path, disk) == [
            "own event: EACCES",
            "count: 25 writes of 25",
            "filter of a counter: EEXIST",
            "period of a counter: EINVAL",
            "map of the samples: done",
            "filter of a sampler: EEXIST",
            "period of a sampler: done",
            "enable and disable a sampler: done",
        ]


def test_helper_with_one_capability(roots: Roots, disk: str, tmp_path: Path) -> None:
    """CAP_PERFMON suffices where the kernel accepts it, as that of RHEL does."""
    paranoia = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii"))
    one = "--securebits=+noroot --inh-caps=-all,+perfmon --bounding-set=-all,+perfmon"
    if paranoia > 2:
        pytest.skip(f"NOT TESTED: kernel.perf_event_paranoid is {paranoia}")
    with helping(roots, tmp_path, "setpriv", *one.split(), "--ambient-caps=-all,+perfmon") as path:
        assert "count: 25 writes of 25" in unprivileged(path, disk)


def test_helper_without_a_capability_says_why(roots: Roots, disk: str, tmp_path: Path) -> None:
    none = "--securebits=+noroot --inh-caps=-all --bounding-set=-all --ambient-caps=-all"
    with helping(roots, tmp_path, "setpriv", *none.split()) as path:
        (line,) = unprivileged(path, disk, "--refused")
    assert "cannot open performance events: Permission denied; kernel.perf_event_paranoid is" in (
        line
    )


WITHOUT_EVENTS = """
import ctypes, os, struct, sys

# seccomp: perf_event_open (298) returns EPERM (1).
lines = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
sock_filter = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
assert libc.prctl(22, 2, sock_filter) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="NOT TESTED: system call numbers")
def test_helper_under_a_filter_of_system_calls_says_why(
    roots: Roots, disk: str, tmp_path: Path
) -> None:
    with helping(roots, tmp_path, sys.executable, "-c", WITHOUT_EVENTS) as path:
        (line,) = unprivileged(path, disk, "--refused")
    expected = "Operation not permitted; a filter of system calls (seccomp) or a security module"
    assert f"cannot open performance events: {expected}" in line


@pytest.mark.parametrize("text", ["1:1", "nonsense"])
def test_disk_that_does_not_exist_is_refused(roots: Roots, tmp_path: Path, text: str) -> None:
    with helping(roots, tmp_path) as path:
        (line,) = unprivileged(path, text, "--refused")
    assert "expected" in line


def is_named(process: int, name: str) -> bool:
    return Path(f"/proc/{process}/comm").read_text() == f"{name}\n"


def test_helper_as_systemd_starts_it(roots: Roots, disk: str, tmp_path: Path) -> None:
    """With a connection as descriptor 3, credentials instead of tracefs, and nothing else.

    It ends when the events are closed.
    """
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    for name in (COMPLETED, REQUESTED, QUEUED):
        source = roots.sysfs / "kernel/tracing/events/block" / name / "format"
        (credentials / name).write_text(source.read_text(encoding="ascii"))
    number = Path(f"/dev/{disk}").stat().st_rdev
    device = f"{os.major(number)}:{os.minor(number)}"
    path = tmp_path / "events.sock"
    with UnixSocket(path, socket.SOCK_SEQPACKET).listening() as listening:
        for events in ("data_writes", "requests"):
            request = EventsRequest(events, (device,))
            with ThreadPoolExecutor() as threads:
                asked = threads.submit(ask, path, request)
                connection, _ = listening.accept()
                with connection:
                    command = f"exec {DISKSLA} open-events 3<&{connection.fileno()}"
                    process = subprocess.Popen(
                        ["bash", "-c", command],
                        env={"CREDENTIALS_DIRECTORY": str(credentials)},
                        pass_fds=[connection.fileno()],
                        stderr=subprocess.PIPE,
                    )
                opened = asked.result(PATIENCE_S)
            assert len(opened.by_cpu) == os.cpu_count()
            assert (opened.record is None) == (events == "data_writes")
            is_shell = partial(is_named, process.pid, "sh")
            assert eventually(is_shell, PATIENCE_S), "the connection counts while events are open"
            opened.close()
            _, errors = process.communicate(timeout=PATIENCE_S)
            assert (process.returncode, errors) == (0, b"")
