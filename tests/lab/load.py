"""Real loads: fio on the device, dd on a file system."""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from lab.disk import Made
from lab.scenario import Phase


class Seen(msgspec.Struct, frozen=True):
    """What one phase of a load saw of the disk, by fio's own account."""

    begun_s: float
    ended_s: float
    transferred_bytes: int | None = None
    mean_latency_s: float | None = None


@contextmanager
def prepared(disk: Made, phases: tuple[Phase, ...]) -> Iterator[Path | None]:
    """Make a file system, if one is needed, while the disk is still free; give where it is."""
    if not any(phase.dsync for phase in phases):
        yield None
        return
    device = f"/dev/{disk.device}"
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    command = ["mkfs.ext4", "-q", "-E", options, device]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    with ExitStack() as undo:
        room = undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-"))
        subprocess.run(["mount", device, room], check=True)
        undo.callback(_unmount, room)
        yield Path(room)


def _unmount(room: str) -> None:
    if subprocess.run(["umount", room], check=False, capture_output=True).returncode:
        subprocess.run(["umount", "--lazy", room], check=True)


def run_phase(disk: Made, phase: Phase, file_system: Path | None) -> Seen:
    """Do one thing to the disk, and wait for its end."""
    begun_s = time.monotonic()
    if phase.fio is not None:
        return _run_fio(disk, phase, begun_s)
    if phase.dsync is not None and file_system is not None:
        _run_dd(phase, file_system)
    else:
        time.sleep(phase.seconds)
    return Seen(begun_s, time.monotonic())


def _run_fio(disk: Made, phase: Phase, begun_s: float) -> Seen:
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
    done = subprocess.run(
        _within(disk.group, command),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    ended_s = time.monotonic()
    if done.returncode:
        raise OSError(f"{' '.join(command)}: exit status {done.returncode}: {done.stdout}")
    [job] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    ways = [job["read"], job["write"]]
    ios = sum(way["total_ios"] for way in ways)
    mean_s = sum(way["clat_ns"]["mean"] * way["total_ios"] for way in ways) / 1e9 / max(ios, 1)
    return Seen(begun_s, ended_s, sum(way["io_bytes"] for way in ways), mean_s)


def _within(group: Path | None, command: list[str]) -> list[str]:
    """Let a command begin its life in a control group."""
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
