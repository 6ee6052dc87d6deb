"""Where a file that measures a disk can lie: on which file systems, on which mounts, how large."""

from collections.abc import Collection, Iterable
from typing import Literal

from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.procfs import Mount

ScratchFileReason = Literal[
    "error",
    "network",
    "no_space",
    "not_a_directory",
    "not_a_disk",
    "not_ours",
    "permission",
    "read_only",
]

NETWORK_FILE_SYSTEMS = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2", "smb3"),
    *("smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs"),
}
"""Types whose files lie elsewhere, or that other machines use too."""

MULTI_DEVICE_FILE_SYSTEMS = {"btrfs", "bcachefs"}
"""Types that hide their block devices behind a number of their own."""

SPARED_SHARE = 0.05
MOST_SPARED_BYTES = 10 * 1024**3
_FOR_STARTING = {"/boot", "/boot/efi", "/boot/firmware", "/efi"}


class ScratchFileError(DiskslaError):
    """No file can be made here; the text says why, and `reason` sorts it."""

    def __init__(self, reason: ScratchFileReason, words: str) -> None:
        """Take the reason for machines and the words for people."""
        super().__init__(words)
        self.reason: ScratchFileReason = reason


def check_mount(mount: Mount) -> None:
    """Raise PlaceRefusal unless files of this mount lie on a disk and can be written."""
    kind, where = mount.file_system, mount.mount_point
    if kind in NETWORK_FILE_SYSTEMS or kind.partition(".")[0] in {"fuse", "fuseblk"}:
        raise ScratchFileError(
            "network", f"{where} is {kind}, which is not this machine's alone; expected a disk"
        )
    if mount.major == 0 and not (
        kind in MULTI_DEVICE_FILE_SYSTEMS and mount.source.startswith("/dev/")
    ):
        raise ScratchFileError("not_a_disk", f"{where} is {kind}, which is no disk; expected one")
    if mount.read_only:
        raise ScratchFileError("read_only", f"{where} is mounted read only")


def check_free_space(size_bytes: int, total_bytes: int, free_bytes: int, where: str) -> None:
    """Raise PlaceRefusal unless enough stays free for others: 5 %, but 10 GiB are enough."""
    spared_bytes = min(int(total_bytes * SPARED_SHARE), MOST_SPARED_BYTES)
    if size_bytes > free_bytes - spared_bytes:
        raise ScratchFileError(
            "no_space",
            f"{where} has {free_bytes} bytes free, of which {spared_bytes} are left alone;"
            f" expected {size_bytes} more",
        )


def mounts_for_files(
    disk: Disk, disks: Iterable[Disk], mounts: Collection[Mount]
) -> tuple[Mount, ...]:
    """Give the mounts on which a file of ours would lie on this disk, and on no other.

    They are of the disk itself or of its partitions; what is stacked above (LVM, RAID) may lie
    on other disks too. Whole file systems come before bind mounts of their directories. Partitions
    for starting the machine are left out, and so are mounts that another one hides.
    """
    parts = [one for one in disks if disk.name in {one.name, one.partition_of}]
    numbers = {(one.major, one.minor) for one in parts}
    sources = {f"/dev/{one.name}" for one in parts}
    on_top = {mount.mount_point: mount for mount in mounts}
    found = [
        mount
        for mount in on_top.values()
        if ((mount.major, mount.minor) in numbers or (not mount.major and mount.source in sources))
        and mount.mount_point not in _FOR_STARTING
        and _is_fit(mount)
    ]
    return tuple(sorted(found, key=lambda mount: mount.root != "/"))


def _is_fit(mount: Mount) -> bool:
    try:
        check_mount(mount)
    except ScratchFileError:
        return False
    return True
