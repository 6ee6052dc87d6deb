"""Run one probe: alone on this machine, on the device or on a scratch file."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.state_file import measurement_lock
from disksla.kernel.disks import Disk
from disksla.kernel.procfs import Mount, parse_mountinfo
from disksla.measure.fio import FioError, FioJob, ScratchFileError, check_mount, mounts_for_files
from disksla.measure.fio.runner import Fio
from disksla.measure.fio.scratch_file import remove_leftovers, scratch_file
from disksla.measure.probes.probe_plan import (
    ProbePlan,
    failed_result,
    measured_result,
    skipped_result,
)
from disksla.state.pipeline import ProbeFailure, ProbeResult, Skip


class ProbeContext(msgspec.Struct, frozen=True):
    """What a probe of a disk needs of its machine."""

    disk: Disk
    disks: tuple[Disk, ...]
    """All block devices, to find the partitions of the disk."""
    state_directory: Path
    roots: Roots = Roots()


def run_probe(
    fio: Fio,
    plan: ProbePlan,
    context: ProbeContext,
    stop: threading.Event,
    on_start: Callable[[FioJob], object] = lambda _: None,
) -> ProbeResult:
    """Run one probe, or skip it if another measurement is running on this machine.

    When `stop` is set, the run ends at once with the failure `stopped`. `on_start` is called with
    the job. Raise DiskslaError if the lock of measurements cannot be taken.
    """
    with measurement_lock(context.state_directory) as is_alone:
        if not is_alone:
            skip = Skip("measurement_running", "another measurement is running on this machine")
            return skipped_result(plan, skip, time.time())
        started_s = time.monotonic()
        try:
            with _target(plan, context, stop) as target:
                job = plan.job(str(target))
                on_start(job)
                result = fio.run(job, limit_s=plan.limit_s, stop=stop, gentle=True)
        except DiskslaError as error:
            duration_s = time.monotonic() - started_s
            reason: ProbeFailure = getattr(error, "reason", "error")
            return failed_result(plan, reason, str(error), time.time(), duration_s)
        return measured_result(plan, result, time.time(), time.monotonic() - started_s)


def remove_scratch_leftovers(context: ProbeContext) -> None:
    """Remove the scratch files that a killed daemon left on a disk."""
    with contextlib.suppress(DiskslaError):  # where no file can be created, none was left
        remove_leftovers(file_directory(context))


def is_suspended(roots: Roots, device: str) -> bool:
    """Return whether the kernel has suspended the device below a disk to save power.

    A drive that spun down by its own timer (hdparm -S) cannot be distinguished from a spinning one
    without sending it a command, for which the daemon has no privilege.
    """
    try:
        status = (roots.block_device(device) / "device" / "power" / "runtime_status").read_text(
            encoding="ascii"
        )
    except (OSError, UnicodeDecodeError):
        return False
    return status.strip() in {"suspended", "suspending"}


def file_directory(context: ProbeContext) -> Path:
    """Return where a scratch file is on this disk, and on no other.

    This is the state directory if it is on the disk, and otherwise the root of a file system.
    Raise ScratchFileError if there is no such directory.
    """
    table = context.roots.mountinfo.read_bytes().decode(errors="replace")
    mounts = parse_mountinfo(table)
    suitable = mounts_for_files(context.disk, context.disks, mounts)
    if not suitable:
        raise _no_mount_error(
            context.disk,
            [mount for mount in mounts if mount.mount_point in context.disk.mount_points],
        )
    with contextlib.suppress(OSError):
        number = context.state_directory.stat().st_dev
        numbers = {(mount.major, mount.minor) for mount in suitable}
        if (os.major(number), os.minor(number)) in numbers:
            return context.state_directory
    return Path(suitable[0].mount_point)


def _no_mount_error(disk: Disk, mounts: list[Mount]) -> ScratchFileError:
    try:
        for mount in mounts:
            check_mount(mount)
    except ScratchFileError as error:
        return error
    return ScratchFileError(
        f"no mounted file system is on {disk.name} alone, except boot partitions"
    )


@contextlib.contextmanager
def _target(plan: ProbePlan, context: ProbeContext, stop: threading.Event) -> Iterator[Path]:
    if not plan.entry.uses_file:
        yield Path("/dev") / context.disk.name
        return
    written_bytes = 0

    def pace(at: int) -> None:
        nonlocal written_bytes
        pause_s = (at - written_bytes) / plan.fill_bytes_per_second
        written_bytes = at
        if stop.wait(pause_s):
            raise FioError("stopped", "stopped while the scratch file was written")

    directory = file_directory(context)
    with scratch_file(directory, plan.entry.file_size_bytes, on_written=pace) as file:
        yield file
