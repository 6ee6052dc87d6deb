"""Run a command where lxcfs shows some files, as in a container: `FILE... -- COMMAND...`.

Each FILE is covered by a FUSE mount of the type fuse.lxcfs that shows what was in it, in a mount
namespace of the command's own. What answers is a process, a child of the command: it can be
stopped, which is how a FUSE file system hangs, and it ends with the command.
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


def shown_by_lxcfs(*files: Path) -> tuple[str, ...]:
    """Give what lets a command see files through lxcfs, when put before it."""
    path = os.pathsep.join(sys.path)
    return (
        *("env", f"PYTHONPATH={path}", "unshare", "--mount", "--propagation", "private"),
        *(sys.executable, "-m", "faults.lxcfs", *map(str, files), "--"),
    )


def serve(descriptor: int, content: bytes) -> None:
    """Answer for a file until it is unmounted."""
    with mmap.mmap(-1, len(content)) as memory:
        memory[:] = content
        channel = Channel(descriptor, memory)
        while True:
            select.select([descriptor], [], [])
            asked = channel.receive()
            if asked is None:
                continue
            if asked.request is not None:
                channel.answer(asked.request)
            else:
                channel.answer_other(asked)


def main() -> None:
    """Cover the files, and become the command."""
    end = sys.argv.index("--")
    served = [(Path(word).read_bytes(), mount(Path(word), "lxcfs")) for word in sys.argv[1:end]]
    for content, descriptor in served:
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            try:
                serve(descriptor, content)
            except Gone:
                os._exit(0)
    for _, descriptor in served:
        os.close(descriptor)
    command = sys.argv[end + 1 :]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
