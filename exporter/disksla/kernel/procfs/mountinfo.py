"""/proc/<pid>/mountinfo: parse the mount table, and find the volumes that kubelet mounted.

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
    source: str  # what was mounted, such as /dev/vda1; arbitrary for file systems without a device
    file_system: str = ""  # type of the file system, such as ext4 or fuse.sshfs
    read_only: bool = False  # whether the mount or its file system is read-only
    number: int = 0  # mount ID, as `mnt_id` in /proc/<pid>/fdinfo
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


_FILE = "vol_data.json"
_STAGED = re.compile(r"(.*/plugins/kubernetes\.io/csi/([^/]+)/([^/]+)/)globalmount")
_OF_POD = re.compile(r"(.*/pods/[^/]+/volumes/kubernetes\.io~csi/([^/]+)/)mount")
_HASH = re.compile("[0-9a-f]{64}")
_DEVICE_NODE = re.compile(
    r"(.*/plugins/kubernetes\.io/csi/volumeDevices/)(?:publish/([^/]+)|([^/]+)/dev)/[^/]+"
)


class KubeletMount(NamedTuple):
    """What a place below kubelet's directory shows of a volume."""

    file: str  # describes the volume
    driver: str | None = None
    handle_hash: str | None = None
    name: str | None = None
    in_pod: bool = False
    """The name is that of a PersistentVolume, or of an inline volume of the pod."""


def kubelet_mount(point: str) -> KubeletMount | None:
    """Return the place of a file system; None if it is not one of kubelet."""
    staged = _STAGED.fullmatch(point)
    if staged is not None:
        file, has_hash = f"{staged[1]}{_FILE}", _HASH.fullmatch(staged[3]) is not None
        return KubeletMount(file, staged[2], staged[3]) if has_hash else KubeletMount(file)
    of_pod = _OF_POD.fullmatch(point)
    if of_pod is None:
        return None
    return KubeletMount(f"{of_pod[1]}{_FILE}", name=of_pod[2], in_pod=True)


def kubelet_device(mount: Mount) -> KubeletMount | None:
    """Return the place of a device node that was bound; None for other mounts."""
    node = _DEVICE_NODE.fullmatch(mount.mount_point)
    if node is None or mount.file_system != "devtmpfs":
        return None
    name = node[2] or node[3]
    return KubeletMount(f"{node[1]}{name}/data/{_FILE}", name=name)


def names_in_use(mounts: Iterable[Mount]) -> tuple[str, ...]:
    """Return the names under which kubelet mounted volumes with a block device, sorted.

    They are those of PersistentVolumes, and names within their pod of inline volumes.
    """
    places = (
        kubelet_mount(mount.mount_point)
        if mount.major or mount.source.startswith("/dev/")  # btrfs has no device of its own
        else kubelet_device(mount)
        for mount in mounts
    )
    return tuple(sorted({place.name for place in places if place is not None and place.name}))
