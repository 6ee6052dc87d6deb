"""What the firmware says of the machine (DMI, also called SMBIOS), from sysfs."""

import os

from disksla.system.roots import Roots

ATTRIBUTES = ("sys_vendor", "product_name", "chassis_asset_tag", "bios_version")
"""Attributes that every user may read and that name the provider. The serial numbers and the UUID
beside them belong to root alone, and are not needed."""
_MAX_BYTES = 4096  # an attribute of sysfs is at most one page
_MAX_CHARACTERS = 256


def read_dmi(roots: Roots) -> dict[str, str]:
    """Return the attributes of the machine that it has, without spaces around them.

    Many machines have none: containers without sysfs, and boards without such a firmware.
    Source: Documentation/ABI/testing/sysfs-devices-dmi_tables of Linux; drivers/firmware/dmi-id.c.
    """
    directory = roots.sysfs / "class" / "dmi" / "id"
    texts = {name: _read(f"{directory}/{name}") for name in ATTRIBUTES}
    return {name: text for name, text in texts.items() if text}


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        content = os.read(descriptor, _MAX_BYTES)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return content.decode(errors="replace").strip()[:_MAX_CHARACTERS]
