"""The block devices of a machine, as sysfs and the udev database describe them.

On the machine's own trees libudev (through pyudev) lists the devices and looks up their
properties. In another tree, such as a host's that is mounted in a container, the same two
things are read from files. One function then describes a device, wherever it was found.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-block-device;
systemd's rules.d/60-persistent-storage.rules for what the properties hold.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyudev

from disksla.disks.disk import Disk
from disksla.disks.stacking import with_stacking
from disksla.disks.sysfs_attributes import (
    parse_count,
    parse_device_number,
    parse_name,
    parse_sectors,
    parse_vpd_serial,
)
from disksla.disks.udev_database import by_id_names, decode_property, parse_udev_data
from disksla.errors import DiskslaError
from disksla.procfs import Mount, parse_mountinfo
from disksla.system.roots import Roots

_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EINVAL}
"""What reading the files of a device says while the device is being removed."""
_MOST_BYTES = 4096  # an attribute of sysfs is at most one page
_ROTATIONAL = {"1": True, "0": False}
_PROPERTIES = (
    "DEVLINKS",
    "ID_MODEL",
    "ID_MODEL_ENC",
    "ID_SCSI_SERIAL",
    "ID_SERIAL",
    "ID_SERIAL_SHORT",
    "ID_WWN",
    "ID_WWN_WITH_EXTENSION",
)

Value = TypeVar("Value")


class Inventory(NamedTuple):
    """All block devices of a machine at one moment."""

    disks: tuple[Disk, ...]
    """Partitions, loops and everything else included, sorted by name."""
    problems: tuple[str, ...]
    """What could not be understood, one sentence each; such a device is left out."""


class Device(NamedTuple):
    """Where a device is described: its directory in sysfs and its udev properties."""

    directory: str
    properties: Mapping[str, str]


def read_disks(roots: Roots) -> Inventory:
    """Give all block devices, with what is stacked and mounted on them.

    Raises Refusal if there is no list of block devices at all.
    """
    return BlockDevices(roots).read()


class BlockDevices:
    """The block devices of one tree, for reading them more than once."""

    def __init__(self, roots: Roots) -> None:
        """Load libudev, if it is to be used. It must stay with one thread."""
        self._roots = roots
        self.udev: Any = None
        """pyudev's Context; None for another tree than the machine's own, or without libudev."""
        self.udev_problem: str | None = None
        """Why libudev is not used although this is the machine's own tree."""
        if (roots.sysfs, roots.udev_data) == (Roots().sysfs, Roots().udev_data):
            try:
                self.udev = pyudev.Context()
            except (ImportError, OSError) as error:
                self.udev_problem = (
                    f"libudev cannot be loaded ({error}): disks are read without it and changes"
                    " are found later; install libudev1 (Debian) or systemd-libs (Fedora)"
                )

    def read(self) -> Inventory:
        """Give all block devices, with what is stacked and mounted on them.

        Raises Refusal if there is no list of block devices at all.
        """
        problems = [] if self.udev_problem is None else [self.udev_problem]
        disks: dict[str, Disk] = {}
        for device in self._devices():
            try:
                disk = _describe(device)
            except OSError as error:
                if error.errno not in _GONE:
                    problems.append(f"{error.filename}: {error.strerror}; the device is left out")
            except ValueError as error:
                problems.append(f"{error}; the device is left out")
            else:
                disks[disk.name] = disk
        mounts: tuple[Mount, ...] = ()
        table = self._roots.mountinfo
        try:
            mounts = parse_mountinfo(table.read_bytes().decode(errors="replace"))
        except OSError as error:
            problems.append(f"cannot read {table}: {error.strerror}; mount points are not known")
        completed = [_completed(disk, disks) for disk in disks.values()]
        return Inventory(with_stacking(completed, mounts), tuple(problems))

    def _devices(self) -> Iterable[Device]:
        listing = self._roots.sysfs / "class" / "block"
        try:
            names = os.listdir(listing)  # noqa: PTH208 -- a Path object each costs too much
        except OSError as error:
            raise DiskslaError(
                f"cannot list the block devices in {listing}: {error.strerror};"
                " is --path.sysfs the mount point of a sysfs?"
            ) from error
        if self.udev is None:
            return (self._from_files(f"{listing}/{name}") for name in names)
        return map(_from_udev, self.udev.list_devices(subsystem="block"))

    def _from_files(self, link: str) -> Device:
        directory = os.path.realpath(link)
        number = (_read_optional(f"{directory}/dev") or b"").decode(errors="replace").strip()
        try:
            entry = (self._roots.udev_data / f"b{number}").read_bytes()
        except (OSError, ValueError):  # no entry; or garbage for a number, with a NUL in it
            return Device(directory, {})
        return Device(directory, parse_udev_data(entry.decode(errors="replace")))


