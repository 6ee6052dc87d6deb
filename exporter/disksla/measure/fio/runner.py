"""Locate fio, run a job in the sandbox, and return its result or the reason of its failure."""

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.units import format_size
from disksla.measure.fio.job import FioJob, fio_arguments
from disksla.measure.fio.process import (
    MAX_OUTPUT_BYTES,
    ProcessResult,
    ProcessStartError,
    run_process,
)
from disksla.measure.fio.result import FioError, FioResult, parse_fio, parse_fio_version
from disksla.measure.fio.sandbox import ProcessLimits
from disksla.state.pipeline import FioFailure

_VERSION_LIMIT_S = 10.0
_MEMORY_BYTES = 2 * 1024**3
"""Address space; fio 3.33 with one worker uses 0.6 GB of it, and 30 MB of memory."""
_WORKER_MEMORY_BYTES = 128 * 1024**2
"""Stack (8 MB) and heap (64 MB) of a thread in address space, with a margin."""
_MAX_SHOWN = 300
_MAY_BE_UNPLUGGED = {"error", "bad_output", "timeout"}


class _Identity(NamedTuple):
    """Identity of a target, as far as it is known without opening it."""

    is_block: bool
    size_bytes: int
    """Size of a file; 0 for a device."""
    device: tuple[str | None, ...]
    """The device, or the one that holds the file: number, size and diskseq from sysfs."""


def find_fio(search_path: str | None = None) -> "Fio":
    """Return fio from $PATH, or from `search_path`, written like $PATH.

    Raise DiskslaError if it is not installed, fails, or is older than 3.1.
    """
    found = shutil.which("fio", path=search_path)
    if found is None:
        raise DiskslaError("fio is not installed; expected fio 3.1 or newer (Debian package: fio)")
    path = Path(found).absolute()
    ended = run_process((str(path), "--version"), _limits(), limit_s=_VERSION_LIMIT_S)
    if ended.ending != "exited" or ended.status != 0:
        raise DiskslaError(f"{path} --version {_describe(ended)}; expected fio 3.1 or newer")
    try:
        return Fio(path, parse_fio_version(ended.output))
    except DiskslaError as error:
        raise DiskslaError(f"{path} --version: {error}") from error


class Fio:
    """The program fio, for use by one thread at a time."""

    def __init__(self, path: Path, version: tuple[int, int]) -> None:
        """Set the path and version of the program."""
        self.path = path
        self.version = version
        self._blocked: dict[str, ProcessResult] = {}

    def run(
        self,
        job: FioJob,
        *,
        limit_s: float,
        stop: threading.Event | None = None,
        on_second: Callable[[float], None] | None = None,
        gentle: bool = False,
    ) -> FioResult:
        """Run one measurement.

        Return or raise at most 5 s after `limit_s`, whatever the disk does. At that time, or when
        `stop` is set, on KeyboardInterrupt, or when this process is killed, fio is killed.
        `on_second` is called about once per second with the seconds since the start. `gentle`
        lowers the priority at the CPU and at the disk.

        Raise FioError, whose reason is `timeout`, `stopped`, `bad_output` for output that is not a
        result, or what the kernel reported; DiskslaError for a job that fio cannot run.
        """
        command = (str(self.path), *fio_arguments(job))
        self._check_not_blocked(job.target)
        before = _identify(job.target)
        if before is None:
            raise FioError("unplugged", f"{job.target} does not exist")
        try:
            ended = run_process(
                command,
                _limits(job, before, gentle=gentle),
                limit_s=limit_s,
                stop=stop,
                on_second=on_second,
            )
        except ProcessStartError as error:
            raise FioError("error", str(error)) from error
        if ended.reaper is not None:
            self._blocked[job.target] = ended
        try:
            return _result(ended, limit_s)
        except FioError as failure:
            if failure.reason in _MAY_BE_UNPLUGGED and _identify(job.target) != before:
                message = f"{job.target} was removed while fio was running: {failure}"
                raise FioError("unplugged", message) from failure
            raise

    def _check_not_blocked(self, target: str) -> None:
        """Raise FioError while an earlier fio is blocked: a second one would be blocked too."""
        earlier = self._blocked.pop(target, None)
        if earlier is not None and earlier.reaper is not None and earlier.reaper.is_alive():
            self._blocked[target] = earlier
            raise FioError(
                "timeout",
                f"an earlier fio (process {earlier.pid}) is still blocked in the kernel,"
                f" waiting for {target}",
            )


