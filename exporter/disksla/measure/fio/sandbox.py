"""Start a program under process limits, and kill it when the thread that started it ends.

This module runs as a process of its own, which applies the limits and then becomes the program.
They must be applied between fork and exec, where a process with threads cannot run Python
(`preexec_fn` may deadlock), and before the program has threads, because nice and I/O priority are
properties of a thread.
"""

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

import msgspec
import psutil

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOWEST_PRIORITY = 7
EXIT_NOT_RUN = 127  # as in shells
NICE = 5
"""Not the lowest priority: the wait for a CPU would be measured as latency of the disk."""

_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])
"""Directory of this package, and of its dependencies in a package of a distribution."""
_ISOLATION = "-IS" if sys.flags.isolated and sys.flags.no_site else "-P"
"""Ignore environment variables and site packages if this process does, and always the working
directory."""
_BOOTSTRAP = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1));"
    " runpy.run_path(sys.argv.pop(1))['main'](sys.argv[1:])"
)
"""Runs this file by itself: to import its package takes half a second, which delays each probe."""


class ProcessLimits(msgspec.Struct, frozen=True):
    """Limits of one process."""

    parent: int
    """PID of the process that starts it."""
    file_bytes: int | None
    """Maximum length of a file that it writes; None for no limit."""
    memory_bytes: int
    """Maximum size of its address space."""
    gentle: bool
    """Whether its priority at the CPU and at the disk is lowered."""


def sandbox_command(limits: ProcessLimits, command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that runs another command under limits."""
    encoded = msgspec.json.encode(limits).decode()
    bootstrap = (_BOOTSTRAP, _PACKAGE_ROOT, __file__)
    return (sys.executable, _ISOLATION, "-c", *bootstrap, encoded, *command)


def apply_limits(limits: ProcessLimits) -> None:
    """Apply limits to this process. Raise SystemExit if its parent has already ended."""
    # The kernel sends the signal when the parent *thread* ends: the one that waits for the result.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != limits.parent:
        raise SystemExit("the parent process has ended")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    if limits.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
    if limits.gentle:
        process = psutil.Process()
        process.nice(max(process.nice(), NICE))
        # Not the idle class: the I/O scheduler could delay it without limit, and the delay would
        # be measured as latency.
        process.ionice(psutil.IOPRIO_CLASS_BE, LOWEST_PRIORITY)
    # Python ignores both signals. SIGPIPE gets its default; SIGXFSZ stays ignored, since the write
    # then fails with an error that fio reports.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def main(arguments: list[str]) -> None:
    """Apply the limits in the first argument, and become the program in the others."""
    apply_limits(msgspec.json.decode(arguments[0], type=ProcessLimits))
    program = arguments[1]
    try:
        os.execv(program, arguments[1:])  # noqa: S606 -- no shell
    except OSError as error:
        os.write(2, f"cannot run {program}: {error.strerror}\n".encode())
        os._exit(EXIT_NOT_RUN)  # no clean-up of Python, which must not write any file here
