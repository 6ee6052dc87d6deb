"""Loop devices for benchmarks: hundreds without a file, and a few on files for load."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support.loop_device import added

FIRST_NUMBER = 2000
"""First loop number, far above the numbers that other programs use."""
FILE_BYTES = 64 * 2**20


@contextmanager
def loop_devices(count: int, busy: int) -> Iterator[tuple[list[str], list[str]]]:
    """Create `count` loop devices, `busy` of them on files; yield all names, and those."""
    with ExitStack() as undo:
        names = undo.enter_context(added(range(FIRST_NUMBER, FIRST_NUMBER + count)))
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-bench-")))
        for name in names[:busy]:
            file = directory / name
            with file.open("wb") as content:
                os.posix_fallocate(content.fileno(), 0, FILE_BYTES)
            subprocess.run(["losetup", "--direct-io=on", f"/dev/{name}", file], check=True)
            undo.callback(subprocess.run, ["losetup", "--detach", f"/dev/{name}"], check=True)
        yield names, names[:busy]
