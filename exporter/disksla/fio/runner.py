"""Runs fio: finds it, starts it on a leash, and says what it measured or why it did not."""

import contextlib
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from disksla.errors import DiskslaError
from disksla.fio.job import FioJob, fio_arguments
from disksla.fio.process import ProcessResult, ProcessStartError, run_process
from disksla.fio.result import FailureReason, FioError, FioResult, parse_fio, parse_fio_version
from disksla.fio.sandbox import ProcessLimits

_VERSION_LIMIT_S = 10.0
_MEMORY_BYTES = 2 * 1024**3
"""Of address space; fio 3.33 takes 0.6 GB of it for one worker, 30 MB of memory."""
_WORKER_MEMORY_BYTES = 128 * 1024**2
"""Stack and heap of a thread: 8 MB and 64 MB of address space, and something over."""
_MOST_WORDS = 300
_MAY_BE_UNPLUGGED = {"error", "bad_output", "timeout"}


class _Identity(NamedTuple):
    """What a target is, as far as can be said without opening it."""

    is_block: bool
    size_bytes: int
    """Of a file; 0 for a device."""
    device: tuple[str | None, ...]
    """Of the device, or the one that the file lies on: number, size and diskseq in sysfs."""


def find_fio(search_path: str | None = None) -> "Fio":
    """Find fio where programs are searched, or in other directories written like $PATH.

    Raises Refusal if there is none, or it is older than 3.1, or does not even tell its version.
    """
    found = shutil.which("fio", path=search_path)
    if found is None:
        raise DiskslaError(
            "fio is not installed; expected fio 3.1 or newer, such as Debian's package"
        )
    path = Path(found).absolute()
    ended = run_process((str(path), "--version"), _leash(), limit_s=_VERSION_LIMIT_S)
    if ended.ending != "ended" or ended.status != 0:
        raise DiskslaError(f"{path} --version: {_how(ended)}; expected fio 3.1 or newer")
    try:
        return Fio(path, parse_fio_version(ended.output))
    except DiskslaError as error:
        raise DiskslaError(f"{path} --version: {error}") from error


class Fio:
    """The program, for one thread at a time."""

    def __init__(self, path: Path, version: tuple[int, int]) -> None:
        """Take the program where it is."""
        self.path = path
        self.version = version
        self._lingering: dict[str, ProcessResult] = {}

    def run(
        self,
        job: FioJob,
        *,
        limit_s: float,
        stop: threading.Event | None = None,
        on_second: Callable[[float], None] | None = None,
        gentle: bool = False,
    ) -> FioResult:
        """Do one measurement.

        It returns or raises 5 s after `limit_s` at the latest, whatever the disk does; then, or
        when `stop` is set, or on KeyboardInterrupt, or when this process is killed, fio is ended.
        `on_second` is told the seconds since the start, about once in each. `gentle` lowers its
        priority at CPU and disk.

        Raises FioFailure, whose reason is `timeout`, `stopped`, `garbage` for output that is no
        result, or what the kernel said; Refusal for a job that cannot be told to fio.
        """
        command = (str(self.path), *fio_arguments(job))
        self._refuse_while_one_lingers(job.target)
        before = _identify(job.target)
        if before is None:
            raise FioError("unplugged", f"{job.target} is not there")
        try:
            ended = run_process(
                command,
                _leash(job, before, gentle=gentle),
                limit_s=limit_s,
                stop=stop,
                on_second=on_second,
            )
        except ProcessStartError as error:
            raise FioError("error", str(error)) from error
        if ended.reaper is not None:
            self._lingering[job.target] = ended
        try:
            return _result(ended, limit_s)
        except FioError as failure:
            if failure.reason in _MAY_BE_UNPLUGGED and _identify(job.target) != before:
                words = f"{job.target} was taken away while fio ran: {failure}"
                raise FioError("unplugged", words) from failure
            raise

    def _refuse_while_one_lingers(self, target: str) -> None:
        """Do not pile up processes that cannot die, before a disk that does not answer."""
        earlier = self._lingering.pop(target, None)
        if earlier is not None and earlier.reaper is not None and earlier.reaper.is_alive():
            self._lingering[target] = earlier
            raise FioError(
                "timeout", f"an earlier fio ({earlier.pid}) still waits in the kernel for {target}"
            )


def _leash(
    job: FioJob | None = None, target: _Identity | None = None, *, gentle: bool = False
) -> ProcessLimits:
    """Let fio write as far as the file is long, and not at all if it is only to read."""
    file_bytes: int | None = 0
    memory_bytes = _MEMORY_BYTES
    if job is not None and target is not None:
        if job.writes:
            file_bytes = None if target.is_block else target.size_bytes
        each_bytes = _WORKER_MEMORY_BYTES + job.queue_depth * job.request_bytes
        memory_bytes += job.workers * each_bytes
    return ProcessLimits(os.getpid(), file_bytes, memory_bytes, gentle)


def _identify(target: str) -> _Identity | None:
    """Say what is there, asking sysfs: to open a device that stalls may take for ever.

    None if nothing is there, or a device without a disk. Raises Refusal for what is no target.
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
    """Make a result of what was printed. Raises FioFailure."""
    reasons: dict[str, FailureReason] = {
        "late": "timeout",
        "stopped": "stopped",
        "flooded": "bad_output",
    }
    if ended.ending in reasons:
        raise FioError(reasons[ended.ending], f"fio {_how(ended, limit_s)}")
    try:
        result = parse_fio(ended.output)
    except FioError as failure:
        raise FioError(failure.reason, _with_errors(str(failure), ended)) from failure
    except DiskslaError as error:
        if ended.status:
            raise FioError("error", f"fio {_how(ended)}") from error
        raise FioError("bad_output", _with_errors(f"fio: {error}", ended)) from error
    if ended.status:
        raise FioError("error", f"fio {_how(ended)}")
    return result


def _how(ended: ProcessResult, limit_s: float = _VERSION_LIMIT_S) -> str:
    """Say how a program ended, with the end of what it had to say."""
    ending = f"status {ended.status}"
    if ended.status is not None and ended.status < 0:
        ending = f"signal {-ended.status}"
    words = {
        "late": f"was ended after {limit_s:g} s, its time limit",
        "stopped": "was stopped",
        "flooded": "printed without end, and was ended",
        "ended": f"ended with {ending}",
    }[ended.ending]
    if ended.status is None:
        words += (
            f"; process {ended.pid} cannot even be killed: it waits in the kernel for the disk"
        )
    return _with_errors(words, ended)


def _with_errors(words: str, ended: ProcessResult) -> str:
    said = " ".join(ended.errors.split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in said)
    return f"{words}: {shown[-_MOST_WORDS:]}" if shown else words
