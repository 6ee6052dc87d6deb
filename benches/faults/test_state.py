"""Faults of the state file: a killed daemon, a full or read-only disk, invalid files."""

import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import read_machine_id
from disksla.base.operating_system.systemd import ServiceManager
from disksla.serve.daemon import Daemon as DaemonInProcess
from disksla.serve.daemon import WebOptions
from disksla.serve.http_server.connection import ListenAddress
from disksla.state.pipeline.sampler import read_clocks
from disksla.state.pipeline.saved_state import SavedState, decode
from faults.state_files import (
    BASELINE_IOPS,
    LEVEL,
    Elapsed,
    first_bounds,
    saved_state,
    shifted_clocks,
    write_state,
)
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import CAPACITY, FakeMachine
from support.waiting import eventually

StartDaemon = Callable[..., Daemon]

needs_mount = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0,
    reason="NOT TESTED: mounting needs root",
)

KILL_DURING_WRITES = """
import os, random, signal, sys, time
from pathlib import Path
from disksla.state.pipeline.saved_state import decode, encode
from disksla.state.pipeline.sampler import read_clocks
from disksla.base.operating_system.state_file import StateFile
import msgspec

directory, seeded = Path(sys.argv[1]), random.Random(4)
original = decode((directory / "state.json").read_bytes(), sys.argv[2], read_clocks())
[(key, disk)] = original.disks.items()
drafts = last = 0
for kills in range(1, 301):
    child = os.fork()
    if child == 0:
        file = StateFile(directory)
        number = last
        while True:
            number += 1
            many = {f"{key}-{n}": disk for n in range(number % 100)}
            state = msgspec.structs.replace(original, boot=str(number), disks=many)
            if not file.write(encode(state)):
                os._exit(1)
    time.sleep(seeded.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    drafts += (directory / "state.json.new").exists()
    file = StateFile(directory)
    found = file.read(lambda text: decode(text, sys.argv[2], read_clocks()))
    assert found is not None, file.problem
    number = last if found is original or not found.boot.isdigit() else int(found.boot)
    assert number >= last
    assert number == 0 or len(found.disks) == number % 100
    last = number
    if kills >= 30 and drafts >= 5:
        break
assert file.errors == 0
print(kills, drafts, last)
"""


def test_state_file_is_whole_after_kills_during_writes(machine: FakeMachine) -> None:
    """At least 30 kills, of which at least 5 interrupt a write."""
    file = write_state(machine, saved_state(machine))
    killed = subprocess.run(
        [sys.executable, "-c", KILL_DURING_WRITES, file.parent, read_machine_id()],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode == 0, killed.stderr
    kills, drafts, last = map(int, killed.stdout.split())
    assert kills >= 30
    assert drafts >= 5, "too few kills interrupted a write"
    assert last > 0
    assert {path.name for path in machine.state.iterdir()} <= {"state.json", "state.json.new"}


def test_credits_include_the_time_between_kill_and_start(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """The baseline filled the bucket meanwhile, and the disk may have been used."""
    write_state(machine, saved_state(machine))
    killed = start_daemon(*machine.options)
    first_bounds(killed)
    killed.process.kill()
    killed.process.wait()
    elapsed = Elapsed()
    write_state(machine, saved_state(machine, clocks=shifted_clocks(-50.0)))
    lower, upper = first_bounds(start_daemon(*machine.options))
    gain = elapsed.gain()
    assert 0 <= lower <= gain
    assert 50 * BASELINE_IOPS <= upper - LEVEL <= 50 * BASELINE_IOPS + gain


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"clocks": shifted_clocks(7200.0)}, "s in the future; check the system clock"),
        ({"machine": "another"}, "saved by another machine"),
    ],
    ids=["from the future", "of another machine"],
)
def test_foreign_state_is_renamed_and_ignored(
    start_daemon: StartDaemon, machine: FakeMachine, changes: dict[str, object], reason: str
) -> None:
    file = write_state(machine, saved_state(machine, **changes))
    content = file.read_bytes()
    elapsed = Elapsed()
    daemon = start_daemon(*machine.options)
    check_widest_bounds(daemon, elapsed)
    [renamed] = machine.state.glob("state.json.damaged-*")
    assert renamed.read_bytes() == content
    [line] = [line for line in daemon.log() if "cannot use" in line]
    assert reason in line
    assert daemon.samples(collector="state")["disksla_collector_success"] == 0
    assert f"<p>state: cannot use {file}: " in daemon.get("/")[1]
    assert daemon.end() == 0
    assert saved_in(file).disks.keys() == {"serial:vol-1"}


