"""Inventory: read all block devices from sysfs, the udev database and the mount table.

All are files, of this machine or of a host that is mounted in a container. libudev (by pyudev)
is used for its events only (hotplug.py): to list devices by it takes longer than to read them.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block-device;
systemd's rules.d/60-persistent-storage.rules for the meaning of the properties.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyudev

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import provider_of
from disksla.base.operating_system.machine import Roots, read_dmi
from disksla.base.units import KIB
from disksla.kernel.disks.csi_volume import (
    MAX_BYTES,
    CsiVolume,
    parse_volume_data,
    with_csi_volumes,
)
from disksla.kernel.disks.disk import Disk, nfs_disks
from disksla.kernel.disks.layer import layer_of
from disksla.kernel.disks.multipath import multipath_wwn, with_paths, with_serial_of_paths
from disksla.kernel.disks.stacking import with_stacking
from disksla.kernel.disks.udev_database import (
    decode_property,
    links_of,
    parse_count,
    parse_device_number,
    parse_name,
    parse_sectors,
    parse_udev_data,
    parse_vpd_serial,
)
from disksla.kernel.disks.volume import READ_FROM_SYSFS, Attributes, volume_of
from disksla.kernel.procfs import Mount, parse_mountinfo

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors of a volume that was just unmounted, or of a container without the host's directory."""


class CsiVolumeFiles:
    """Files of one scan."""

    def __init__(self, roots: Roots) -> None:
        """Read nothing."""
        self._root = str(roots.rootfs).rstrip("/")
        self._errors: dict[str, None] = {}

    def read(self, path: str) -> CsiVolume | None:
        """Return the volume that a file of the host describes; None if there is none."""
        try:
            content = _read_regular(f"{self._root}{path}")
        except OSError as error:
            if error.errno not in _ABSENT:
                self._errors[error.strerror or str(error)] = None
            return None
        return parse_volume_data(content)

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read; the same messages whatever volumes there are."""
        return tuple(
            f"cannot read vol_data.json of kubelet: {error}; handles of CSI volumes are unknown;"
            " only root may read it, in a container below --path.rootfs"
            for error in self._errors
        )


def _read_regular(path: str) -> bytes:
    """Return the beginning of a file; nothing of anything else, on which reading might block."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, MAX_BYTES + 1) if is_regular else b""
    finally:
        os.close(descriptor)


_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EINVAL}
"""Errors of reading the files of a device while it is being removed."""
_MAX_BYTES = 4096  # an attribute of sysfs is at most one page
_MAX_ENTRY_BYTES = 65536  # an entry of the udev database has a few kilobytes
_ROTATIONAL = {"1": True, "0": False}
_WRITE_BACK = {"write back": True, "write through": False}

Value = TypeVar("Value")


class Inventory(NamedTuple):
    """All block devices and NFS mounts of a machine, as of one scan."""

    disks: tuple[Disk, ...]
    """All block devices, including partitions and loop devices, and NFS mounts, sorted by name."""
    problems: tuple[str, ...]
    """What could not be read, one message each. Such devices are not in `disks`."""
    mounts: tuple[Mount, ...] = ()  # the mount table


def read_disks(roots: Roots) -> Inventory:
    """Return all block devices, with their holders and mount points.

    Raise DiskslaError if block devices cannot be listed at all.
    """
    return BlockDevices(roots).read()


