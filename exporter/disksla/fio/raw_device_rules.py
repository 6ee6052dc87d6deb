"""Rules: may a raw disk be overwritten? Only if it is not in use and contains no data."""

import re
from collections.abc import Collection, Iterable

from disksla.disks import Disk, devices_on, with_stacking
from disksla.procfs import Mount

_SYSTEM_MOUNT_POINTS = {"/", "/boot", "/boot/efi", "/boot/firmware", "/efi", "/usr", "/var"}
_ROOT = re.compile(r'(?:^|\s)root=(?:"([^"]+)"|(\S+))')
_LINK_DIRECTORIES = {
    "UUID": "uuid",
    "LABEL": "label",
    "PARTUUID": "partuuid",
    "PARTLABEL": "partlabel",
}
_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")

EDGE_BYTES = 4 * 1024**2
"""Bytes checked at each end of a disk. No known format has its first magic number further in:
VMFS has it at 2 MiB, the second header of LUKS 2 is at 4 MiB at the latest."""

DeviceNumber = tuple[int, int]
"""Major and minor number of a device."""


def reasons_in_use(
    disk: Disk,
    disks: Collection[Disk],
    mounts: Iterable[Mount],
    swaps: Collection[DeviceNumber] = (),
    root: DeviceNumber | None = None,
) -> tuple[str, ...]:
    """Return why a disk is in use; empty if it is not.

    `disks` are all block devices at present, `mounts` the mounts of all mount namespaces, `swaps`
    the swap devices, `root` the root device on the kernel's command line.
    """
    now = next((one for one in with_stacking(disks, mounts) if one.name == disk.name), None)
    if now is None:
        return (f"{disk.name} no longer exists",)
    if not disk.is_same_as(now):
        return (f"{disk.name} is now the name of another disk",)
    stacked = devices_on(now, disks)
    numbers = {(one.major, one.minor) for one in stacked}
    partitions = sorted(one.name for one in disks if one.partition_of == now.name)
    system = sorted(_SYSTEM_MOUNT_POINTS.intersection(now.mount_points))
    reasons = []
    if now.hidden:
        reasons.append(f"{now.name} is one path of a multipath disk")
    if now.partition_of is not None:
        reasons.append(f"{now.name} is a partition of {now.partition_of}; expected a whole disk")
    if system or root in numbers:
        reasons.append(f"the system runs from it{_listed(system)}")
    if now.mount_points:
        reasons.append(f"it is mounted{_listed(now.mount_points)}")
    if numbers.intersection(swaps):
        reasons.append("it is used as swap")
    if partitions:
        reasons.append(f"it has partitions{_listed(partitions)}")
    if now.holders:
        reasons.append(f"other devices are stacked on it{_listed(now.holders)}")
    return tuple(reasons)


def reasons_not_empty(head: bytes, tail: bytes) -> tuple[str, ...]:
    """Return why a disk is not empty, given its first and last EDGE_BYTES.

    Any content counts, not only known formats: a database may use the raw disk.
    """
    if not any(head) and not any(tail):
        return ()
    edge_mib = EDGE_BYTES // 1024**2
    reason = (
        f"its first or last {edge_mib} MiB contain data; if none of its data is needed, erase the"
        " disk with `blkdiscard --zeroout`, or with dd from /dev/zero"
    )
    return (reason,)


def writable_region(size_bytes: int) -> tuple[int, int]:
    """Return offset and length of the region that may be written: all but both ends.

    The ends stay zero, so the disk can be tested again; and anything there that the checks
    overlooked is kept.
    """
    return EDGE_BYTES, max(0, size_bytes // 4096 * 4096 - 2 * EDGE_BYTES)


def parse_swaps(text: str) -> tuple[str, ...]:
    """Return the paths listed in /proc/swaps, which are escaped as in mountinfo."""
    lines = [line for line in text.split("\n")[1:] if line.startswith("/")]
    names = [re.split(r"[ \t]", line, maxsplit=1)[0] for line in lines]
    return tuple(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), name) for name in names)


def parse_root(command_line: str) -> str | None:
    """Return the path of the root device in /proc/cmdline; None if there is none."""
    found = _ROOT.search(command_line)
    if found is None:
        return None
    value = found[1] or found[2]
    kind, _, name = value.partition("=")
    if kind in _LINK_DIRECTORIES and name:
        return f"/dev/disk/by-{_LINK_DIRECTORIES[kind]}/{name}"
    return value if value.startswith("/dev/") else None


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(names)
    return f" ({text})" if text else ""