def check_widest_bounds(daemon: Daemon, elapsed: Elapsed) -> None:
    """Check that nothing is known of the credits but what the disk gained since the start."""
    lower, upper = first_bounds(daemon)
    assert 0 <= lower <= elapsed.gain()
    assert upper == CAPACITY


def saved_in(file: Path) -> SavedState:
    return decode(file.read_bytes(), read_machine_id(), read_clocks())


@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
def test_special_file_in_place_of_the_state_is_renamed(
    start_daemon: StartDaemon, machine: FakeMachine, tmp_path: Path, kind: str
) -> None:
    other = tmp_path / "other"
    write_state(machine, saved_state(machine)).rename(other)
    content = other.read_bytes()
    file = machine.state / "state.json"
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to(other)
    elapsed = Elapsed()
    daemon = start_daemon(*machine.options)
    check_widest_bounds(daemon, elapsed)
    assert daemon.end() == 0
    assert other.read_bytes() == content
    assert len(list(machine.state.glob("state.json.damaged-*"))) == 1
    assert not file.is_symlink()
    assert saved_in(file).disks


@contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """Mount a file system of 64 KiB on a new directory."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


def fill(directory: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (directory / "junk").write_bytes(bytes(64 * 1024))


def refuse_writes(directory: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", directory], check=True)


@needs_mount
@pytest.mark.parametrize(
    ("fail_writes", "reason"),
    [(fill, "No space left on device"), (refuse_writes, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_failed_save_keeps_the_old_state_and_the_daemon(
    start_daemon: StartDaemon,
    machine: FakeMachine,
    fail_writes: Callable[[Path], None],
    reason: str,
) -> None:
    with small_disk(machine.state):
        file = write_state(machine, saved_state(machine))
        content = file.read_bytes()
        fail_writes(machine.state)
        daemon = start_daemon(*machine.options)
        assert first_bounds(daemon)[1] < CAPACITY
        assert daemon.end() == 0
        [line] = [line for line in daemon.log() if "cannot save" in line]
        assert f"cannot save to {file}: {reason}" in line
        assert file.read_bytes() == content
        assert not list(machine.state.glob("*.new"))


@needs_mount
@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="NOT TESTED: needs mkfs.ext4")
def test_hanging_state_disk_does_not_stop_the_sampler(
    machine: FakeMachine, loop_device: str
) -> None:
    subprocess.run(["mkfs.ext4", "-q", f"/dev/{loop_device}"], check=True)
    machine.state.mkdir()
    subprocess.run(["mount", f"/dev/{loop_device}", machine.state], check=True)
    web = WebOptions([ListenAddress("127.0.0.1", 0)])
    daemon = DaemonInProcess(machine.paths, machine.config, ServiceManager(), web)
    saving = threading.Thread(target=daemon.save)
    try:
        daemon.start()
        assert eventually(
            lambda: any(disk.credits for disk in daemon.snapshot().disks), PATIENCE_S
        )
        with frozen(machine.state):
            saving.start()
            before = daemon.snapshot().sampler.ticks
            assert eventually(lambda: daemon.snapshot().sampler.ticks > before + 10, PATIENCE_S)
            assert daemon.is_healthy()
            assert saving.is_alive()
        saving.join(PATIENCE_S)
        assert saved_in(machine.state / "state.json").disks
    finally:
        daemon.stop()
        gc.unfreeze()
        subprocess.run(["umount", machine.state], check=True)


@contextmanager
def frozen(directory: Path) -> Iterator[None]:
    """Freeze a file system: writes to it block until the end of the block."""
    subprocess.run(["fsfreeze", "--freeze", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], check=True)
