"""Rules: where may a scratch file be created? Mounts of local disks, with enough free space."""

from collections.abc import Collection

from disksla.base.errors import DiskslaError
from disksla.base.units import format_size
from disksla.kernel.disks import Disk, parts_of
from disksla.kernel.procfs import Mount
from disksla.state.pipeline import ProbeFailure

NETWORK_FILE_SYSTEMS = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2", "smb3"),
    *("smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs"),
}
"""Types whose files are on other machines, or are shared with other machines."""

MULTI_DEVICE_FILE_SYSTEMS = {"btrfs", "bcachefs"}
"""Types that report a device number of their own instead of that of their block devices."""

RESERVED_SHARE = 0.05
MAX_RESERVED_BYTES = 10 * 1024**3
_BOOT_MOUNT_POINTS = {"/boot", "/boot/efi", "/boot/firmware", "/efi"}


class ScratchFileError(DiskslaError):
    """A scratch file cannot be created: the message says why, `reason` is that of a probe."""

    def __init__(self, message: str, reason: ProbeFailure = "no_scratch_file") -> None:
        """Set the message and the reason."""
        super().__init__(message)
        self.reason: ProbeFailure = reason


def check_mount(mount: Mount) -> None:
    """Raise ScratchFileError unless files of this mount are on a disk and can be written."""
    kind, where = mount.file_system, mount.mount_point
    if kind in NETWORK_FILE_SYSTEMS or kind.partition(".")[0] in {"fuse", "fuseblk"}:
        raise ScratchFileError(
            f"{where} is a network, shared or FUSE file system ({kind}); expected a file system"
            " on a local disk"
        )
    if mount.major == 0 and not (
        kind in MULTI_DEVICE_FILE_SYSTEMS and mount.source.startswith("/dev/")
    ):
        raise ScratchFileError(
            f"{where} is not on a disk ({kind}); expected a file system on a local disk"
        )
    if mount.read_only:
        raise ScratchFileError(f"{where} is mounted read-only", "read_only")


def check_free_space(size_bytes: int, total_bytes: int, free_bytes: int, where: str) -> None:
    """Raise ScratchFileError unless 5 % of the file system, at most 10 GiB, remain free."""
    reserved_bytes = min(int(total_bytes * RESERVED_SHARE), MAX_RESERVED_BYTES)
    if size_bytes > free_bytes - reserved_bytes:
        raise ScratchFileError(
            f"not enough space in {where}: found {format_size(free_bytes)} free; expected"
            f" {format_size(size_bytes)}, and {format_size(reserved_bytes)} to remain free",
            "no_space",
        )


def mounts_for_files(
    disk: Disk, disks: Collection[Disk], mounts: Collection[Mount]
) -> tuple[Mount, ...]:
    """Return the mounts where a scratch file would be on this disk, and on no other.

    These are mounts of the disk, by any of its paths, or of its partitions; what is stacked on it
    (LVM, RAID) may be on other disks too. Whole file systems come before bind mounts of their
    directories. Boot partitions are left out, and so are mounts hidden by another mount.
    """
    devices = parts_of(disk, disks)
    numbers = {(one.major, one.minor) for one in devices}
    sources = {f"/dev/{one.name}" for one in devices}
    visible = {mount.mount_point: mount for mount in mounts}
    found = [
        mount
        for mount in visible.values()
        if ((mount.major, mount.minor) in numbers or (not mount.major and mount.source in sources))
        and mount.mount_point not in _BOOT_MOUNT_POINTS
        and _is_suitable(mount)
    ]
    return tuple(sorted(found, key=lambda mount: mount.root != "/"))


def _is_suitable(mount: Mount) -> bool:
    try:
        check_mount(mount)
    except ScratchFileError:
        return False
    return True
