"""NFS mounts as disks: their names, and what identifies them.

All mounts of one superblock are one disk: bind mounts, and second mounts of an export with the
same options. Its name is what was mounted, SERVER:/EXPORT, so that it stays over remounts and
restarts. Where that does not tell it from others, the mount point follows, as in
SERVER:/EXPORT@/MOUNT/POINT. That is so if another superblock has the same source, and for a source
that is this machine, as TLS proxies of providers have it (127.0.0.1:/).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from disksla.kernel.disks.disk import Disk
from disksla.kernel.nfs import NFS, Clues, is_proxied, storage_at
from disksla.kernel.procfs import Mount, file_system_mounts

_UNPRINTABLE = re.compile(r"[\s\\]|[^\x20-\U0010ffff]")


def nfs_disks(mounts: Iterable[Mount]) -> tuple[Disk, ...]:
    """Return the NFS mounts of a mount table, sorted by name, without those below others."""
    of_superblock: defaultdict[tuple[int, int], list[Mount]] = defaultdict(list)
    for mount in {mount.mount_point: mount for mount in mounts}.values():
        if mount.file_system in NFS:
            of_superblock[mount.major, mount.minor].append(mount)
    firsts = [min(found, key=_rank) for found in of_superblock.values()]
    same = Counter(mount.source for mount in firsts)
    disks = []
    for first, found in zip(firsts, of_superblock.values(), strict=True):
        is_clear = same[first.source] == 1 and not is_proxied(first)
        name = first.source if is_clear else f"{first.source}@{first.mount_point}"
        disks.append(_disk(_UNPRINTABLE.sub(_escaped, name), first, found))
    return tuple(sorted(disks, key=lambda disk: disk.name))


def _rank(mount: Mount) -> tuple[bool, int, str, str]:
    """Return the order of the mounts of a superblock: the first gives it its name."""
    return mount.is_of_container, len(mount.root), mount.source, mount.mount_point


def _disk(name: str, first: Mount, mounts: list[Mount]) -> Disk:
    points = {mount.mount_point for mount in mounts if not mount.is_of_container}
    return Disk(
        name=name,
        major=first.major,
        minor=first.minor,
        size_bytes=0,
        kind="nfs",
        volume=storage_at(first, Clues()).id,
        mount_points=tuple(sorted(points or {first.mount_point})),
        file_system_mounts=tuple(sorted(file_system_mounts(mounts))),
    )


def _escaped(match: re.Match[str]) -> str:
    """Return a character as the kernel writes it in the mount table."""
    return f"\\{ord(match[0]):03o}"
