"""Small file systems on loop devices."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.loop_device import attached


@contextmanager
def mounted_ext4(directory: Path, size_bytes: int) -> Iterator[tuple[str, Path]]:
    """Mount a new file system, and yield its device and mount point."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("NOT TESTED: a file system of a known size needs root and mkfs.ext4")
    image, mount_point = directory / "image", directory / "mounted"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    mount_point.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True)
    with attached(image) as device:
        subprocess.run(["mount", f"/dev/{device}", str(mount_point)], check=True)
        try:
            yield device, mount_point
        finally:
            subprocess.run(["umount", str(mount_point)], check=True)
