"""Names of disks as people type them: how a command finds the disk that is meant."""

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from disksla.base.errors import DiskslaError
from disksla.kernel.disks import Disk, devices_below, devices_on, mounted_device
from disksla.kernel.procfs import Mount
from disksla.promise.configuration.match_index import has_device_name, has_id
from disksla.promise.configuration.matching import why_not_by_default

_NOT_SAMPLED = dict.fromkeys(
    ("cifs", "smb3", "virtiofs", "lustre", "ceph"),
    "; of mounts of network file storages, only those of NFS are monitored: of others, the kernel"
    " does not count requests and their time as needed",
)
"""Why mounts of these types are no disks."""
_EXPECTED = "a kernel name, a link in /dev, a path, a volume, a serial number or a claim, of"


def find_disk(name: str, disks: Collection[Disk], mounts: Collection[Mount] = ()) -> Disk:
    """Return the disk that a name means.

    It is a kernel name, any link in /dev with or without that directory, the name of a logical
    volume, a path on a file system, the volume, serial number or WWN, a PersistentVolume, or
    NAMESPACE/CLAIM. Without a mount table, a path is that of a mount point. Raise DiskslaError,
    with what there is, for none or several.
    """
    for is_meant in _readings(name, disks, mounts):
        found = [disk for disk in disks if is_meant(disk)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(disk.name for disk in found)
            raise DiskslaError(f"found several disks for '{name}'; expected one of: {names}")
    known = ", ".join(disk.name for disk in in_order(disks)) or "(no disks found)"
    raise DiskslaError(f"no disk named '{name}'; expected {_EXPECTED}: {known}")


def find_array(
    name: str, disks: Collection[Disk], mounts: Collection[Mount] = ()
) -> tuple[Disk, tuple[Disk, ...]] | None:
    """Return the array on several disks that a name means, with these; None if it means none.

    It is a name of the device as in `find_disk`, or a path on its file system. Raise DiskslaError
    for a path that is on no device.
    """
    short = name.removeprefix("/dev/")
    found = [disk for disk in disks if has_device_name(short, disk)]
    if not found and name.startswith("/") and name == short:
        path = "/" + posixpath.normpath(name).lstrip("/")
        device = _device_below(path, disks, mounts) if mounts else None
        tops = [disk for disk in disks if disk.slaves and not disk.holders]
        found = [disk for disk in tops if path in disk.mount_points]
        if device is not None:
            found = [disk for disk in disks if disk.name == device]
    wholes = {disk.partition_of or disk.name for disk in found}
    for array in (disk for disk in disks if disk.slaves and disk.name in wholes):
        below = tuple(disk for disk in devices_below(array, disks) if disk.is_sold)
        return (array, below) if len(below) > 1 else None
    return None


def in_order(disks: Iterable[Disk]) -> list[Disk]:
    """Return volumes first, then local disks, partitions and stacked devices, loop devices last.

    Numbers in names count as numbers: vdb2 comes before vdb10.
    """
    return sorted(disks, key=lambda disk: (_rank(disk), _natural(disk.name)))


def _rank(disk: Disk) -> int:
    if why_not_by_default(disk) is None:
        return 1 if disk.is_local else 0
    return 3 if disk.is_sold else 2


def _natural(name: str) -> list[tuple[str, int]]:
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)([0-9]*)", name)]


def _readings(
    name: str, disks: Collection[Disk], mounts: Collection[Mount]
) -> Iterator[Callable[[Disk], bool]]:
    """Yield what a name may mean, the most exact meaning first."""
    short = name.removeprefix("/dev/")
    yield lambda disk: disk.name == short
    yield lambda disk: has_device_name(short, disk)
    yield lambda disk: disk.is_sold and has_id(name, disk)
    yield lambda disk: name == disk.persistent_volume
    yield lambda disk: disk.claim is not None and name == disk.full_claim
    if name.startswith("/") and name == short:
        path = "/" + posixpath.normpath(name).lstrip("/")
        device = _device_below(path, disks, mounts) if mounts else None
        yield (
            lambda disk: (
                disk.is_sold
                and (
                    path in disk.mount_points
                    if device is None
                    else device in {above.name for above in devices_on(disk, disks)}
                )
            )
        )


def _device_below(path: str, disks: Collection[Disk], mounts: Collection[Mount]) -> str:
    """Return the device of the file system that a path is on. Raise DiskslaError without one."""
    of_path = [mount for mount in mounts if is_below(path, mount.mount_point)]
    if not of_path:
        raise DiskslaError(f"no disk found for {path}: the mount table has no file system for it")
    mount = max(reversed(of_path), key=lambda mount: len(mount.mount_point))
    device = mounted_device(mount, disks)
    if device is None:
        raise DiskslaError(
            f"no disk found for {path}: it is on {mount.source} ({mount.file_system}), mounted at"
            f" {mount.mount_point}{_NOT_SAMPLED.get(mount.file_system, '')}"
        )
    return device


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory or below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
