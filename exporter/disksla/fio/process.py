"""A program that is run to its end, or ended: never waited for without bound, nor left behind."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Self

from disksla.errors import DiskslaError
from disksla.fio.sandbox import ProcessLimits, sandbox_command

GRACE_S = 2.0
"""From SIGTERM to SIGKILL."""
PATIENCE_S = 3.0
"""From SIGKILL to giving up: what waits in the kernel for a dead disk hears no signal."""
MOST_OUTPUT_BYTES = 16 * 1024**2
"""fio's JSON is below 1 MB."""
MOST_ERRORS_BYTES = 64 * 1024

_LOOK_S = 0.05
_CHUNK_BYTES = 64 * 1024
_MOST_LEFT_BYTES = 1024**2  # no pipe holds more, unless root says so
# No file can be made there, by whomever: fio leaves nothing, and finds no `fio-dump-status`.
_NOWHERE = "/proc"

Ending = Literal["ended", "late", "stopped", "flooded"]
"""By itself; at the time limit; because it was told to; because it printed too much."""


class ProcessResult(NamedTuple):
    """How a program ended, and what it said."""

    ending: Ending
    status: int | None
    """Exit status, negative for a signal; None if not even SIGKILL ended it yet."""
    output: str
    errors: str
    pid: int
    reaper: threading.Thread | None
    """Waits for what did not end; ends with it."""


class ProcessStartError(DiskslaError):
    """The machine has no room for a process, or not for one with so many words."""


def run_process(
    command: tuple[str, ...],
    leash: ProcessLimits,
    *,
    limit_s: float,
    stop: threading.Event | None = None,
    on_second: Callable[[float], None] | None = None,
) -> ProcessResult:
    """Run a program until it ends, or `limit_s` is over, or `stop` is set, or it prints too much.

    It has a session of its own. Its whole process group gets SIGTERM, and SIGKILL GRACE_S later;
    PATIENCE_S after that it is left to a thread that reaps it. The same on any exception, such as
    KeyboardInterrupt. `on_second` is told the seconds since the start. Raises NotStarted where
    no process can be made.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 -- a path of our own finding, and no shell
            sandbox_command(leash, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_NOWHERE,
            env={**os.environ, "LC_ALL": "C", "TMPDIR": _NOWHERE},
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessStartError(f"{command[0]} cannot be started: {error.strerror}") from error
    begun_s = time.monotonic()
    with _kill_on_exception(process), _OutputReader(process) as ears:
        ending: Ending = "ended"
        told_s = 0
        while not _is_over(process):
            ears.listen(_LOOK_S)
            passed_s = time.monotonic() - begun_s
            if stop is not None and stop.is_set():
                ending = "stopped"
            elif passed_s >= limit_s:
                ending = "late"
            elif ears.full:
                ending = "flooded"
            if ending != "ended":
                break
            if on_second is not None and int(passed_s) > told_s:
                told_s = int(passed_s)
                on_second(passed_s)
        if ending != "ended":
            _signal_group(process, signal.SIGTERM)
            _wait(process, GRACE_S, ears)
        reaper = _end(process)
        ears.hear_out()
        status = process.returncode if reaper is None else None
        return ProcessResult(ending, status, *ears.said(), process.pid, reaper)


@contextlib.contextmanager
def _kill_on_exception(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whatever is raised, KeyboardInterrupt in the midst of ending it too."""
    try:
        yield
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> threading.Thread | None:
    """Kill what is left of the group and reap the leader; give who will, if it does not die."""
    _signal_group(process, signal.SIGKILL)
    if _wait(process, PATIENCE_S):
        process.wait()
        return None
    reaper = threading.Thread(target=process.wait, name=f"reaper-{process.pid}", daemon=True)
    reaper.start()
    return reaper


def _wait(
    process: subprocess.Popen[bytes], seconds: float, ears: "_OutputReader | None" = None
) -> bool:
    """Wait for the end so long, listening; tell whether it came. Reaps nothing."""
    deadline_s = time.monotonic() + seconds
    while not _is_over(process):
        if time.monotonic() >= deadline_s:
            return False
        if ears is None:
            time.sleep(_LOOK_S / 10)
        else:
            ears.listen(_LOOK_S)
    return True


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Look without reaping: as long as the leader is a zombie, nobody else gets its number."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    try:
        return os.waitid(os.P_PID, process.pid, options) is not None
    except ChildProcessError:  # the reaper was faster
        return True


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


class _OutputReader:
    """Takes what a program prints, as it comes, and keeps no more than is wanted."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101 -- for mypy: both are pipes
        assert process.stderr is not None  # noqa: S101
        self._selector = selectors.DefaultSelector()
        self._streams = (process.stdout, process.stderr)
        self._output, self._errors = bytearray(), bytearray()
        self._heard = {
            process.stdout.fileno(): self._output,
            process.stderr.fileno(): self._errors,
        }
        for descriptor in self._heard:
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for stream in self._streams:
            stream.close()

    @property
    def full(self) -> bool:
        """Whether more was printed than any result has."""
        return len(self._output) > MOST_OUTPUT_BYTES

    def listen(self, seconds: float) -> None:
        """Take a piece of what is there, or comes within so long."""
        if not self._selector.get_map():
            time.sleep(seconds)
        for key, _ in self._selector.select(seconds):
            self._take(key.fd)

    def hear_out(self) -> None:
        """Take what the program left in its pipes; not what others may go on to print."""
        for descriptor in [key.fd for key in self._selector.get_map().values()]:
            for _ in range(_MOST_LEFT_BYTES // _CHUNK_BYTES):
                if not self._take(descriptor):
                    break

    def _take(self, descriptor: int) -> bool:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(descriptor)
        self._heard[descriptor] += chunk
        # The result stands at the beginning, the reason for an end at the end.
        del self._output[MOST_OUTPUT_BYTES + 1 :]
        del self._errors[:-MOST_ERRORS_BYTES]
        return bool(chunk)

    def said(self) -> tuple[str, str]:
        """Give output and errors; what is not UTF-8 is marked."""
        return self._output.decode(errors="replace"), self._errors.decode(errors="replace")
