"""NVMe disks that may have the statistics page, by sysfs, which needs no privilege."""

import re
from pathlib import Path
from typing import NamedTuple

MODELS = frozenset({"Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"})
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_CONTROLLER = re.compile(r"nvme\d+")


class EbsDevice(NamedTuple):
    """One disk, and the controller to ask."""

    name: str
    """Kernel name of the disk, such as nvme1n1."""
    controller: str
    """Name of its NVMe controller in /dev, such as nvme1."""
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
