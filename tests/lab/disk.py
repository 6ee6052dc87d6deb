"""Disks of the lab, made and taken away again: nothing is left, whatever happens."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, assert_never

from lab.fuse import mount
from lab.scenario import LabDisk
from support.loop_device import eventually

BLKIO = Path("/sys/fs/cgroup/blkio")
_ATTEMPTS = 40
_PATIENCE_S = 10.0
TESTS = Path(__file__).resolve().parent.parent


class Made(NamedTuple):
    """A disk that is there."""

    device: str
    """Its kernel name."""
    truth: Path | None = None
    """Where the disk writes what really happens; None if nobody knows."""
    server: subprocess.Popen[str] | None = None
    group: Path | None = None
    """Control group that a load has to enter."""

    def begin(self) -> None:
        """Let the disk do from now on what the scenario says."""
        if self.server is not None and self.server.stdin is not None:
            self.server.stdin.write("begin\n")
            self.server.stdin.flush()


def made(
    scenario: Path, number: int, disk: LabDisk, directory: Path
) -> AbstractContextManager[Made]:
    """Make one disk of a scenario; the truth about it is written into `directory`."""
    match disk.kind:
        case "served":
            return _served(scenario, number, directory)
        case "stacked":
            return _stacked(disk)
        case "cgroup":
            return _grouped(disk)
        case _:
            assert_never(disk.kind)


@contextmanager
def _served(scenario: Path, number: int, directory: Path) -> Iterator[Made]:
    truth = directory / f"truth-{number}.jsonl"
    with ExitStack() as undo:
        room = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        entry = room / "disk"
        entry.touch()
        descriptor = mount(entry)
        undo.callback(_quietly, "umount", "--lazy", str(entry))
        words = [str(scenario), str(number), str(descriptor), str(truth)]
        server = subprocess.Popen(
            [sys.executable, "-m", "lab.server", *words],
            stdin=subprocess.PIPE,
            pass_fds=[descriptor],
            text=True,
            cwd=TESTS,
            start_new_session=True,
        )
        os.close(descriptor)
        undo.callback(_end, server)
        yield Made(undo.enter_context(looped(entry)), truth, server)


@contextmanager
def _stacked(disk: LabDisk) -> Iterator[Made]:
    """Put a loop on a loop; the kernel holds the lower one, so the upper one is seen to wait."""
    with ExitStack() as undo:
        lower = undo.enter_context(_plain(disk))
        undo.enter_context(_limited(BLKIO, lower, disk))
        yield Made(undo.enter_context(looped(Path(f"/dev/{lower}"))))


@contextmanager
def _grouped(disk: LabDisk) -> Iterator[Made]:
    """Limit a control group: what it holds back never reaches the disk."""
    with ExitStack() as undo:
        device = undo.enter_context(_plain(disk))
        group = BLKIO / f"disksla-lab-{device}"
        group.mkdir()
        undo.callback(_remove_group, group)
        undo.enter_context(_limited(group, device, disk))
        yield Made(device, group=group)


@contextmanager
def _plain(disk: LabDisk) -> Iterator[str]:
    with ExitStack() as undo:
        room = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        file = room / "disk"
        with file.open("wb") as content:
            content.truncate(disk.disk.size)
        yield undo.enter_context(looped(file))


@contextmanager
def _limited(group: Path, device: str, disk: LabDisk) -> Iterator[None]:
    number = Path(f"/sys/block/{device}/dev").read_text(encoding="ascii").strip()
    files = [group / f"blkio.throttle.{way}_iops_device" for way in ("read", "write")]
    try:
        for file in files:
            file.write_text(f"{number} {disk.iops}", encoding="ascii")
        yield
    finally:
        for file in files:
            file.write_text(f"{number} 0", encoding="ascii")


@contextmanager
def looped(file: Path) -> Iterator[str]:
    """Put a loop device with direct I/O on a file; give its kernel name."""
    command = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    attempt = None
    for _ in range(_ATTEMPTS):  # another may take the free device first
        attempt = subprocess.run(command, check=False, capture_output=True, text=True)
        if attempt.returncode == 0:
            break
        time.sleep(0.05)
    else:
        raise OSError(f"{' '.join(command)}: {attempt.stderr if attempt else ''}")
    device = attempt.stdout.strip()
    try:
        yield Path(device).name
    finally:
        _quietly("losetup", "--detach", device)


def _quietly(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


def _end(server: subprocess.Popen[str]) -> None:
    if server.stdin is not None:
        server.stdin.close()
    try:
        server.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _remove_group(group: Path) -> None:
    def is_empty() -> bool:
        return not (group / "cgroup.procs").read_text(encoding="ascii").split()

    eventually(is_empty, _PATIENCE_S)
    group.rmdir()
