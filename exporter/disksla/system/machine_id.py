"""Which machine this is, and which boot of it."""

import hashlib
import uuid
from pathlib import Path

from disksla.system.roots import Roots

MACHINE_ID = Path("/etc/machine-id")
UNKNOWN_MACHINE = "unknown"
_NO_IDS = (b"", b"uninitialized")


def read_machine_id(file: Path = MACHINE_ID) -> str:
    """Give a hash of the machine's id (machine-id(5) asks that the id itself be kept private).

    An image that has not been booted yet has none, nor do many containers.
    """
    try:
        machine_id = file.read_bytes().strip()
    except OSError:
        return UNKNOWN_MACHINE
    if machine_id in _NO_IDS:
        return UNKNOWN_MACHINE
    return hashlib.sha256(b"disksla " + machine_id).hexdigest()


def read_boot_id(roots: Roots) -> str:
    """Give the kernel's random id of this boot (random(4)).

    Where it is not to be had, a new one: it cannot be told that two boots are the same.
    """
    try:
        boot = roots.procfs / "sys" / "kernel" / "random" / "boot_id"
        return boot.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return str(uuid.uuid4())
