"""Faults around the state file: a killed daemon, a full or a read-only disk, files that lie."""

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.daemon import Daemon as DaemonInside
from disksla.pipeline.sampler import read_clocks
from disksla.pipeline.saved_state import SavedState, decode
from disksla.system.machine_id import read_machine_id
from disksla.system.systemd import ServiceManager
from disksla.web.listen import ListenAddress
from faults.saved import A_WINDOW_OR_TWO_S, LEVEL, REFILL_IOPS, bounds, later, leave, state_of
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import CAPACITY, FakeMachine
from support.loop_device import eventually

StartDaemon = Callable[..., Daemon]

needs_mount = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0,
    reason="NOT TESTED: mounting needs root",
)

KILLED_AGAIN_AND_AGAIN = """
import os, random, signal, sys, time
from pathlib import Path
from disksla.pipeline.saved_state import decode, encode
from disksla.pipeline.sampler import read_clocks
from disksla.system.state_file import StateFile
import msgspec

directory, chance = Path(sys.argv[1]), random.Random(4)
clean = decode((directory / "state.json").read_bytes(), sys.argv[2], read_clocks())
[(key, disk)] = clean.disks.items()
drafts = last = 0
for kills in range(1, 301):
    child = os.fork()
    if child == 0:
        file = StateFile(directory)
        number = last
        while True:
            number += 1
            many = {f"{key}-{n}": disk for n in range(number % 100)}
            told = msgspec.structs.replace(clean, boot=str(number), disks=many)
            if not file.write(encode(told)):
                os._exit(1)
    time.sleep(chance.uniform(0.0, 0.03))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, status
    drafts += (directory / "state.json.new").exists()
    file = StateFile(directory)
    found = file.read(lambda text: decode(text, sys.argv[2], read_clocks()))
    assert found is not None, file.problem
    number = last if found is clean or not found.boot.isdigit() else int(found.boot)
    assert number >= last
    assert number == 0 or len(found.disks) == number % 100
    last = number
    if kills >= 30 and drafts >= 5:
        break
assert file.errors == 0
print(kills, drafts, last)
"""


def test_a_state_is_whole_whenever_the_daemon_is_killed(machine: FakeMachine) -> None:
    """Killed at least 30 times, and at least 5 times of these in the midst of writing."""
    file = leave(machine, state_of(machine))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AGAIN_AND_AGAIN, file.parent, read_machine_id()],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode == 0, killed.stderr
    kills, drafts, last = map(int, killed.stdout.split())
    assert kills >= 30
    assert drafts >= 5, "never killed while it wrote"
    assert last > 0
    assert {path.name for path in machine.state.iterdir()} <= {"state.json", "state.json.new"}


def test_credits_account_for_the_time_between_a_kill_and_the_next_start(
    start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """In it the bucket was filled, and anybody may have used the disk."""
    leave(machine, state_of(machine))
    killed = start_daemon(*machine.options)
    bounds(killed)
    killed.process.kill()
    killed.process.wait()
    begun_s = time.monotonic()
    leave(machine, state_of(machine, clocks=later(-50.0)))
    lower, upper = bounds(start_daemon(*machine.options))
    most_s = 50 + time.monotonic() - begun_s + A_WINDOW_OR_TWO_S
    assert lower == 0
    assert LEVEL + 50 * REFILL_IOPS <= upper <= LEVEL + most_s * REFILL_IOPS


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"clocks": later(7200.0)}, "s in the future; check the system clock"),
        ({"machine": "another"}, "saved by another machine"),
    ],
    ids=["from the future", "of another machine"],
)
def test_a_state_that_is_not_ours_is_set_aside(
    start_daemon: StartDaemon, machine: FakeMachine, told: dict[str, object], reason: str
) -> None:
    file = leave(machine, state_of(machine, **told))
    left = file.read_bytes()
    daemon = start_daemon(*machine.options)
    assert bounds(daemon) == (0, CAPACITY)
    [aside] = machine.state.glob("state.json.damaged-*")
    assert aside.read_bytes() == left
    [said] = [line for line in daemon.log() if "is not used" in line]
    assert reason in said
    assert daemon.samples(collector="state")["disksla_collector_success"] == 0
    assert f"<p>state: {file} is not used" in daemon.get("/")[1]
    assert daemon.end() == 0
    assert saved_in(file).disks.keys() == {"serial:vol-1"}


def saved_in(file: Path) -> SavedState:
    return decode(file.read_bytes(), read_machine_id(), read_clocks())


@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
def test_what_stands_in_the_place_of_the_state_is_neither_read_nor_waited_for(
    start_daemon: StartDaemon, machine: FakeMachine, tmp_path: Path, kind: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    leave(machine, state_of(machine)).rename(elsewhere)
    left = elsewhere.read_bytes()
    file = machine.state / "state.json"
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to(elsewhere)
    daemon = start_daemon(*machine.options)
    assert bounds(daemon) == (0, CAPACITY)
    assert daemon.end() == 0
    assert elsewhere.read_bytes() == left
    assert len(list(machine.state.glob("state.json.damaged-*"))) == 1
    assert not file.is_symlink()
    assert saved_in(file).disks


@contextmanager
def small_disk(directory: Path) -> Iterator[None]:
    """Let a directory be a file system of 64 KiB."""
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
    ("spoil", "reason"),
    [(fill, "No space left on device"), (refuse_writes, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_where_nothing_can_be_saved_the_old_state_stays_and_the_watch_goes_on(
    start_daemon: StartDaemon,
    machine: FakeMachine,
    spoil: Callable[[Path], None],
    reason: str,
) -> None:
    with small_disk(machine.state):
        file = leave(machine, state_of(machine))
        left = file.read_bytes()
        spoil(machine.state)
        daemon = start_daemon(*machine.options)
        assert bounds(daemon)[1] < CAPACITY
        assert daemon.end() == 0
        [said] = [line for line in daemon.log() if "cannot save" in line]
        assert f"cannot save to {file}: {reason}" in said
        assert file.read_bytes() == left
        assert not list(machine.state.glob("*.new"))


@needs_mount
@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="NOT TESTED: needs mkfs.ext4")
def test_while_the_disk_of_the_state_hangs_the_watch_goes_on(
    machine: FakeMachine, loop_device: str
) -> None:
    subprocess.run(["mkfs.ext4", "-q", f"/dev/{loop_device}"], check=True)
    machine.state.mkdir()
    subprocess.run(["mount", f"/dev/{loop_device}", machine.state], check=True)
    listen = [ListenAddress("127.0.0.1", 0)]
    daemon = DaemonInside(machine.paths, machine.config, listen, "/metrics", ServiceManager())
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
    """Let whoever writes to a file system wait."""
    subprocess.run(["fsfreeze", "--freeze", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], check=True)
