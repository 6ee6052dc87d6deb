"""One probe, run: alone on this machine, on the device or on a file of our own."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import msgspec

from disksla.core.disk import Disk
from disksla.core.fileplace import PlaceRefusal, mounts_for_files, refuse_unfit
from disksla.core.fio import FailureReason, FioJob
from disksla.core.mountinfo import Mount, parse_mountinfo
from disksla.core.probeoutcome import (
    ProbeFailure,
    ProbeOutcome,
    Skip,
    failed,
    measured,
    skipped,
)
from disksla.core.probeplan import ProbePlan
from disksla.core.refusal import Refusal
from disksla.runtime.alone import alone
from disksla.runtime.blockdevices import mountinfo_path
from disksla.runtime.fio import Fio, FioFailure
from disksla.runtime.paths import Paths
from disksla.runtime.testfile import remove_leftovers, test_file

_FIO_REASONS: tuple[FailureReason, ...] = get_args(FailureReason)


class Surroundings(msgspec.Struct, frozen=True):
    """What has to be known of a machine to probe one of its disks."""

    disk: Disk
    disks: tuple[Disk, ...]
    """All block devices, for what stands on the disk."""
    state_directory: Path
    paths: Paths = Paths()


def run_probe(
    fio: Fio,
    plan: ProbePlan,
    around: Surroundings,
    stop: threading.Event,
    begun: Callable[[FioJob], object] = lambda _: None,
) -> ProbeOutcome:
    """Run one probe, unless another measurement runs on this machine.

    When `stop` is set, it ends at once, and has failed as `stopped`. `begun` is told the job.
    Raises Refusal if it cannot be told whether another measurement runs.
    """
    with alone(around.state_directory) as is_alone:
        if not is_alone:
            another = Skip("another", "another measurement runs on this machine")
            return skipped(plan, another, time.time())
        begun_s = time.monotonic()
        try:
            with _target(plan, around, stop) as target:
                job = plan.job(str(target))
                begun(job)
                result = fio.run(job, limit_s=plan.limit_s, stop=stop, gentle=True)
        except Refusal as refusal:
            duration_s = time.monotonic() - begun_s
            return failed(plan, _reason(refusal), str(refusal), time.time(), duration_s)
        return measured(plan, result, time.time(), time.monotonic() - begun_s)


def tidy_up(around: Surroundings) -> None:
    """Remove what a daemon that was killed may have left on a disk."""
    with contextlib.suppress(Refusal):  # where no file can be made, none was left
        remove_leftovers(file_directory(around))


def is_asleep(paths: Paths, device: str) -> bool:
    """Tell whether the kernel has suspended the device below a disk to save power.

    A drive that spun down by a timer of its own (hdparm -S) cannot be told from one that turns
    without asking it, which needs more rights than we want.
    """
    block = paths.sysfs / "class" / "block" / device.replace("/", "!")
    try:
        status = (block / "device" / "power" / "runtime_status").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return False
    return status.strip() in {"suspended", "suspending"}


def file_directory(around: Surroundings) -> Path:
    """Give where a file of ours would lie on a disk, and on no other.

    That is the state directory, if it does, and the root of a file system on the disk otherwise.
    Raises PlaceRefusal if there is no such place.
    """
    table = mountinfo_path(around.paths.procfs).read_bytes().decode(errors="replace")
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


def _unfit(disk: Disk, mounts: list[Mount]) -> PlaceRefusal:
    try:
        for mount in mounts:
            refuse_unfit(mount)
    except PlaceRefusal as refusal:
        return refusal
    return PlaceRefusal(
        "not_a_disk", f"no file system lies on {disk.name} alone, other than to start the machine"
    )


@contextlib.contextmanager
def _target(plan: ProbePlan, around: Surroundings, stop: threading.Event) -> Iterator[Path]:
    if not plan.entry.uses_file:
        yield Path("/dev") / around.disk.name
        return
    written_bytes = 0

    def pace(at: int) -> None:
        nonlocal written_bytes
        pause_s = (at - written_bytes) / plan.fill_bytes_per_second
        written_bytes = at
        if stop.wait(pause_s):
            raise FioFailure("stopped", "stopped while the file was written")

    with test_file(file_directory(around), plan.entry.file_size_bytes, on_written=pace) as file:
        yield file


def _reason(refusal: Refusal) -> ProbeFailure:
    """Sort a failure of fio, or of making the file."""
    reason = getattr(refusal, "reason", "error")
    return reason if reason in _FIO_REASONS else "place"