class BlockDevices:
    """Reads the block devices of one sysfs, repeatedly."""

    def __init__(self, roots: Roots) -> None:
        """Load libudev if the paths are the default ones. Use the object from one thread only."""
        self._roots = roots
        self._udev_data = str(roots.udev_data)
        self._provider = provider_of(read_dmi(roots))
        self.udev: Any = None
        """pyudev's Context; None with other than the default paths, or without libudev."""
        self.udev_problem: str | None = None  # why there is no libudev despite the default paths
        if (roots.sysfs, roots.udev_data) == (Roots().sysfs, Roots().udev_data):
            try:
                self.udev = pyudev.Context()
            except (ImportError, OSError) as error:
                self.udev_problem = (
                    f"cannot load libudev: {error}; changes are detected with a delay;"
                    " install libudev1 (Debian) or systemd-libs (Fedora)"
                )

    def read(self) -> Inventory:
        """Return all block devices, with their holders and mount points.

        Raise DiskslaError if block devices cannot be listed at all.
        """
        problems = [] if self.udev_problem is None else [self.udev_problem]
        disks: dict[str, Disk] = {}
        for link in self._links():
            try:
                disk = _describe(_directory_of(link), self._udev_data, self._provider)
            except OSError as error:
                if error.errno not in _GONE:
                    problems.append(f"device skipped: {error.filename}: {error.strerror}")
            except ValueError as error:
                problems.append(f"device skipped: {error}")
            else:
                disks[disk.name] = disk
        mounts: tuple[Mount, ...] = ()
        table = self._roots.mountinfo
        try:
            mounts = parse_mountinfo(table.read_bytes().decode(errors="replace"))
        except OSError as error:
            problems.append(f"cannot read {table}: {error.strerror}; mount points are unknown")
        completed = [_completed(disk, disks) for disk in disks.values()]
        csi = CsiVolumeFiles(self._roots)
        stacked = with_stacking(with_paths(completed), mounts)
        known = with_csi_volumes(stacked, mounts, csi.read)
        known = tuple(sorted((*known, *nfs_disks(mounts)), key=lambda disk: disk.name))
        return Inventory(known, (*problems, *csi.problems), mounts)

    def _links(self) -> Iterable[str]:
        """Return the paths of the links to the directories of all devices."""
        listing = self._roots.sysfs / "class" / "block"
        try:
            names = os.listdir(listing)  # noqa: PTH208 -- a Path object each costs too much
        except OSError as error:
            raise DiskslaError(
                f"cannot list block devices in {listing}: {error.strerror};"
                " check that --path.sysfs is the mount point of a sysfs"
            ) from error
        return (f"{listing}/{name}" for name in names)


def _directory_of(link: str) -> str:
    """Return the directory of a device, which may be listed itself in a copy of sysfs.

    No part of what sysfs links to is a link; to look at each with `realpath` takes half as long
    as everything else. Raise OSError if the device is gone.
    """
    try:
        target = os.readlink(link)  # noqa: PTH115 -- a Path object each costs too much
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return link
    return os.path.normpath(os.path.join(link, "..", target))  # noqa: PTH118 -- as above


def _describe(directory: str, udev_data: str, provider: str | None) -> Disk:
    """Return the record of a device, from its own directory and its udev properties.

    A partition gets no serial, WWN, model and volume, because they identify its disk. Raise
    OSError while the device is being removed, ValueError if an attribute is invalid.
    """
    files = _Directory(directory)
    parent, name = directory.rsplit("/", 2)[1:]
    # A hidden device has no device number, because it cannot be opened.
    hidden = files.name("hidden") == "1"
    major, minor = (0, 0) if hidden else files.parsed("dev", parse_device_number)
    entry = _read_optional(f"{udev_data}/b{major}:{minor}", _MAX_ENTRY_BYTES) or b""
    properties = parse_udev_data(entry.decode(errors="replace"))
    by_id, links = links_of(properties)
    partition = "partition" in files
    described = Disk(
        name=_kernel_name(name),
        major=major,
        minor=minor,
        size_bytes=files.parsed("size", parse_sectors),
        diskseq=files.parsed("diskseq", parse_count) if "diskseq" in files else None,
        serial=None if partition else _serial(files, properties),
        wwn=None if partition else _wwn(files, properties),
        model=None if partition else _model(files, properties),
        rotational=_ROTATIONAL.get(files.name("queue/rotational") or ""),
        largest_request_bytes=_largest_request_bytes(files),
        write_back=_WRITE_BACK.get(files.name("queue/write_cache") or ""),
        hidden=hidden,
        partition_of=_kernel_name(parent) if partition else None,
        by_id=by_id,
        links=links,
        slaves=files.names_in("slaves"),
        layer=layer_of(files.names_in("slaves"), files.name, files.link),
    )
    if provider is None or partition or hidden or "/virtual/block/" in directory:
        return described
    volume = volume_of(provider, _attributes(described, provider, files, properties))
    return msgspec.structs.replace(
        described, provider=provider, volume=parse_name(volume.key or ""), is_local=volume.is_local
    )


def _attributes(
    disk: Disk, provider: str, files: "_Directory", udev: Mapping[str, str]
) -> Attributes:
    """Return what identifies the volume behind a disk; further files only where they are needed.

    A SCSI disk is three directories below the device of its host adapter: host, target, address.
    """
    known = Attributes(
        disk.name,
        disk.serial,
        disk.model,
        tuple(udev.get("DEVLINKS", "").split(" ")),
        _property(udev, "ID_SERIAL_SHORT"),
    )
    if provider not in READ_FROM_SYSFS:
        return known
    if not disk.name.startswith("sd"):
        return known._replace(nsid=files.name("nsid"))
    return known._replace(
        scsi_address=files.link("device"), vmbus_device=files.name("device/../../../device_id")
    )


