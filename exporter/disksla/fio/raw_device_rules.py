"""Whether a whole disk may be overwritten: only one that nobody uses and that holds nothing."""

import re
from collections.abc import Collection, Iterable

from disksla.disks import Disk, devices_on, with_stacking
from disksla.procfs import Mount

_SYSTEM = {"/", "/boot", "/boot/efi", "/boot/firmware", "/efi", "/usr", "/var"}
_ROOT = re.compile(r'(?:^|\s)root=(?:"([^"]+)"|(\S+))')
_BY = {"UUID": "uuid", "LABEL": "label", "PARTUUID": "partuuid", "PARTLABEL": "partlabel"}
_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")

EDGE_BYTES = 4 * 1024**2
"""Bytes checked at each end of a disk. No known format puts its first magic number further in:
VMFS at 2 MiB, the second header of LUKS 2 up to 4 MiB."""

DeviceNumber = tuple[int, int]
"""Major and minor number of a device."""


def reasons_in_use(
    disk: Disk,
    disks: Collection[Disk],
    mounts: Iterable[Mount],
    swaps: Collection[DeviceNumber] = (),
    root: DeviceNumber | None = None,
) -> tuple[str, ...]:
    """Say who uses a disk, one reason each; nothing if nobody does.

    `disks` are all there are now, `mounts` those of all namespaces, `swaps` the devices that are
    swapped to, `root` the one that the kernel was told to start from.
    """
    now = next((one for one in with_stacking(disks, mounts) if one.name == disk.name), None)
    if now is None:
        return (f"{disk.name} is not there any more",)
    if not disk.is_same_as(now):
        return (f"{disk.name} is another disk now",)
    upon = devices_on(now, disks)
    numbers = {(one.major, one.minor) for one in upon}
    parts = sorted(one.name for one in disks if one.partition_of == now.name)
    system = sorted(_SYSTEM.intersection(now.mount_points))
    reasons = []
    if now.hidden:
        reasons.append(f"{now.name} is a path of another disk")
    if now.partition_of is not None:
        reasons.append(f"{now.name} is a partition of {now.partition_of}; expected a whole disk")
    if system or root in numbers:
        reasons.append(f"this machine runs from it{_listed(system)}")
    if now.mount_points:
        reasons.append(f"it is mounted{_listed(now.mount_points)}")
    if numbers.intersection(swaps):
        reasons.append("it is swapped to")
    if parts:
        reasons.append(f"it has partitions{_listed(parts)}")
    if now.holders:
        reasons.append(f"other devices are made of it{_listed(now.holders)}")
    return tuple(reasons)


def reasons_not_empty(head: bytes, tail: bytes) -> tuple[str, ...]:
    """Return why a disk is not empty, given its first and last EDGE_BYTES.

    Content of any kind counts: a database may use the bare disk.
    """
    if not any(head) and not any(tail):
        return ()
    edge_mib = EDGE_BYTES // 1024**2
    reason = (
        f"its first or last {edge_mib} MiB are not zero; if its data can go, run"
        " `blkdiscard --zeroout` on it, or dd from /dev/zero"
    )
    return (reason,)


def writable_region(size_bytes: int) -> tuple[int, int]:
    """Give offset and length of what may be written: all but the ends that tell it is empty.

    So a disk that was tested can be tested again; and whatever was overlooked at the ends stays.
    """
    return EDGE_BYTES, max(0, size_bytes // 4096 * 4096 - 2 * EDGE_BYTES)


def parse_swaps(text: str) -> tuple[str, ...]:
    """Give the paths in the text of /proc/swaps, which escapes them as mountinfo does."""
    lines = [line for line in text.split("\n")[1:] if line.startswith("/")]
    names = [re.split(r"[ \t]", line, maxsplit=1)[0] for line in lines]
    return tuple(_ESCAPED.sub(lambda match: chr(int(match[1], 8)), name) for name in names)


def parse_root(command_line: str) -> str | None:
    """Give the path of the device that /proc/cmdline names as root; None if it names none."""
    found = _ROOT.search(command_line)
    if found is None:
        return None
    value = found[1] or found[2]
    kind, _, name = value.partition("=")
    if kind in _BY and name:
        return f"/dev/disk/by-{_BY[kind]}/{name}"
    return value if value.startswith("/dev/") else None


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(names)
    return f" ({text})" if text else ""