def _limits(
    job: FioJob | None = None, target: _Identity | None = None, *, gentle: bool = False
) -> ProcessLimits:
    """Return limits: fio cannot make its file longer, and cannot write at all if it only reads."""
    file_bytes: int | None = 0
    memory_bytes = _MEMORY_BYTES
    if job is not None and target is not None:
        if job.writes:
            file_bytes = None if target.is_block else target.size_bytes
        worker_bytes = _WORKER_MEMORY_BYTES + job.queue_depth * job.request_bytes
        memory_bytes += job.workers * worker_bytes
    return ProcessLimits(os.getpid(), file_bytes, memory_bytes, gentle)


def _identify(target: str) -> _Identity | None:
    """Read the identity from sysfs, because opening a device that stalls may block for ever.

    Return None if the target does not exist, or is a device without a disk. Raise DiskslaError if
    it is neither a device nor a file.
    """
    try:
        found = Path(target).stat()
    except OSError:
        return None
    is_block = stat.S_ISBLK(found.st_mode)
    if not is_block and not stat.S_ISREG(found.st_mode):
        raise DiskslaError(f"{target} is neither a block device nor a file")
    number = found.st_rdev if is_block else found.st_dev
    sysfs = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    size, *sequence = map(_read, (sysfs / "size", sysfs / "diskseq", sysfs.parent / "diskseq"))
    if is_block and size == "0\n":
        return None
    return _Identity(is_block, 0 if is_block else found.st_size, (str(number), size, *sequence))


def _read(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii")
    return None


def _result(ended: ProcessResult, limit_s: float) -> FioResult:
    """Return the result that was printed. Raise FioError if there is none."""
    reasons: dict[str, FioFailure] = {
        "timed_out": "timeout",
        "stopped": "stopped",
        "output_limit": "bad_output",
    }
    if ended.ending in reasons:
        raise FioError(reasons[ended.ending], f"fio {_describe(ended, limit_s)}")
    try:
        result = parse_fio(ended.output)
    except FioError as failure:
        raise FioError(failure.reason, _with_errors(str(failure), ended)) from failure
    except DiskslaError as error:
        if ended.status:
            raise FioError("error", f"fio {_describe(ended)}") from error
        raise FioError("bad_output", _with_errors(f"fio: {error}", ended)) from error
    if ended.status:
        raise FioError("error", f"fio {_describe(ended)}")
    return result


def _describe(ended: ProcessResult, limit_s: float = _VERSION_LIMIT_S) -> str:
    """Return how a program ended, with the end of its error output."""
    exited = f"exited with status {ended.status}"
    if ended.status is not None and ended.status < 0:
        exited = f"was killed by signal {-ended.status}"
    message = {
        "timed_out": f"was stopped at its time limit of {limit_s:g} s",
        "stopped": "was stopped",
        "output_limit": f"was stopped: it printed more than {format_size(MAX_OUTPUT_BYTES)}",
        "exited": exited,
    }[ended.ending]
    if ended.status is None:
        message += (
            f"; process {ended.pid} cannot be killed: it is blocked in the kernel, waiting for the"
            " disk"
        )
    return _with_errors(message, ended)


def _with_errors(message: str, ended: ProcessResult) -> str:
    errors = " ".join(ended.errors.split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in errors)
    return f"{message}: {shown[-_MAX_SHOWN:]}" if shown else message
