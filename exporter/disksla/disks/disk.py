"""What a disk is: its identity, and which disks are watched unless told otherwise."""

from typing import Annotated

import msgspec


class Disk(msgspec.Struct, frozen=True, omit_defaults=True):
    """One block device as the kernel and the udev database describe it.

    Sources: Documentation/ABI/stable/sysfs-block; systemd's 60-persistent-storage.rules.
    """

    name: str
    """Kernel name without /dev/, as node_exporter's `device` label."""
    major: int
    minor: int
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    diskseq: int | None = None
    """Number that the kernel never gives twice within a boot (since 5.15)."""
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    rotational: bool | None = None
    hidden: bool = False
    """A path of a native NVMe multipath head, which does the counting."""
    partition_of: str | None = None
    """Kernel name of the whole disk, for a partition; read from sysfs, not from names."""
    mount_points: tuple[str, ...] = ()
    """Where the disk, or what stands on it (partitions, LVM, dm-crypt), is mounted; sorted."""
    by_id: tuple[str, ...] = ()
    """Names under /dev/disk/by-id, without the directory, sorted."""
    holders: tuple[str, ...] = ()
    """Devices stacked on this disk or its partitions (device-mapper, md), sorted."""
    slaves: tuple[str, ...] = ()
    """Devices that this one is made of, sorted."""

    def is_same_as(self, other: "Disk") -> bool:
        """Tell whether two descriptions are of one disk; what one of them lacks says nothing.

        A kernel event comes before udev has read the serial, so an identity may grow; it never
        changes.
        """
        return (self.major, self.minor) == (other.major, other.minor) and all(
            mine is None or theirs is None or mine == theirs
            for mine, theirs in (
                (self.diskseq, other.diskseq),
                (self.serial, other.serial),
                (self.wwn, other.wwn),
            )
        )


def disk_key(disk: Disk) -> str | None:
    """Give the name under which a disk is known again; None if it has neither serial nor WWN."""
    if disk.wwn:
        return f"wwn:{disk.wwn}"
    return f"serial:{disk.serial}" if disk.serial else None
