"""Loop devices for measuring: empty ones by the hundred, and a few on files that can be loaded."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.loop_device import added

FIRST_NUMBER = 2000
"""Ours begin here, well away from those of others."""
FILE_BYTES = 64 * 2**20


@contextmanager
def loop_devices(count: int, busy: int) -> Iterator[tuple[list[str], list[str]]]:
    """Make `count` loop devices, `busy` of them on files; give the names of all and of those."""
    with ExitStack() as undo:
        names = undo.enter_context(added(range(FIRST_NUMBER, FIRST_NUMBER + count)))
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-bench-")))
        for name in names[:busy]:
            file = directory / name
            with file.open("wb") as made:
                os.posix_fallocate(made.fileno(), 0, FILE_BYTES)
            subprocess.run(["losetup", "--direct-io=on", f"/dev/{name}", file], check=True)
            undo.callback(subprocess.run, ["losetup", "--detach", f"/dev/{name}"], check=True)
        yield names, names[:busy]
