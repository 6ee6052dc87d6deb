"""The statistics page, read from an NVMe controller by ioctl.

The kernel permits Get Log Page only with CAP_SYS_ADMIN (`nvme_cmd_allowed` in
drivers/nvme/host/ioctl.c). The structure is `nvme_passthru_cmd` of linux/nvme_ioctl.h.
"""

import array
import errno
import fcntl
import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import PAGE_BYTES, BadPageError, parse

MODELS = frozenset({"Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"})
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_CONTROLLER = re.compile(r"nvme\d+")


class EbsDevice(NamedTuple):
    """One disk, and the controller to ask."""

    name: str  # kernel name of the disk, such as nvme1n1
    controller: str  # name of its NVMe controller in /dev, such as nvme1
    serial: str


def find_devices(sysfs: Path) -> tuple[EbsDevice, ...]:
    """Return the disks of AWS, in the order of their names; none if sysfs cannot be read."""
    try:
        names = sorted(path.name for path in (sysfs / "class" / "block").iterdir())
    except OSError:
        return ()
    found = (find_device(sysfs, name) for name in names if _NAMESPACE.fullmatch(name))
    return tuple(device for device in found if device is not None)


def find_device(sysfs: Path, name: str) -> EbsDevice | None:
    """Return a disk; None if it was removed, or its model is another.

    The number in the name of a disk is not always that of its controller.
    """
    directory = sysfs / "class" / "block" / name / "device"
    try:
        controller = directory.readlink().name
        model, serial = (
            (directory / attribute).read_bytes().decode(errors="replace").strip()
            for attribute in ("model", "serial")
        )
    except OSError:
        return None
    if model not in MODELS or not _CONTROLLER.fullmatch(controller):
        return None
    return EbsDevice(name, controller, serial[:64])


Ioctl = Callable[[int, int, bytearray], int]
"""File descriptor, request, and the command, which it may change; returns the NVMe status."""

NVME_IOCTL_ADMIN_CMD = 0xC0484E41
_COMMAND = struct.Struct("<BBHIIIQQII6III")
_GET_LOG_PAGE = 0x02
_STATISTICS_PAGE = 0xD0
_NAMESPACE_ID = 1
_INVALID_LOG_PAGE = 0x109  # status code and its type, without the bits of a retry

_PERMISSION = {errno.EPERM, errno.EACCES}
_REMOVED = {errno.ENOENT, errno.ENODEV, errno.ENXIO}


def read_statistics(
    device: EbsDevice,
    sysfs: Path = Path("/sys"),
    dev: Path = Path("/dev"),
    ioctl: Ioctl = fcntl.ioctl,
    clock: Callable[[], float] = time.monotonic,
) -> Reading | Failure:
    """Return the page of a disk with the time at which it was read, or why there is none."""
    try:
        begin_s, page, end_s = _read(device, sysfs, dev, ioctl, clock)
        statistics = parse(page)
    except BadPageError as error:
        return Failure(device.name, error.reason, str(error))
    middle_s, within_s = (begin_s + end_s) / 2, (end_s - begin_s) / 2
    return Reading(device.name, device.serial, middle_s, statistics, within_s)


def _read(
    device: EbsDevice, sysfs: Path, dev: Path, ioctl: Ioctl, clock: Callable[[], float]
) -> tuple[float, bytes, float]:
    """Return the page, and the times before and after. Raise BadPageError.

    The kernel gives the name of a controller to no other while it is open. So if sysfs still has
    the same disk then, the page is that of this disk.
    """
    path = dev / device.controller
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(error, f"cannot open {path}: {error.strerror}") from None
    try:
        if find_device(sysfs, device.name) != device:
            raise BadPageError("removed", f"{device.name} was removed")
        begin_s = clock()
        page = _get_log_page(descriptor, path, ioctl)
        return begin_s, page, clock()
    finally:
        os.close(descriptor)


def _get_log_page(descriptor: int, path: Path, ioctl: Ioctl) -> bytes:
    """Return the first 4096 bytes of the page. Raise BadPageError."""
    page = array.array("B", bytes(PAGE_BYTES))
    address, _ = page.buffer_info()
    words = PAGE_BYTES // 4 - 1  # of 4 bytes, counted from zero
    command = bytearray(
        _COMMAND.pack(
            *(_GET_LOG_PAGE, 0, 0, _NAMESPACE_ID, 0, 0),
            *(0, address, 0, PAGE_BYTES),
            *(_STATISTICS_PAGE | words << 16, 0, 0, 0, 0, 0),
            *(0, 0),  # the default timeout of the driver, and the result
        )
    )
    try:
        status = ioctl(descriptor, NVME_IOCTL_ADMIN_CMD, command)
    except OSError as error:
        raise _unreadable(error, f"ioctl of {path} failed: {error.strerror}") from None
    if status:
        hint = "it has no such page" if status & 0x7FF == _INVALID_LOG_PAGE else "it refused"
        raise BadPageError("status", f"found NVMe status 0x{status:04X} of {path}; {hint}")
    return page.tobytes()


def _unreadable(error: OSError, message: str) -> BadPageError:
    if error.errno in _PERMISSION:
        return BadPageError("permission", f"{message}; it needs CAP_SYS_ADMIN, as root")
    return BadPageError("removed" if error.errno in _REMOVED else "device", message)
