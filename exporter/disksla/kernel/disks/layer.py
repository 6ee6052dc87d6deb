"""How a block device is made of others: md, LVM, dm-crypt and multipath, from sysfs, without root.

sysfs has the level of an md array and its members. Of the device mapper it has the devices below,
and names and UUIDs by which LVM, cryptsetup and multipath-tools mark their devices, but no table;
whether a logical volume is striped shows in what its queue advises: the target `striped` sets
optimal_io_size to the chunk times the number of stripes, and no other target of LVM over physical
volumes changes it. The level of a RAID volume of LVM follows from the sizes of its images.

Sources: Documentation/admin-guide/md.rst; drivers/md/dm-stripe.c (stripe_io_hints),
block/blk-settings.c (blk_stack_limits), drivers/md/raid10.c (layout); lvm2, lib/activate
(build_dm_uuid) and lvmraid(7).
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec

from disksla.kernel.procfs import SECTOR_BYTES

How = Literal["linear", "striped", "mirrored", "unknown"]
"""`linear`: each part of it is on one member. `striped`: its chunks are on the members in turn.
`mirrored`: all of it is on each member."""


class Layer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a block device is made of the members below it."""

    how: How
    title: str  # what made it, such as 'RAID 10' or 'LVM'
    members: tuple[str, ...]
    """Kernel names of the devices that have its data, without spares and metadata."""
    copies: int = 1  # members that have the same chunk, if it is striped
    chunk_bytes: int | None = None
    name: str | None = None  # name in the device mapper, such as vg-data


class Below(NamedTuple):
    """A device that a device of the device mapper is stacked on."""

    name: str
    size_bytes: int | None = None
    optimal_bytes: int = 0  # optimal_io_size of its queue
    dm_name: str = ""
    dm_uuid: str = ""


Attribute = Callable[[str], str | None]
"""Returns the content of a file in the directory of a device, or where a link in it points to."""


def layer_of(slaves: Sequence[str], read: Attribute, link: Attribute) -> Layer | None:
    """Return how a device is made of its slaves; None if it has none, or that is not known."""
    if not slaves:
        return None
    if read("md/level"):
        return _of_md(read, link)
    if read("dm/name"):
        below = [_below(read, f"slaves/{name.replace('/', '!')}/", name) for name in slaves]
        return dm_layer(_below(read, "", ""), _number(read("queue/minimum_io_size")), below)
    return None


def _below(read: Attribute, path: str, name: str) -> Below:
    """Return what the files of a device say of it as a part of others."""
    return Below(
        name,
        _number(read(f"{path}size")) * SECTOR_BYTES or None,
        # A partition has no queue of its own.
        _number(read(f"{path}queue/optimal_io_size") or read(f"{path}../queue/optimal_io_size")),
        read(f"{path}dm/name") or "",
        read(f"{path}dm/uuid") or "",
    )


_ARRAY_IMAGE = re.compile(r"_(r|m)image_\d+$")
_METADATA = re.compile(r"_(rmeta_\d+|mlog|tmeta|cmeta)$")
_FAR = 8  # bits of the number of near copies, and of far copies, in the layout of RAID 10


def _of_md(read: Attribute, link: Attribute) -> Layer | None:
    """Return the layer of an md array; None if it has no member."""
    level, layout = read("md/level") or "", _number(read("md/layout"))
    slots = [link(f"md/rd{slot}") for slot in range(_number(read("md/raid_disks")))]
    members = tuple(each.removeprefix("dev-").replace("!", "/") for each in slots if each)
    kind = re.fullmatch(r"raid(\d+)", level)
    title = f"RAID {kind[1]}" if kind else f"md {level}"
    near, far = layout & 2**_FAR - 1, layout >> _FAR & 2**_FAR - 1
    copies = {"raid0": 1, "raid10": near * far}.get(level, 0)
    if not members:
        return None
    if level == "raid1":
        return Layer("mirrored", title, members)
    if len(members) < len(slots):
        return Layer("unknown", f"{title} with a member missing", members)
    if copies:
        chunk_bytes = _number(read("md/chunk_size")) or None
        return Layer("striped", title, members, copies, chunk_bytes)
    return Layer("linear" if level == "linear" else "unknown", title, members)


def _number(text: str | None) -> int:
    """Return the number at the beginning of an attribute; 0 without one."""
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else 0


def dm_layer(own: Below, minimum_bytes: int, below: Sequence[Below]) -> Layer | None:
    """Return the layer of a device of the device mapper; None without devices below.

    `minimum_bytes` is minimum_io_size of its queue.
    """
    title = next((title for mark, title in _TITLES.items() if own.dm_uuid.startswith(mark)), "")
    data = [each for each in below if not _METADATA.search(each.dm_name)]
    names = tuple(each.name for each in data)

    def layer(how: How, what: str = "", copies: int = 1, chunk_bytes: int | None = None) -> Layer:
        words = " ".join(filter(None, (title or "device mapper", what)))
        name = own.dm_name or None
        return Layer(how, words, names, copies=copies, chunk_bytes=chunk_bytes, name=name)

    if not data:
        return None
    if len(data) == 1 or title in {"dm-crypt", "multipath"}:
        return layer("linear")
    if all(_ARRAY_IMAGE.search(each.dm_name) for each in data):
        return layer(*_of_images(own.size_bytes, data))
    if title not in {"", "LVM"} or any(each.dm_uuid.startswith("LVM-") for each in data):
        return layer("unknown")  # a cache, a snapshot: which member has the data changes
    advised = [each.optimal_bytes for each in data if each.optimal_bytes]
    is_as_below = own.optimal_bytes == (math.lcm(*advised) if advised else 0)
    is_by_chunks = minimum_bytes > 0 and own.optimal_bytes == len(data) * minimum_bytes
    if is_as_below == is_by_chunks:
        return layer("unknown")  # a volume of several segments
    return layer("striped", chunk_bytes=minimum_bytes) if is_by_chunks else layer("linear")


_TITLES = {"CRYPT-": "dm-crypt", "LVM-": "LVM", "mpath-": "multipath"}
"""By the beginning of the UUID."""


def _of_images(size_bytes: int | None, images: Sequence[Below]) -> tuple[How, str, int]:
    """Return how a RAID volume of LVM is made of its images, whose sizes say it."""
    sizes = {each.size_bytes for each in images}
    [image_bytes] = sizes if len(sizes) == 1 else (None,)
    if not size_bytes or not image_bytes:
        return "unknown", "", 1
    count, ratio = len(images), size_bytes / image_bytes
    if ratio == 1:
        return "mirrored", "raid1", 1
    if ratio == count:
        return "striped", "raid0", 1
    if 2 * ratio == count:
        return "striped", "raid10", 2
    return "unknown", "with parity", 1
