"""Which file system a directory lies on, and whether that is one of a disk."""

from pathlib import Path

from disksla.core.disk import Disk
from disksla.core.mountinfo import parse_mountinfo
from disksla.core.refusal import Refusal

_MOUNTINFO = Path("/proc/self/mountinfo")
"""Our own: the directory is named as we see it."""


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
    text = _MOUNTINFO.read_bytes().decode(errors="surrogateescape")
    types = {mount.mount_point: mount.file_system for mount in parse_mountinfo(text)}
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
