"""Starts a program that dies with the thread that asked for it, held to limits from its beginning.

Run in a process of its own, which then becomes the program. It has to happen between fork and
exec, where a process with threads may not run Python (`preexec_fn` can deadlock); and before the
program has threads, because nice and I/O priority belong to each thread.
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
"""Not the lowest: the wait for a CPU would be measured as the disk's."""

_PACKAGE_ROOT = str(Path(__file__).resolve().parent.parent.parent)
"""Where this package lies, and all that it needs if a distribution's package brought it."""
_ISOLATION = "-IS" if sys.flags.isolated and sys.flags.no_site else "-P"
"""How much of its surroundings it may look at: as much as we."""
_BOOTSTRAP = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    " from disksla.fio.sandbox import main; main(sys.argv[1:])"
)


class ProcessLimits(msgspec.Struct, frozen=True):
    """How the program is held."""

    parent: int
    """Process that wants it."""
    file_bytes: int | None
    """Length that no file can be written beyond; None for any."""
    memory_bytes: int
    """Of address space."""
    gentle: bool
    """Whether all others go first, at the CPU and at the disk."""


def sandbox_command(leash: ProcessLimits, command: tuple[str, ...]) -> tuple[str, ...]:
    """Give the command that starts another one on a leash."""
    described = msgspec.json.encode(leash).decode()
    return (sys.executable, _ISOLATION, "-c", _BOOTSTRAP, _PACKAGE_ROOT, described, *command)


def apply_limits(leash: ProcessLimits) -> None:
    """Hold this process, and what it becomes."""
    # The signal comes when the *thread* ends that made this process: the one that waits for it.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != leash.parent:
        raise SystemExit("whoever wanted this is gone")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (leash.memory_bytes, leash.memory_bytes))
    if leash.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (leash.file_bytes, leash.file_bytes))
    if leash.gentle:
        process = psutil.Process()
        process.nice(max(process.nice(), NICE))
        # Not the idle class: a scheduler would let it starve, and the wait would be measured.
        process.ionice(psutil.IOPRIO_CLASS_BE, LOWEST_PRIORITY)
    # Python ignores both; beyond the limit of a file, an error says more than a signal.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def main(words: list[str]) -> None:
    """Become the program, on the leash that the first word describes."""
    apply_limits(msgspec.json.decode(words[0], type=ProcessLimits))
    try:
        os.execv(words[1], words[1:])  # noqa: S606 -- no shell is wanted
    except OSError as error:
        os.write(2, f"{words[1]} cannot be run: {error.strerror}\n".encode())
        os._exit(EXIT_NOT_RUN)  # without what Python does at its end: it may not write any file
