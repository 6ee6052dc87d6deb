"""/proc/<pid>/mountinfo: parse the mount table.

Format: Documentation/filesystems/proc.rst, section 3.5. The kernel writes space, tab, newline,
backslash and # in names as a backslash and three octal digits, and any other character as it is.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

LXCFS = "fuse.lxcfs"
"""File system that shows a container its own values instead of those of procfs."""

_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_LEAST_FIELDS = 6
_OF_CONTAINER = re.compile(
    r".*/pods/[^/]+/volume(?:s|-subpaths)/.*"
    r"|/(?:run|var/lib)/(?:.*/)?(?:containerd|containers|crio|docker)/(?!volumes/).+"
)
"""Directories of kubelet, containerd, CRI-O, Podman and Docker for one pod or container. A volume
of Docker keeps its name."""


class Mount(NamedTuple):
    """One mount: the fields that locate block devices."""

    major: int
    minor: int
    root: str
    """Directory of the file system that is mounted; not / for a bind mount or a subvolume."""
    mount_point: str
    source: str
    """What was mounted, such as /dev/vda1; arbitrary for file systems without a device."""
    file_system: str = ""
    """Type of the file system, such as ext4 or fuse.sshfs."""
    read_only: bool = False
    """Whether the mount or its file system is read-only."""
    number: int = 0
    """Mount ID, as `mnt_id` in /proc/<pid>/fdinfo."""
    subvolume: str = "/"
    """Path of the subvolume of btrfs that `root` is in; / for other file systems."""
    options: str = ""
    """Those of the file system, with commas between them, as the kernel writes them."""

    @property
    def is_of_container(self) -> bool:
        """Whether the mount point is that of one pod or container: it is new each time."""
        return _OF_CONTAINER.fullmatch(self.mount_point) is not None


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Return the mounts in the order of the text, without lines that cannot be parsed."""
    return tuple(mount for line in text.split("\n") if (mount := _parse_line(line)))


def file_system_mounts(mounts: Iterable[Mount]) -> set[str]:
    """Return where the file systems of one device were mounted first, whatever containers do.

    kubelet mounts the file system of a volume again for each pod, container runtimes and service
    managers mount directories of it (bind mounts), and runtimes mount file systems of their own
    for each container. None of them says more about the disk, and their paths are new each time.

    `mounts` are those of the device, in the order of the mount table. A file system without a
    mount point of its own, which only containers use, has none. Each subvolume of btrfs counts as
    a file system.
    """
    first: dict[str, str] = {}
    for mount in mounts:
        if mount.root == mount.subvolume and not mount.is_of_container:
            first.setdefault(mount.root, mount.mount_point)
    return set(first.values())


def foreign_file_system(file: Mount, procfs: Mount) -> str | None:
    """Return the type of the file system that is mounted over a file of procfs; None if none is.

    `file` is the mount of the file, `procfs` that of the directory. Both have the same type where
    nothing is mounted over the file, in the kernel's procfs as in a copy of it; but lxcfs is
    foreign even where it provides the whole directory.
    """
    if file.file_system == procfs.file_system != LXCFS:
        return None
    return file.file_system


def _parse_line(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    fields, origin = before.split(" "), after.split(" ")
    if not separator or len(fields) < _LEAST_FIELDS or len(origin) < 2:  # noqa: PLR2004 -- type, source
        return None
    major, _, minor = fields[2].partition(":")
    try:
        return Mount(
            int(major),
            int(minor),
            root=unescape(fields[3]),
            mount_point=unescape(fields[4]),
            source=unescape(origin[1]),
            file_system=unescape(origin[0]),
            read_only="ro" in {*fields[5].split(","), *origin[-1].split(",")},
            number=int(fields[0]),
            subvolume=_subvolume(origin[-1]),
            options=" ".join(origin[2:]),
        )
    except ValueError:
        return None


def _subvolume(options: str) -> str:
    """Return the option `subvol`, which btrfs writes last, since the path may contain commas."""
    _, found, path = options.partition(",subvol=")
    return unescape(path) if found else "/"


def unescape(name: str) -> str:
    """Return a name of the mount table as it is."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), name)
