"""Identity of this machine and of its present boot."""

import hashlib
import os
from pathlib import Path

from disksla.system.roots import Roots

MACHINE_ID = Path("/etc/machine-id")
UNKNOWN_MACHINE = "unknown"
_PLACEHOLDERS = (b"", b"uninitialized")


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
