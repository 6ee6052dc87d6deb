"""Run a program with a time limit and an output limit, and leave no process behind."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

from disksla.base.errors import DiskslaError
from disksla.measure.fio.sandbox import ProcessLimits, sandbox_command

TERM_TIMEOUT_S = 2.0
"""Time between SIGTERM and SIGKILL."""
KILL_TIMEOUT_S = 3.0
"""Time between SIGKILL and giving up: a process that is blocked in the kernel by a disk that does
not respond cannot be killed."""
MAX_OUTPUT_BYTES = 16 * 1024**2
"""fio's JSON is smaller than 1 MB."""
MAX_ERRORS_BYTES = 64 * 1024

_POLL_S = 0.05
_CHUNK_BYTES = 64 * 1024
_MAX_PIPE_BYTES = 1024**2  # the default of /proc/sys/fs/pipe-max-size
# No user can create a file in /proc, so fio leaves no file there and cannot be made to dump its
# status by a file `fio-dump-status`.
_WORKING_DIRECTORY = "/proc"

Ending = Literal["exited", "timed_out", "stopped", "output_limit"]


class ProcessResult(NamedTuple):
    """How a program ended, and what it printed."""

    ending: Ending
    status: int | None
    """Exit status, negative for a signal; None if the process still exists after SIGKILL."""
    output: str
    errors: str
    pid: int
    reaper: threading.Thread | None
    """Waits for a process that SIGKILL did not end, and ends when it does."""


class ProcessStartError(DiskslaError):
    """The process could not be created: no memory, no permission, or too long arguments."""


def run_process(
    command: tuple[str, ...],
    limits: ProcessLimits,
    *,
    limit_s: float,
    stop: threading.Event | None = None,
    on_second: Callable[[float], None] | None = None,
) -> ProcessResult:
    """Run a program until it exits, `limit_s` is over, `stop` is set, or it prints too much.

    The program runs in a session of its own. To end it, SIGTERM is sent to its process group, and
    SIGKILL TERM_TIMEOUT_S later; if it still exists KILL_TIMEOUT_S after that, a thread is left to
    reap it. The same happens on any exception, such as KeyboardInterrupt. `on_second` is called
    with the seconds since the start. Raise ProcessStartError if the process cannot be created.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 -- an absolute path, and no shell
            sandbox_command(limits, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_WORKING_DIRECTORY,
            env={**os.environ, "LC_ALL": "C", "TMPDIR": _WORKING_DIRECTORY},
            start_new_session=True,
        )
    except OSError as error:
        hint = "; run this as root" if isinstance(error, PermissionError) else ""
        raise ProcessStartError(f"cannot start {command[0]}: {error.strerror}{hint}") from error
    started_s = time.monotonic()
    with _OutputReader(process) as reader:
        ending: Ending = "exited"
        reported_s = 0
        while not _is_over(process):
            reader.read(_POLL_S)
            elapsed_s = time.monotonic() - started_s
            if stop is not None and stop.is_set():
                ending = "stopped"
            elif elapsed_s >= limit_s:
                ending = "timed_out"
            elif reader.is_full:
                ending = "output_limit"
            if ending != "exited":
                break
            if on_second is not None and int(elapsed_s) > reported_s:
                reported_s = int(elapsed_s)
                on_second(elapsed_s)
        if ending != "exited":
            _signal_group(process, signal.SIGTERM)
            _wait(process, TERM_TIMEOUT_S, reader)
        reaper = _kill(process)
        reader.drain()
        status = process.returncode if reaper is None else None
        return ProcessResult(ending, status, *reader.texts(), process.pid, reaper)


def _kill(process: subprocess.Popen[bytes]) -> threading.Thread | None:
    """Kill the rest of the group and reap its leader; return the reaper if it does not end."""
    _signal_group(process, signal.SIGKILL)
    if _wait(process, KILL_TIMEOUT_S):
        process.wait()
        return None
    reaper = threading.Thread(target=process.wait, name=f"reaper-{process.pid}", daemon=True)
    reaper.start()
    return reaper


def _wait(
    process: subprocess.Popen[bytes], seconds: float, reader: "_OutputReader | None" = None
) -> bool:
    """Wait up to `seconds` for the end, reading output; return whether it ended. Reap nothing."""
    deadline_s = time.monotonic() + seconds
    while not _is_over(process):
        if time.monotonic() >= deadline_s:
            return False
        if reader is None:
            time.sleep(_POLL_S / 10)
        else:
            reader.read(_POLL_S)
    return True


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the leader has ended, without reaping it: a zombie's PID is not reused."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, process.pid, options) is not None
    except ChildProcessError:  # the reaper was faster
        return True


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


class _OutputReader:
    """Reads what a program prints, and keeps no more than the limits.

    It kills the program on any exception, also on KeyboardInterrupt while it is being ended.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 -- for mypy: both are pipes
        assert process.stderr is not None  # noqa: S101
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._streams = (process.stdout, process.stderr)
        self._output, self._errors = bytearray(), bytearray()
        self._buffers = {
            process.stdout.fileno(): self._output,
            process.stderr.fileno(): self._errors,
        }
        for descriptor in self._buffers:
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            _kill(self._process)
        self._selector.close()
        for stream in self._streams:
            stream.close()

    @property
    def is_full(self) -> bool:
        """Whether the output is longer than any result."""
        return len(self._output) > MAX_OUTPUT_BYTES

    def read(self, seconds: float) -> None:
        """Read a chunk of what is available, or becomes available within `seconds`."""
        if not self._selector.get_map():
            time.sleep(seconds)
        for key, _ in self._selector.select(seconds):
            self._read_chunk(key.fd)

    def drain(self) -> None:
        """Read what is left in the pipes, but not what a grandchild may continue to print."""
        for descriptor in [key.fd for key in self._selector.get_map().values()]:
            for _ in range(_MAX_PIPE_BYTES // _CHUNK_BYTES):
                if not self._read_chunk(descriptor):
                    break

    def _read_chunk(self, descriptor: int) -> bool:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(descriptor)
        self._buffers[descriptor] += chunk
        # The result is at the start of the output, the reason for a failure at the end of the
        # errors.
        del self._output[MAX_OUTPUT_BYTES + 1 :]
        del self._errors[:-MAX_ERRORS_BYTES]
        return bool(chunk)

    def texts(self) -> tuple[str, str]:
        """Return output and errors; bytes that are not UTF-8 are replaced."""
        return self._output.decode(errors="replace"), self._errors.decode(errors="replace")
