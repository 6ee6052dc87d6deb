"""Loads of real disks: fio on the device, dd on a file system."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from lab.disk import BlockDevice
from lab.scenario import Phase


class PhaseResult(msgspec.Struct, frozen=True):
    """Times of one phase of a load, and the results of fio."""

    begun_s: float
    ended_s: float
    transferred_bytes: int | None = None
    mean_latency_s: float | None = None


@contextmanager
def file_system_for(disk: BlockDevice, phases: tuple[Phase, ...]) -> Iterator[Path | None]:
    """Create a file system if a phase needs one, while the disk is unlimited; yield its path."""
    if not any(phase.dsync for phase in phases):
        yield None
        return
    device = f"/dev/{disk.device}"
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    command = ["mkfs.ext4", "-q", "-E", options, device]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    with ExitStack() as undo:
        mount_point = undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-"))
        subprocess.run(["mount", device, mount_point], check=True)
        undo.callback(_unmount, mount_point)
        yield Path(mount_point)


def _unmount(mount_point: str) -> None:
    if subprocess.run(["umount", mount_point], check=False, capture_output=True).returncode:
        subprocess.run(["umount", "--lazy", mount_point], check=True)


def run_phase(disk: BlockDevice, phase: Phase, file_system: Path | None) -> PhaseResult:
    """Run one phase of a load to its end."""
    begun_s = time.monotonic()
    if phase.fio is not None:
        return _run_fio(disk, phase, begun_s)
    if phase.dsync is not None and file_system is not None:
        _run_dd(phase, file_system)
    else:
        time.sleep(phase.seconds)
    return PhaseResult(begun_s, time.monotonic())


def _run_fio(disk: BlockDevice, phase: Phase, begun_s: float) -> PhaseResult:
    command = [
        "fio",
        "--name=lab",
        f"--filename=/dev/{disk.device}",
        "--direct=1",
        "--thread",
        "--time_based",
        f"--runtime={phase.seconds * 1000:.0f}ms",
        "--randrepeat=1",
        "--output-format=json",
        *(phase.fio or "").split(),
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
    [job] = json.loads(finished.stdout[finished.stdout.index("{") :])["jobs"]
    results = [job["read"], job["write"]]
    ios = sum(result["total_ios"] for result in results)
    total_s = sum(result["clat_ns"]["mean"] * result["total_ios"] for result in results) / 1e9
    transferred_bytes = sum(result["io_bytes"] for result in results)
    return PhaseResult(begun_s, ended_s, transferred_bytes, total_s / max(ios, 1))


def _in_group(group: Path | None, command: list[str]) -> list[str]:
    """Return the command that runs another in a control group."""
    if group is None:
        return command
    return ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs"), *command]


def _run_dd(phase: Phase, file_system: Path) -> None:
    command = ["dd", "if=/dev/zero", f"of={file_system / 'file'}", "oflag=dsync"]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*command, *(phase.dsync or "").split()],
            check=True,
            stderr=subprocess.DEVNULL,
            timeout=phase.seconds,
        )