def _completed(disk: Disk, disks: Mapping[str, Disk]) -> Disk:
    """Return a device with what sysfs has of others: of its whole disk, or of its paths."""
    whole = disks.get(disk.partition_of or "")
    if whole is None:
        return with_serial_of_paths(disk, disks)
    return msgspec.structs.replace(
        disk,
        diskseq=whole.diskseq,
        rotational=whole.rotational,
        largest_request_bytes=whole.largest_request_bytes,
    )


def _largest_request_bytes(files: "_Directory") -> int | None:
    """Return the limit of the hardware; that of the kernel may be changed, and is not higher."""
    text = files.name("queue/max_hw_sectors_kb") or ""
    try:
        return parse_count(text) * KIB
    except ValueError:
        return None


def _serial(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Return the serial number; prefer sysfs, because udev may not have read the device yet.

    Saved state is keyed by it. ID_SCSI_SERIAL has the content of device/vpd_pg80; the order of
    the properties is that of `lsblk -o SERIAL`.
    """
    return (
        files.name("serial")
        or files.name("device/serial")
        or parse_vpd_serial(files.content("device/vpd_pg80") or b"")
        or _property(udev, "ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL")
    )


def _wwn(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Return the WWN of sysfs (naa.5000c5..., eui.0025...), or of udev (0x5000c5...)."""
    return (
        files.name("wwid")
        or files.name("device/wwid")
        or _property(udev, "ID_WWN_WITH_EXTENSION", "ID_WWN")
        or multipath_wwn(files.name("dm/uuid") or "")
    )


def _model(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Return the model; prefer udev: sysfs has only the 16 characters of SCSI for ATA disks."""
    return (
        parse_name(decode_property(udev.get("ID_MODEL_ENC", "")))
        or files.name("device/model")
        or _property(udev, "ID_MODEL")
    )


def _property(udev: Mapping[str, str], *keys: str) -> str | None:
    return next((name for key in keys if key in udev and (name := parse_name(udev[key]))), None)


def _kernel_name(entry: str) -> str:
    """Return the name as in /proc/diskstats; sysfs writes cciss/c0d0 as cciss!c0d0.

    Raise ValueError if the name is not printable: no driver uses such names.
    """
    if not entry.isprintable():
        raise ValueError(f"found device name {entry!r}; expected printable characters")
    return entry.replace("!", "/")


class _Directory:
    """The directory of one device in sysfs, listed once to avoid opening absent files."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries = set(os.listdir(path))  # noqa: PTH208 -- a Path object each costs too much

    def __contains__(self, name: str) -> bool:
        return name.partition("/")[0] in self._entries

    def parsed(self, name: str, parse: Callable[[str], Value]) -> Value:
        """Return a mandatory attribute. Raise OSError, or ValueError that names the file."""
        path = f"{self._path}/{name}"
        try:
            return parse(_read(path).decode(errors="replace"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def content(self, name: str) -> bytes | None:
        """Return the content of an optional attribute; None if it cannot be read."""
        if name not in self:
            return None
        return _read_optional(f"{self._path}/{name}")

    def name(self, name: str) -> str | None:
        """Return an optional attribute as text fit for display."""
        content = self.content(name)
        return None if content is None else parse_name(content.decode(errors="replace"))

    def link(self, name: str) -> str | None:
        """Return the last part of what a link points to; None if it cannot be read."""
        if name not in self:
            return None
        try:
            return os.readlink(f"{self._path}/{name}").rpartition("/")[2]  # noqa: PTH115 -- as above
        except OSError:
            return None

    def names_in(self, name: str) -> tuple[str, ...]:
        """Return the names of the devices that a subdirectory links to, sorted."""
        if name not in self:
            return ()
        entries = os.listdir(f"{self._path}/{name}")  # noqa: PTH208 -- as above
        return tuple(sorted(map(_kernel_name, entries)))


def _read_optional(path: str, most_bytes: int = _MAX_BYTES) -> bytes | None:
    try:
        return _read(path, most_bytes)
    except OSError:
        return None


def _read(path: str, most_bytes: int = _MAX_BYTES) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most_bytes)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
