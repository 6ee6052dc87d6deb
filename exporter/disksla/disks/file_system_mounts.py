"""Where file systems are mounted: one mount point for each, whatever containers and pods do.

kubelet mounts the file system of a volume again for each pod, container runtimes and service
managers mount directories of it (bind mounts), and runtimes mount file systems of their own for
each container. None of them says more about the disk, and their paths are new each time.
"""

import re
from collections.abc import Iterable

from disksla.procfs import Mount

_OF_CONTAINER = re.compile(
    r".*/pods/[^/]+/volume(?:s|-subpaths)/.*"
    r"|/(?:run|var/lib)/(?:.*/)?(?:containerd|containers|crio|docker)/(?!volumes/).+"
)
"""Directories of kubelet, containerd, CRI-O, Podman and Docker for one pod or container. A volume
of Docker keeps its name."""


def file_system_mounts(mounts: Iterable[Mount]) -> set[str]:
    """Return where the file systems of one device were mounted first.

    `mounts` are those of the device, in the order of the mount table. A file system without a
    mount point of its own, which only containers use, has none. Each subvolume of btrfs counts as
    a file system.
    """
    first: dict[str, str] = {}
    for mount in mounts:
        if mount.root == mount.subvolume and not _OF_CONTAINER.fullmatch(mount.mount_point):
            first.setdefault(mount.root, mount.mount_point)
    return set(first.values())
