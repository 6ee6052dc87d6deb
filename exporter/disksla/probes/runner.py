"""One probe, run: alone on this machine, on the device or on a file of our own."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import msgspec

from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.fio import (
    FailureReason,
    FioError,
    FioJob,
    ScratchFileError,
    check_mount,
    mounts_for_files,
)
from disksla.fio.runner import Fio
from disksla.fio.scratch_file import remove_leftovers, scratch_file
from disksla.pipeline import ProbeFailure, ProbeResult, Skip
from disksla.probes.plan import ProbePlan, failed_result, measured_result, skipped_result
from disksla.procfs import Mount, parse_mountinfo
from disksla.system.lock import measurement_lock
from disksla.system.roots import Roots

_FIO_REASONS: tuple[FailureReason, ...] = get_args(FailureReason)


class ProbeContext(msgspec.Struct, frozen=True):
    """What has to be known of a machine to probe one of its disks."""

    disk: Disk
    disks: tuple[Disk, ...]
    """All block devices, for what stands on the disk."""
    state_directory: Path
    roots: Roots = Roots()


def run_probe(
    fio: Fio,
    plan: ProbePlan,
    around: ProbeContext,
    stop: threading.Event,
    begun: Callable[[FioJob], object] = lambda _: None,
) -> ProbeResult:
    """Run one probe, unless another measurement runs on this machine.

    When `stop` is set, it ends at once, and has failed as `stopped`. `begun` is told the job.
    Raises Refusal if it cannot be told whether another measurement runs.
    """
    with measurement_lock(around.state_directory) as is_alone:
        if not is_alone:
            another = Skip("measurement_running", "another measurement runs on this machine")
            return skipped_result(plan, another, time.time())
        begun_s = time.monotonic()
        try:
            with _target(plan, around, stop) as target:
                job = plan.job(str(target))
                begun(job)
                result = fio.run(job, limit_s=plan.limit_s, stop=stop, gentle=True)
        except DiskslaError as error:
            duration_s = time.monotonic() - begun_s
            return failed_result(plan, _reason(error), str(error), time.time(), duration_s)
        return measured_result(plan, result, time.time(), time.monotonic() - begun_s)


def remove_scratch_leftovers(around: ProbeContext) -> None:
    """Remove what a daemon that was killed may have left on a disk."""
    with contextlib.suppress(DiskslaError):  # where no file can be made, none was left
        remove_leftovers(file_directory(around))


def is_suspended(roots: Roots, device: str) -> bool:
    """Tell whether the kernel has suspended the device below a disk to save power.

    A drive that spun down by a timer of its own (hdparm -S) cannot be told from one that turns
    without asking it, which needs more rights than we want.
    """
    try:
        status = (roots.block_device(device) / "device" / "power" / "runtime_status").read_text(
            encoding="ascii"
        )
    except (OSError, UnicodeDecodeError):
        return False
    return status.strip() in {"suspended", "suspending"}


def file_directory(around: ProbeContext) -> Path:
    """Give where a file of ours would lie on a disk, and on no other.

    That is the state directory, if it does, and the root of a file system on the disk otherwise.
    Raises PlaceRefusal if there is no such place.
    """
    table = around.roots.mountinfo.read_bytes().decode(errors="replace")
    mounts = parse_mountinfo(table)
    fit = mounts_for_files(around.disk, around.disks, mounts)
    if not fit:
        raise _unfit(
            around.disk, [each for each in mounts if each.mount_point in around.disk.mount_points]
        )
    with contextlib.suppress(OSError):
        number = around.state_directory.stat().st_dev
        if (os.major(number), os.minor(number)) in {(each.major, each.minor) for each in fit}:
            return around.state_directory
    return Path(fit[0].mount_point)


def _unfit(disk: Disk, mounts: list[Mount]) -> ScratchFileError:
    try:
        for mount in mounts:
            check_mount(mount)
    except ScratchFileError as error:
        return error
    return ScratchFileError(
        "not_a_disk", f"no file system lies on {disk.name} alone, other than to start the machine"
    )


@contextlib.contextmanager
def _target(plan: ProbePlan, around: ProbeContext, stop: threading.Event) -> Iterator[Path]:
    if not plan.entry.uses_file:
        yield Path("/dev") / around.disk.name
        return
    written_bytes = 0

    def pace(at: int) -> None:
        nonlocal written_bytes
        pause_s = (at - written_bytes) / plan.fill_bytes_per_second
        written_bytes = at
        if stop.wait(pause_s):
            raise FioError("stopped", "stopped while the file was written")

    with scratch_file(file_directory(around), plan.entry.file_size_bytes, on_written=pace) as file:
        yield file


def _reason(error: DiskslaError) -> ProbeFailure:
    """Sort a failure of fio, or of making the file."""
    reason = getattr(error, "reason", "error")
    return reason if reason in _FIO_REASONS else "no_scratch_file"
