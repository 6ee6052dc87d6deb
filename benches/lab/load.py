"""Loads of real disks: fio on the device, programs and databases on a file system."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from lab.databases import commit, database_on
from lab.disk import BlockDevice
from lab.scenario import LabDisk, Phase
from lab.server import Database, run_for

_MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-K"),
}


@contextmanager
def mounted(device: str, kind: Literal["ext4", "xfs"]) -> Iterator[Path]:
    """Create a file system on a device, and yield its mount point until the end of the block."""
    path = f"/dev/{device}"
    subprocess.run([*_MAKE[kind], path], check=True, stdin=subprocess.DEVNULL)
    with ExitStack() as undo:
        mount_point = undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-"))
        subprocess.run(["mount", path, mount_point], check=True)
        undo.callback(_unmount, mount_point)
        yield Path(mount_point)


def _unmount(mount_point: str) -> None:
    if subprocess.run(["umount", mount_point], check=False, capture_output=True).returncode:
        subprocess.run(["umount", "--lazy", mount_point], check=True)


class PhaseResult(msgspec.Struct, frozen=True):
    """Times of one phase of a load, and the results of fio."""

    begun_s: float
    ended_s: float
    transferred_bytes: int | None = None
    mean_latency_s: float | None = None


class Target(NamedTuple):
    """What phases of a load use: a disk, and what is on it."""

    disk: BlockDevice
    file_system: Path | None = None
    database: Database | None = None


@contextmanager
def target_on(disk: BlockDevice, lab_disk: LabDisk) -> Iterator[Target]:
    """Create the file system and the database that a disk has, while it is unlimited."""
    with ExitStack() as undo:
        directory = database = None
        if lab_disk.file_system is not None:
            directory = undo.enter_context(mounted(disk.device, lab_disk.file_system))
            database = undo.enter_context(database_on(lab_disk, directory))
        yield Target(disk, directory, database)


def run_phase(target: Target, phase: Phase) -> PhaseResult:
    """Run one phase of a load to its end."""
    begun_s = time.monotonic()
    directory = target.file_system
    if phase.fio is not None:
        return _run_fio(target.disk, phase.fio, phase.seconds, begun_s)
    if phase.shell is not None:
        run_for(["sh", "-c", phase.shell], phase.seconds, directory or "/")
    elif phase.sqlite is not None and directory is not None:
        commit(phase.sqlite, directory / "database", phase.seconds)
    elif phase.is_of_database and target.database is not None:
        target.database.run(phase)
    else:
        time.sleep(phase.seconds)
    return PhaseResult(begun_s, time.monotonic())


def _run_fio(disk: BlockDevice, options: str, seconds: float, begun_s: float) -> PhaseResult:
    command = [
        "fio",
        f"--filename=/dev/{disk.device}",
        "--direct=1",
        "--thread",
        "--time_based",
        f"--runtime={seconds * 1000:.0f}ms",
        "--randrepeat=1",
        "--output-format=json",
        "--name=lab",
        *options.split(),
    ]
    finished = subprocess.run(
        _in_group(disk.group, command),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ended_s = time.monotonic()
    if finished.returncode:
        raise OSError(f"{' '.join(command)}: exit status {finished.returncode}: {finished.stdout}")
    jobs = json.loads(finished.stdout[finished.stdout.index("{") :])["jobs"]
    results = [job[direction] for job in jobs for direction in ("read", "write")]
    ios = sum(result["total_ios"] for result in results)
    total_s = sum(result["clat_ns"]["mean"] * result["total_ios"] for result in results) / 1e9
    transferred_bytes = sum(result["io_bytes"] for result in results)
    return PhaseResult(begun_s, ended_s, transferred_bytes, total_s / max(ios, 1))


def _in_group(group: Path | None, command: list[str]) -> list[str]:
    """Return the command that runs another in a control group."""
    if group is None:
        return command
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs"), *command]
