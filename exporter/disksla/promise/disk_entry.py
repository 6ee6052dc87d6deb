"""What an entry of a file says of disks: which they are, their size, and what was bought.

`disksla detect` loads this module, which needs neither the catalogue nor YAML.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from disksla.base.schema import BytesPerSecond, FieldType, Text, pattern, rate
from disksla.base.units import MIB, is_decimal, parse_bandwidth_bytes_per_second, parse_size_bytes

DeviceName = Annotated[
    str,
    pattern(
        "a kernel name such as vda, or a logical volume (for links in /dev/disk, use by_id)",
        r"(?!disk/)[^\s/]+(/[^\s/]+)?",
        prefix="/dev/",
    ),
]
DeviceOrMountName = Annotated[
    str,
    pattern(
        "a kernel name such as vda, a logical volume or an NFS mount such as fs1:/export (for"
        " links in /dev/disk, use by_id)",
        r"(?!disk/)[^\s/]+(/[^\s/]+|:/\S*)?",
        prefix="/dev/",
    ),
]


def is_mount_name(name: str) -> bool:
    """Return whether a name is that of an NFS mount; no name of a block device has a colon."""
    return ":/" in name


def _parse_link(text: str) -> str:
    """Return the name of a link in /dev/disk/by-id, or disk/DIRECTORY/NAME of another one."""
    name = text.strip().removeprefix("/dev/").removeprefix("disk/by-id/")
    if not re.fullmatch(r"disk(/[^\s/]+){2,}|[^\s/]+", name):
        raise ValueError(f"found '{text}'; expected {_LINK}")
    return name


def _parse_mount_point(text: str) -> str:
    """Return a path without what changes nothing, such as a slash at its end."""
    if not text.startswith("/"):
        raise ValueError(f"found '{text}'; expected {PATH}")
    return "/" + posixpath.normpath(text).lstrip("/")


def parse_disk_size(text: str) -> int | str:
    """Return the bytes of the size of a disk, or the text if they depend on the provider.

    Raise ValueError for zero, and for a number below 1 MiB without unit, which was forgotten.
    """
    size_bytes = parse_size_bytes(text)
    if not size_bytes:
        raise ValueError(f"'{text}' is zero; expected {_DISK_SIZE}")
    if size_bytes < MIB and text.isdecimal():
        raise ValueError(f"'{text}' has no unit; expected {_DISK_SIZE}")
    return text if is_decimal(text) else size_bytes


PATH = "a path that starts with /"
_LINK = "a link such as virtio-data in /dev/disk/by-id, or /dev/disk/azure/scsi1/lun0"
_DISK_SIZE = "a size of a disk such as 500GiB or 100G"
_IdName = Annotated[str, FieldType(_LINK, _parse_link)]
_MountPoint = Annotated[str, FieldType(PATH, _parse_mount_point)]
_DiskSize = Annotated[int | str, FieldType(_DISK_SIZE, parse_disk_size)]
_Bandwidth = Annotated[
    float, FieldType("a bandwidth such as 25MB/s or 240MiB/s", parse_bandwidth_bytes_per_second)
]
Iops = Annotated[float, rate(1, 10**9)]
CATALOG_ID = pattern("an id of the catalogue such as vk.ceph-ssd", r"\S+")
Caching = Literal["none", "read-only", "read-write"]  # what the host caches of a disk


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of all sections of a file."""


class DiskMatch(Strict, frozen=True, omit_defaults=True):
    """The disks of an entry; all keys that are set must match."""

    device: DeviceOrMountName | None = None
    serial: Text | None = None
    volume: Text | None = None  # the provider's key of the volume (`Disk.volume`)
    volume_handle: Text | None = None  # the id of the volume in the words of its CSI driver
    storage_class: Text | None = None  # the StorageClass of its PersistentVolume
    wwn: Text | None = None
    model: Text | None = None
    mountpoint: _MountPoint | None = None
    by_id: _IdName | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an entry that would match every disk."""
        if not self.given():
            keys = ", ".join(self.__struct_fields__)
            raise ValueError(f"found no key; expected at least one of: {keys}")

    def given(self) -> dict[str, str]:
        """Return the keys that are set, with their values."""
        values = msgspec.structs.asdict(self)
        return {key: value for key, value in values.items() if value is not None}

    @property
    def is_of_mount(self) -> bool | None:
        """Whether it can only match mounts; False if only block devices, None if both."""
        if self.device is not None:
            return is_mount_name(self.device)
        is_of_disk = self.serial or self.wwn or self.model or self.by_id
        return False if is_of_disk else None

    def describe(self) -> str:
        """Return the keys that are set in words: 'serial a and model b'."""
        return " and ".join(f"{key} {value}" for key, value in self.given().items())


class DiskValues(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of the matching disks, besides their type."""

    match: DiskMatch
    size: _DiskSize | None = None
    """The size that was sold, where the kernel reports another: bytes, or as it is written where
    GB may be GiB. See `size_bytes`."""
    iops: Iops | None = None  # the provisioned IOPS, for types that have them
    bytes_per_second: BytesPerSecond | None = msgspec.field(default=None, name="bandwidth")
    caching: Caching | None = None
    """What the host caches of the disk (Azure); None if it is not known."""
    options: Mapping[str, Text] = {}
    """Values of the options of the type, such as `tier: P30`."""

    def __post_init__(self) -> None:
        """Raise ValueError for a size that cannot be parsed."""
        self.size_bytes()

    def size_bytes(self, *, binary_gb: bool = False) -> int | None:
        """Return the size that was sold by a provider that writes GB for GiB, or by another."""
        if isinstance(self.size, str):
            return parse_size_bytes(self.size, binary_gb=binary_gb)
        return self.size


class SoldDisk(DiskValues, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of a terms file with the type in the words of the provider's API."""

    iops: Annotated[float, rate(0, 10**9)] | None = None
    """0 for none, as Terraform writes it; so for bandwidth."""
    bytes_per_second: _Bandwidth | None = msgspec.field(default=None, name="bandwidth")
    provider: Text | None = None  # the provider of the type; None for that of the file
    api_type: Annotated[str, CATALOG_ID] | None = None  # as the provider's API spells it
