"""Identity of this machine and of its present boot, and what its firmware says of it (DMI)."""

import hashlib
import os
from pathlib import Path

from disksla.base.operating_system.roots import Roots

MACHINE_ID = Path("/etc/machine-id")
UNKNOWN_MACHINE = "unknown"
_PLACEHOLDERS = (b"", b"uninitialized")
DMI_ATTRIBUTES = ("sys_vendor", "product_name", "chassis_asset_tag", "bios_version")
"""Attributes that every user may read and that name the provider. The serial numbers and the UUID
beside them belong to root alone, and are not needed."""
_MAX_CHARACTERS = 256
_MAX_PAGE = 4096  # an attribute of sysfs is at most one page


def read_machine_id(file: Path = MACHINE_ID) -> str:
    """Return a hash of the machine id; machine-id(5) asks to keep the id itself private.

    Return UNKNOWN_MACHINE if there is none, as in images before their first boot and in many
    containers.
    """
    try:
        machine_id = file.read_bytes().strip()
    except OSError:
        return UNKNOWN_MACHINE
    if machine_id in _PLACEHOLDERS:
        return UNKNOWN_MACHINE
    return hashlib.sha256(b"disksla " + machine_id).hexdigest()


def read_boot_id(roots: Roots) -> str:
    """Return the kernel's random id of this boot (random(4)).

    If it cannot be read, return a new random id: without the kernel's, two boots cannot be
    recognised as the same one.
    """
    try:
        boot = roots.procfs / "sys" / "kernel" / "random" / "boot_id"
        return boot.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return os.urandom(16).hex()


def read_dmi(roots: Roots) -> dict[str, str]:
    """Return the DMI attributes of the machine that it has, without spaces around them.

    Many machines have none: containers without sysfs, and boards without such a firmware.
    Source: Documentation/ABI/testing/sysfs-devices-dmi_tables of Linux; drivers/firmware/dmi-id.c.
    """
    directory = roots.sysfs / "class" / "dmi" / "id"
    texts = {name: _read_attribute(directory / name) for name in DMI_ATTRIBUTES}
    return {name: text for name, text in texts.items() if text}


def _read_attribute(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_PAGE).strip()[:_MAX_CHARACTERS]
    except OSError:
        return ""
