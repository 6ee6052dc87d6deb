"""Which file system something lies on, and whether that is one of a disk."""

import re
from pathlib import Path

from disksla.core.disk import Disk
from disksla.core.mountinfo import Mount, parse_mountinfo
from disksla.core.refusal import Refusal

_PROCESS = Path("/proc/self")
"""Our own: things are named as we see them."""
_MOUNT_ID = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)


def mount_of(descriptor: int) -> Mount | None:
    """Give the mount that something open is on; by path it could be another one.

    None if it is out of our sight. Raises OSError without a procfs of our own.
    """
    told = (_PROCESS / "fdinfo" / str(descriptor)).read_text(encoding="ascii")
    numbers = {int(number) for number in _MOUNT_ID.findall(told)}
    return next((mount for mount in _mounts() if mount.number in numbers), None)


def file_system_of(directory: Path, disk: Disk) -> str:
    """Give the type of the file system on `disk` that a directory lies on, such as ext4.

    Raises Refusal if it is no directory, or lies on something else.
    """
    try:
        resolved = directory.resolve(strict=True)
    except OSError as error:
        raise Refusal(f"{directory}: {error.strerror}") from error
    if not resolved.is_dir():
        raise Refusal(f"{directory} is no directory")
    types = {mount.mount_point: mount.file_system for mount in _mounts()}
    mount_point = next(
        (str(place) for place in (resolved, *resolved.parents) if str(place) in types), "/"
    )
    if mount_point not in disk.mount_points:
        there = ", ".join(disk.mount_points) or "nothing of it is mounted"
        raise Refusal(
            f"{directory} does not lie on {disk.name}, but on what is mounted at {mount_point};"
            f" expected a directory below: {there}"
        )
    return types[mount_point]


def _mounts() -> tuple[Mount, ...]:
    table = (_PROCESS / "mountinfo").read_bytes()
    return parse_mountinfo(table.decode(errors="surrogateescape"))
