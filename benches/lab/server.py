"""Servers of databases whose data is on a file system of the lab, and programs that load them."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from lab.scenario import Phase
from support.waiting import eventually

USER = "daemon"
"""PostgreSQL and MariaDB refuse to run as root."""
_TIMEOUT_S = 60.0
_AGAIN_S = 0.01


class Database(Protocol):
    """A database that is ready to be loaded."""

    def run(self, phase: Phase) -> None:
        """Load it for the time of a phase."""


def as_user(*command: str) -> list[str]:
    """Return the command that runs another as a user without privileges."""
    user = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return ["setpriv", *user, "env", "--default-signal=INT,QUIT,TERM", *command]


def own_directory(path: Path) -> Path:
    """Create a directory of the user of the servers."""
    path.mkdir(mode=0o700)
    shutil.chown(path, USER)
    return path


@contextmanager
def running(
    command: Sequence[str],
    file_system: Path,
    is_ready: Callable[[], bool],
    stop: signal.Signals = signal.SIGKILL,
) -> Iterator[None]:
    """Run a server until the end of the block; its disk may be slow, so it is not shut down.

    Raise OSError if it is not ready in time.
    """
    log = file_system / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=file_system,
            start_new_session=True,
        )
    try:
        eventually(lambda: process.poll() is not None or is_ready(), _TIMEOUT_S, 0.05)
        if process.poll() is not None or not is_ready():
            raise OSError(f"{command[-1]} does not start: {log.read_text(errors='replace')}")
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, stop)
        process.wait(_TIMEOUT_S)


def checked(*command: str, cwd: Path | str = "/") -> None:
    """Run a command to its end. Raise OSError, with its output, if it fails."""
    finished = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=cwd,
    )
    if finished.returncode:
        status = f"exit status {finished.returncode}"
        raise OSError(f"{' '.join(command)}: {status}: {finished.stdout}")


def succeeds(*command: str) -> bool:
    """Return whether a command succeeds."""
    return subprocess.run(command, check=False, capture_output=True, cwd="/").returncode == 0


def run_for(command: Sequence[str], seconds: float, cwd: Path | str = "/") -> None:
    """Run a command again and again for a time, and end it then.

    Raise OSError, with its output, if it fails before.
    """
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=max(0.0, ends_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return
        if process.returncode:
            raise OSError(f"{' '.join(command)}: exit status {process.returncode}: {output}")
        time.sleep(_AGAIN_S)


def evict(directory: Path) -> None:
    """Remove clean pages of all files from the page cache, so that reads reach the disk."""
    os.sync()
    for path in directory.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
