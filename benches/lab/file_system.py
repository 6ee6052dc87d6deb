"""File systems on disks of the lab."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

_MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-K"),
}


@contextmanager
def mounted(device: str, kind: Literal["ext4", "xfs"]) -> Iterator[Path]:
    """Create a file system on a device, and yield its mount point until the end of the block."""
    path = f"/dev/{device}"
    subprocess.run([*_MAKE[kind], path], check=True, stdin=subprocess.DEVNULL)
    with ExitStack() as undo:
        mount_point = undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-"))
        subprocess.run(["mount", path, mount_point], check=True)
        undo.callback(_unmount, mount_point)
        yield Path(mount_point)


def _unmount(mount_point: str) -> None:
    if subprocess.run(["umount", mount_point], check=False, capture_output=True).returncode:
        subprocess.run(["umount", "--lazy", mount_point], check=True)
