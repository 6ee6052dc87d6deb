"""Which file system something lies on, and whether that is one of a disk."""

from pathlib import Path

from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.procfs.mountinfo_file import read_mounts


def file_system_of(directory: Path, disk: Disk) -> str:
    """Give the type of the file system on `disk` that a directory lies on, such as ext4.

    Raises Refusal if it is no directory, or lies on something else.
    """
    try:
        resolved = directory.resolve(strict=True)
    except OSError as error:
        raise DiskslaError(f"{directory}: {error.strerror}") from error
    if not resolved.is_dir():
        raise DiskslaError(f"{directory} is no directory")
    types = {mount.mount_point: mount.file_system for mount in read_mounts()}
    mount_point = next(
        (str(place) for place in (resolved, *resolved.parents) if str(place) in types), "/"
    )
    if mount_point not in disk.mount_points:
        there = ", ".join(disk.mount_points) or "nothing of it is mounted"
        raise DiskslaError(
            f"{directory} does not lie on {disk.name}, but on what is mounted at {mount_point};"
            f" expected a directory below: {there}"
        )
    return types[mount_point]