def _from_udev(device: Any) -> Device:
    known, properties = device.properties, {}
    for key in _PROPERTIES:
        with contextlib.suppress(KeyError, UnicodeDecodeError):
            properties[key] = known[key]
    return Device(device.sys_path, properties)


def _describe(device: Device) -> Disk:
    """Describe a device as far as its own directory tells.

    Raises OSError while the device is being removed, ValueError if an attribute is nonsense.
    A partition is left without serial, WWN and model: they name its disk, not it.
    """
    files = _Directory(device.directory)
    parent, name = device.directory.rsplit("/", 2)[1:]
    # A hidden device has no number: the kernel keeps it from being opened.
    hidden = files.name("hidden") == "1"
    major, minor = (0, 0) if hidden else files.parsed("dev", parse_device_number)
    partition = "partition" in files
    return Disk(
        name=_kernel_name(name),
        major=major,
        minor=minor,
        size_bytes=files.parsed("size", parse_sectors),
        diskseq=files.parsed("diskseq", parse_count) if "diskseq" in files else None,
        serial=None if partition else _serial(files, device.properties),
        wwn=None if partition else _wwn(files, device.properties),
        model=None if partition else _model(files, device.properties),
        rotational=_ROTATIONAL.get(files.name("queue/rotational") or ""),
        hidden=hidden,
        partition_of=_kernel_name(parent) if partition else None,
        by_id=by_id_names(device.properties),
        slaves=files.names_in("slaves"),
    )


def _completed(disk: Disk, disks: Mapping[str, Disk]) -> Disk:
    """Give a partition what sysfs says of its disk only."""
    whole = disks.get(disk.partition_of or "")
    if whole is None:
        return disk
    return msgspec.structs.replace(disk, diskseq=whole.diskseq, rotational=whole.rotational)


def _serial(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Prefer the kernel, so that state keyed by serial does not depend on udev's progress.

    Among the properties, ID_SCSI_SERIAL is the page that device/vpd_pg80 holds; the order is
    that of `lsblk -o SERIAL`.
    """
    return (
        files.name("serial")
        or files.name("device/serial")
        or parse_vpd_serial(files.content("device/vpd_pg80") or b"")
        or _property(udev, "ID_SCSI_SERIAL", "ID_SERIAL_SHORT", "ID_SERIAL")
    )


def _wwn(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Give the kernel's spelling (naa.5000c5..., eui.0025...), or else udev's (0x5000c5...)."""
    return (
        files.name("wwid")
        or files.name("device/wwid")
        or _property(udev, "ID_WWN_WITH_EXTENSION", "ID_WWN")
    )


def _model(files: "_Directory", udev: Mapping[str, str]) -> str | None:
    """Prefer udev, which asks ATA disks themselves: SCSI has room for 16 characters only."""
    return (
        parse_name(decode_property(udev.get("ID_MODEL_ENC", "")))
        or files.name("device/model")
        or _property(udev, "ID_MODEL")
    )


def _property(udev: Mapping[str, str], *keys: str) -> str | None:
    return next((name for key in keys if key in udev and (name := parse_name(udev[key]))), None)


def _kernel_name(entry: str) -> str:
    """Give the name as in /proc/diskstats; sysfs writes cciss/c0d0 with an exclamation mark.

    Raises ValueError for a name that no driver gives, and nobody could be shown.
    """
    if not entry.isprintable():
        raise ValueError(f"{entry!r} is no name of a device")
    return entry.replace("!", "/")


class _Directory:
    """The files of one device in sysfs; listed once, so that absent ones cost nothing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries = set(os.listdir(path))  # noqa: PTH208 -- a Path object each costs too much

    def __contains__(self, name: str) -> bool:
        return name.partition("/")[0] in self._entries

    def parsed(self, name: str, parse: Callable[[str], Value]) -> Value:
        """Read what must be there. Raises OSError, or ValueError that names the file."""
        path = f"{self._path}/{name}"
        try:
            return parse(_read(path).decode(errors="replace"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def content(self, name: str) -> bytes | None:
        """Read what may be there."""
        if name not in self:
            return None
        return _read_optional(f"{self._path}/{name}")

    def name(self, name: str) -> str | None:
        """Read a word or a name that may be there."""
        content = self.content(name)
        return None if content is None else parse_name(content.decode(errors="replace"))

    def names_in(self, name: str) -> tuple[str, ...]:
        """List the devices that a subdirectory links to, sorted."""
        if name not in self:
            return ()
        entries = os.listdir(f"{self._path}/{name}")  # noqa: PTH208 -- as above
        return tuple(sorted(map(_kernel_name, entries)))


def _read_optional(path: str) -> bytes | None:
    try:
        return _read(path)
    except OSError:
        return None


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MOST_BYTES)
    except OSError as error:
        error.filename = path
        raise
    finally:
        os.close(descriptor)
