"""Block devices of the lab: created for a scenario, and removed at its end, also after errors."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, assert_never

from lab.fuse import mount
from lab.scenario import LabDisk, Scenario
from lab.truth import truth_name
from support.loop_device import attached
from support.waiting import eventually

BLKIO = Path("/sys/fs/cgroup/blkio")
_TIMEOUT_S = 10.0
DIRECT = "--direct-io=on"
"""Option of losetup: requests reach the file as they are, not through the page cache."""
ROOT = Path(__file__).resolve().parents[2]


class BlockDevice(NamedTuple):
    """A block device of the lab."""

    device: str
    """Kernel name."""
    truth: Path | None = None
    """Log of the truth; None for a limiter of the kernel, which has none."""
    server: subprocess.Popen[str] | None = None
    """Its process; of disks that share one, only the first has it, to start and end it once."""
    group: Path | None = None
    """Control group of the load, if the limit is on a group."""

    def begin(self) -> None:
        """Start the scenario of all disks of the process; until then they are unlimited."""
        self._send("begin")

    def end(self) -> None:
        """Remove all limits, so that what is left to write is written soon."""
        self._send("end")

    def _send(self, line: str) -> None:
        if self.server is not None and self.server.stdin is not None:
            self.server.stdin.write(f"{line}\n")
            self.server.stdin.flush()


def made(
    scenario: Path, number: int, disk: LabDisk, directory: Path
) -> AbstractContextManager[BlockDevice]:
    """Create disk `number` of a scenario until the end of the block; log to `directory`."""
    match disk.kind:
        case "served":
            return _served_alone(scenario, number, disk, directory)
        case "stacked":
            return _stacked(disk)
        case "cgroup":
            return _in_cgroup(disk)
        case _:
            assert_never(disk.kind)


@contextmanager
def all_made(path: Path, scenario: Scenario, directory: Path) -> Iterator[list[BlockDevice]]:
    """Create all disks of a scenario until the end of the block; log to `directory`."""
    with ExitStack() as undo:
        disks = list(enumerate(scenario.disks))
        if scenario.machine is not None and scenario.machine.meters:
            yield undo.enter_context(_served(path, disks, directory))
        else:
            yield [undo.enter_context(made(path, *disk, directory)) for disk in disks]


@contextmanager
def _served_alone(
    scenario: Path, number: int, disk: LabDisk, directory: Path
) -> Iterator[BlockDevice]:
    with _served(scenario, [(number, disk)], directory) as [device]:
        yield device


@contextmanager
def _served(
    scenario: Path, disks: Sequence[tuple[int, LabDisk]], directory: Path
) -> Iterator[list[BlockDevice]]:
    """Serve disks by one process, which needs their numbers."""
    with ExitStack() as undo:
        home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        entries = [home / f"disk-{number}" for number, _ in disks]
        descriptors = []
        for entry in entries:
            entry.touch()
            descriptors.append(mount(entry))
            undo.callback(_run_quietly, "umount", "--lazy", str(entry))
        served = [
            f"{number}:{descriptor}"
            for (number, _), descriptor in zip(disks, descriptors, strict=True)
        ]
        server = subprocess.Popen(
            [sys.executable, "-m", "lab.disk_server", str(scenario), str(directory), *served],
            stdin=subprocess.PIPE,
            pass_fds=descriptors,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'benches'}:{ROOT / 'tests'}"},
            start_new_session=True,
        )
        for descriptor in descriptors:
            os.close(descriptor)
        undo.callback(_stop, server)
        devices: list[BlockDevice] = []
        for entry, (number, disk) in zip(entries, disks, strict=True):
            name = undo.enter_context(attached(entry, DIRECT))
            Path(f"/sys/block/{name}/queue/write_cache").write_text(disk.cache, encoding="ascii")
            process = None if devices else server
            devices.append(BlockDevice(name, directory / truth_name(number), process))
        yield devices


@contextmanager
def _stacked(disk: LabDisk) -> Iterator[BlockDevice]:
    """Stack a loop device on another that the kernel limits, so requests wait in the upper one."""
    with ExitStack() as undo:
        lower = undo.enter_context(_unlimited(disk))
        undo.enter_context(_limited(BLKIO, lower, disk))
        yield BlockDevice(undo.enter_context(attached(Path(f"/dev/{lower}"), DIRECT)))


@contextmanager
def _in_cgroup(disk: LabDisk) -> Iterator[BlockDevice]:
    """Limit a control group: its requests wait before they reach the disk."""
    with ExitStack() as undo:
        device = undo.enter_context(_unlimited(disk))
        group = BLKIO / f"disksla-lab-{device}"
        group.mkdir()
        undo.callback(_remove_group, group)
        undo.enter_context(_limited(group, device, disk))
        yield BlockDevice(device, group=group)


@contextmanager
def _unlimited(disk: LabDisk) -> Iterator[str]:
    with ExitStack() as undo:
        home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        file = home / "disk"
        with file.open("wb") as content:
            content.truncate(disk.disk.size)
        yield undo.enter_context(attached(file, DIRECT))


@contextmanager
def _limited(group: Path, device: str, disk: LabDisk) -> Iterator[None]:
    number = Path(f"/sys/block/{device}/dev").read_text(encoding="ascii").strip()
    files = [group / f"blkio.throttle.{direction}_iops_device" for direction in ("read", "write")]
    try:
        for file in files:
            file.write_text(f"{number} {disk.iops}", encoding="ascii")
        yield
    finally:
        for file in files:
            file.write_text(f"{number} 0", encoding="ascii")


def _run_quietly(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


def _stop(server: subprocess.Popen[str]) -> None:
    if server.stdin is not None:
        server.stdin.close()
    try:
        server.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _remove_group(group: Path) -> None:
    def is_empty() -> bool:
        return not (group / "cgroup.procs").read_text(encoding="ascii").split()

    eventually(is_empty, _TIMEOUT_S)
    group.rmdir()
