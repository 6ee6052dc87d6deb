"""Return the type of the file system that a directory is on, if it is one of the given disk."""

from pathlib import Path

from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.procfs.mountinfo_file import read_mounts


def file_system_of(directory: Path, disk: Disk) -> str:
    """Return the type of the file system on `disk` that holds the directory, such as ext4.

    Raise DiskslaError if it is not a directory, or is on another disk.
    """
    try:
        resolved = directory.resolve(strict=True)
    except OSError as error:
        raise DiskslaError(f"{directory}: {error.strerror}") from error
    if not resolved.is_dir():
        raise DiskslaError(f"{directory} is not a directory")
    types = {mount.mount_point: mount.file_system for mount in read_mounts()}
    mount_point = next(
        (str(path) for path in (resolved, *resolved.parents) if str(path) in types), "/"
    )
    if mount_point not in disk.mount_points:
        hint = f"no file system of {disk.name} is mounted"
        if disk.mount_points:
            hint = f"expected a directory below {', '.join(disk.mount_points)}"
        raise DiskslaError(
            f"{directory} is not on {disk.name}: its file system is mounted at {mount_point};"
            f" {hint}"
        )
    return types[mount_point]
