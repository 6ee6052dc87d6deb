"""The record of a block device or an NFS mount, and its identity across rescans and restarts."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from disksla.base.units import format_size
from disksla.kernel.disks.layer import Layer
from disksla.kernel.nfs import nfs_mounts
from disksla.kernel.procfs import Mount

DiskKind = Literal["disk", "nfs"]  # what is called a disk: a block device, or an NFS mount


class Disk(msgspec.Struct, frozen=True, omit_defaults=True):
    """One block device, as described by the kernel and the udev database, or one NFS mount.

    Sources: Documentation/ABI/stable/sysfs-block; systemd's 60-persistent-storage.rules.
    """

    name: str
    """Kernel name without /dev/, as in the label `device` of node_exporter; of an NFS mount, what
    is mounted (see `nfs_mounts`)."""
    major: int
    minor: int
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    """0 of an NFS mount: to ask for it may wait for the server."""
    kind: DiskKind = "disk"
    diskseq: int | None = None
    """Sequence number of the device, unique within a boot (since Linux 5.15)."""
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    rotational: bool | None = None
    largest_request_bytes: int | None = None  # largest request that the kernel sends to it
    write_back: bool | None = None
    """It has a volatile write cache (sysfs `write_cache`), so programs flush it."""
    hidden: bool = False
    """A path of native NVMe multipath. Its I/O is counted at the disk since about Linux 6.2, and
    before only here."""
    path_of: str | None = None
    """Kernel name of the disk of which this is a further path; see multipath.py."""
    partition_of: str | None = None
    """Kernel name of the whole disk, if this is a partition; read from sysfs."""
    mount_points: tuple[str, ...] = ()
    """Mount points of the disk and of all devices above it (partitions, LVM, dm-crypt), sorted."""
    file_system_mounts: tuple[str, ...] = ()
    """Those of `mount_points` at which file systems were mounted first, without bind mounts and
    what pods and containers mount, sorted; see stacking.py."""
    by_id: tuple[str, ...] = ()  # names in /dev/disk/by-id, without the directory, sorted
    links: tuple[str, ...] = ()
    """Its other links in /dev, without that directory, such as disk/by-path/..., sorted."""
    holders: tuple[str, ...] = ()
    """Devices stacked on this disk or its partitions (device-mapper, md), sorted."""
    slaves: tuple[str, ...] = ()  # devices that this one is stacked on, sorted
    layer: Layer | None = None  # how it is made of them; None of a device that is stacked on none

    provider: str | None = None
    """Provider of the machine, of its whole disks; an id of the catalogue, or `openstack`."""
    volume: str | None = None  # the provider's own key of the volume; see volume.py
    is_local: bool | None = None
    """True for a disk inside the host (instance store), False for a volume, None if unknown."""
    csi_driver: str | None = None  # driver of Kubernetes that attached the disk; see csi_volume.py
    volume_handle: str | None = None  # id of the volume in the words of that driver
    persistent_volume: str | None = None  # name of the PersistentVolume
    volume_handle_hash: str | None = None
    """SHA-256 of the handle, in hexadecimal, where the handle itself is not known."""
    claim: str | None = None
    """Name of the PersistentVolumeClaim; like the following, only the API of Kubernetes has it."""
    namespace: str | None = None
    storage_class: str | None = None

    @property
    def full_claim(self) -> str:
        """Return the claim as NAMESPACE/NAME; empty if the disk is none."""
        return f"{self.namespace}/{self.claim}" if self.claim else ""

    @property
    def is_mount(self) -> bool:
        """Whether it is a mount of a network file storage, and no block device."""
        return self.kind == "nfs"

    @property
    def is_sold(self) -> bool:
        """Whether it was sold: it is no partition, stacked device or further path."""
        is_path = self.hidden or self.path_of is not None
        return self.partition_of is None and not self.slaves and not is_path

    @property
    def size_text(self) -> str:
        """The size for people; of a mount, what it is."""
        return "NFS mount" if self.is_mount else format_size(self.size_bytes)

    def is_same_as(self, other: "Disk") -> bool:
        """Return whether two records describe the same disk; fields that are None match any.

        The kernel's event arrives before udev has read the serial, so a field may be None at
        first; a value never changes. A mount of the same name is one of the same file storage,
        though it may have been mounted again.
        """
        if self.is_mount and other.is_mount:
            return self.name == other.name
        return (self.major, self.minor) == (other.major, other.minor) and all(
            own is None or others is None or own == others
            for own, others in (
                (self.diskseq, other.diskseq),
                (self.serial, other.serial),
                (self.wwn, other.wwn),
            )
        )


def disk_key(disk: Disk) -> str | None:
    """Return the key of a disk in saved state; None if it has neither serial nor WWN.

    A mount has its name.
    """
    if disk.is_mount:
        return f"nfs:{disk.name}"
    if disk.wwn:
        return f"wwn:{disk.wwn}"
    return f"serial:{disk.serial}" if disk.serial else None


def nfs_disks(mounts: Iterable[Mount]) -> tuple[Disk, ...]:
    """Return the NFS mounts of a mount table, sorted by name, without those below others."""
    return tuple(Disk(kind="nfs", size_bytes=0, **mount._asdict()) for mount in nfs_mounts(mounts))
