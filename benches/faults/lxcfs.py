"""Run a command that sees some files through FUSE, as by lxcfs: `FILE... -- COMMAND...`.

Each FILE is covered by a FUSE mount of type fuse.lxcfs with the same content, in a mount namespace
of the command. Each mount is served by a child process of the command: the tests stop it to
simulate a FUSE file system that hangs, and it ends with the command.
"""

import ctypes
import mmap
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.fuse import Channel, Gone, mount

_PR_SET_PDEATHSIG = 1

needs_fuse = pytest.mark.skipif(
    not os.access("/dev/fuse", os.R_OK | os.W_OK)
    or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0,
    reason="NOT TESTED: this needs root and /dev/fuse",
)


def through_lxcfs(*files: Path) -> tuple[str, ...]:
    """Return the prefix that makes a command see files through fuse.lxcfs."""
    path = os.pathsep.join(sys.path)
    return (
        *("env", f"PYTHONPATH={path}", "unshare", "--mount", "--propagation", "private"),
        *(sys.executable, "-m", "faults.lxcfs", *map(str, files), "--"),
    )


def serve(descriptor: int, content: bytes) -> None:
    """Serve a file until it is unmounted."""
    with mmap.mmap(-1, len(content)) as memory:
        memory[:] = content
        channel = Channel(descriptor, memory)
        while True:
            select.select([descriptor], [], [])
            message = channel.receive()
            if message is None:
                continue
            if message.request is not None:
                channel.answer(message.request)
            else:
                channel.answer_other(message)


def main() -> None:
    """Mount over the files, start their servers, and execute the command."""
    end = sys.argv.index("--")
    mounts = [(Path(file).read_bytes(), mount(Path(file), "lxcfs")) for file in sys.argv[1:end]]
    for content, descriptor in mounts:
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            try:
                serve(descriptor, content)
            except Gone:
                os._exit(0)
    for _, descriptor in mounts:
        os.close(descriptor)
    command = sys.argv[end + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
