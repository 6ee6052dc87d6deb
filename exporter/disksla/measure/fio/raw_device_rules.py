"""Rules: may a raw disk be overwritten? Only if it is not in use and contains no data."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.kernel.disks import Disk, devices_below, devices_on, possible_paths, with_stacking
from disksla.kernel.procfs import Mount

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
BLOCK_BYTES = 4096
SAMPLES = 2048
"""Blocks that are checked at a fixed stride, and as many again by chance. Data in one piece of
more than 1 / SAMPLES of the disk are always found."""

SECTOR_BYTES = 512
_COPIES = (
    *(8 * 1024**2 * group for group in (1, 3, 5, 7, 9)),
    *(128 * 1024**2 * group for group in (1, 3, 5, 7, 9, 25, 27, 49, 81, 125)),
    64 * 1024**2,
    256 * 1024**3,
)
"""Where file systems keep copies of their first block: ext4 in some groups of 8 MiB (with blocks
of 1 KiB) or 128 MiB (4 KiB), btrfs at 64 MiB and 256 GiB; XFS has them in quarters. A file system
without files has little else by which it is found once its start has been erased."""

DeviceNumber = tuple[int, int]
"""Major and minor number of a device."""


class VolumeDevices(NamedTuple):
    """The devices by which what is on a disk can be read and written."""

    others: tuple[Disk, ...]
    """What may be the same volume and is not below the disk."""
    below: tuple[Disk, ...]
    """What the disk is stacked on; of a multipath device, its paths."""
    sides: tuple[Disk, ...]
    """The disk and all its paths, below it or not."""
    all: tuple[Disk, ...]
    """All of these, and what is stacked on them."""


def volume_devices(disk: Disk, disks: Collection[Disk]) -> VolumeDevices:
    """Return the devices of the volume of a disk. `disks` are all block devices at present."""
    below = devices_below(disk, disks)
    known = {disk.name, *(one.name for one in below)}
    others = {
        other.name: other
        for one in (disk, *below)
        for other in possible_paths(one, disks)
        if other.name not in known
    }
    paths = [one for one in below if possible_paths(one, (disk, *below))]
    sides = (disk, *others.values(), *paths)
    found = {one.name: one for side in sides for one in devices_on(side, disks)}
    found |= {one.name: one for one in below}
    return VolumeDevices(tuple(others.values()), below, sides, tuple(found.values()))


def reasons_in_use(
    disk: Disk,
    disks: Collection[Disk],
    mounts: Iterable[Mount],
    swaps: Collection[DeviceNumber] = (),
    root: DeviceNumber | None = None,
) -> tuple[str, ...]:
    """Return why a disk is in use, by whatever path; empty if it is not.

    A disk with further paths always is, unless it is the multipath device over all of them: one
    path can be mounted while another one is written. `disks` are all block devices at present,
    `mounts` the mounts of all mount namespaces, `swaps` the swap devices, `root` the root device
    on the kernel's command line.
    """
    disks = with_stacking(disks, mounts)
    now = next((one for one in disks if one.name == disk.name), None)
    other = reasons_other_disk(disk, now)
    if now is None or other:
        return other
    volume = volume_devices(now, disks)
    sides = {one.name for one in volume.sides}
    numbers = {(one.major, one.minor) for one in volume.all}
    partitions = sorted(one.name for one in disks if one.partition_of in sides)
    mount_points = sorted({point for side in volume.sides for point in side.mount_points})
    system = sorted(_SYSTEM_MOUNT_POINTS.intersection(mount_points))
    holders = sorted({holder for side in volume.sides for holder in side.holders} - sides)
    reasons = []
    if now.hidden:
        reasons.append(f"{now.name} is one path of a multipath disk")
    if now.partition_of is not None:
        reasons.append(f"{now.name} is a partition of {now.partition_of}; expected a whole disk")
    if volume.others:
        reasons.append(
            "by WWN or serial number it may be the same volume as other devices"
            f"{_listed(sorted(one.name for one in volume.others))}; expected a disk with one path,"
            " or the multipath device over all paths"
        )
    if system or root in numbers:
        reasons.append(f"the system runs from it{_listed(system)}")
    if mount_points:
        reasons.append(f"it is mounted{_listed(mount_points)}")
    if numbers.intersection(swaps):
        reasons.append("it is used as swap")
    if partitions:
        reasons.append(f"it has partitions{_listed(partitions)}")
    if holders:
        reasons.append(f"other devices are stacked on it{_listed(holders)}")
    return tuple(reasons)


def sampled_regions(
    size_bytes: int, number_below: Callable[[int], int]
) -> tuple[tuple[int, int], ...]:
    """Return offset and length of what is read to find out whether a disk is empty.

    These are both ends, then blocks spread over the whole disk, in the order of their offsets: by
    a fixed stride, where file systems keep copies of their first block, and by chance, since data
    may be laid out at a stride too. `number_below` returns a random number from 0 to below its
    argument.
    """
    tail_at = max(0, size_bytes - EDGE_BYTES) // BLOCK_BYTES * BLOCK_BYTES
    blocks = size_bytes // BLOCK_BYTES
    samples = range(SAMPLES if blocks else 0)
    numbers = {number * blocks // SAMPLES for number in samples}
    numbers |= {number_below(blocks) for _ in samples}
    numbers |= {at // BLOCK_BYTES for at in _COPIES if at + BLOCK_BYTES <= size_bytes}
    numbers |= {number for part in (1, 2, 3) if (number := part * -(-blocks // 4)) < blocks}
    return (
        (0, min(EDGE_BYTES, size_bytes)),
        (tail_at, size_bytes - tail_at),
        *((number * BLOCK_BYTES, BLOCK_BYTES) for number in sorted(numbers)),
    )


def reasons_not_empty(regions: Iterable[tuple[int, bytes]]) -> tuple[str, ...]:
    """Return why a disk is not empty, given what it contains at some offsets; empty if it is.

    It is empty if each sector is the same as the first one: zeros, or what a thin volume or an SSD
    returns for blocks that were never written. Any other content counts, not only known formats: a
    database may use the raw disk. No region is taken after the first that differs.
    """
    data_at, first = None, b""
    for offset_bytes, content in regions:
        rest = content.lstrip(b"\0")
        if data_at is None and rest:
            data_at = offset_bytes + len(content) - len(rest)
        first = first or content[:SECTOR_BYTES]
        if content != first * (len(content) // SECTOR_BYTES):
            reason = (
                f"it contains data at byte {data_at}; if none of its data is needed, erase the"
                " disk with `blkdiscard --zeroout`, or with dd from /dev/zero"
            )
            return (reason,)
    return ()


def reasons_other_disk(disk: Disk, now: Disk | None) -> tuple[str, ...]:
    """Return why the disk of that name is not the one that was examined; empty if it is."""
    if now is None:
        return (f"{disk.name} no longer exists",)
    if not disk.is_same_as(now):
        return (f"{disk.name} is now the name of another disk",)
    if disk.size_bytes != now.size_bytes:
        return (f"its size was {disk.size_bytes} bytes and is {now.size_bytes} bytes now",)
    return ()


def check_consent(disk: Disk, named: str) -> None:
    """Raise DiskslaError unless `named` is the serial of the disk, or its WWN without a serial."""
    kind, identity = ("WWN", disk.wwn) if disk.serial is None else ("serial", disk.serial)
    if identity is None:
        raise DiskslaError(
            f"--destroy-data: {disk.name} has neither serial nor WWN by which it could be named;"
            " erase the disk with `blkdiscard --zeroout`, or with dd from /dev/zero"
        )
    if named != identity:
        raise DiskslaError(
            f"--destroy-data: found '{named}'; expected '{identity}', the {kind} of {disk.name},"
            " if all data on this disk may be destroyed"
        )


def writable_region(size_bytes: int) -> tuple[int, int]:
    """Return offset and length of the region that may be written: all but both ends.

    Anything at the ends that the checks overlooked is kept.
    """
    return EDGE_BYTES, max(0, size_bytes // BLOCK_BYTES * BLOCK_BYTES - 2 * EDGE_BYTES)


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
