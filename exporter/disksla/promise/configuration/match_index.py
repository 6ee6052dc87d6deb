"""Which disks an entry matches: the disks of a machine by all that an entry may say of one."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from disksla.kernel.disks import Disk, handle_hash
from disksla.promise.disk_entry import DiskMatch

_VIRTIO_SERIAL_LENGTH = 20
"""virtio-blk truncates serials to this length (VIRTIO_BLK_ID_BYTES), less than a UUID has."""

_EBS_DASH = re.compile(r"^vol-(?=[0-9a-f]+$)")
_UUID_START = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]")
_WWN_PREFIX = re.compile(r"^(0x|naa\.|eui\.|3(?=(?:[0-9a-f]{16}){1,2}$))")

Word = tuple[str, str]  # what is said of a disk, and its kind: ('serial', '0a1b')
_NONE: frozenset[str] = frozenset()


class MatchIndex:
    """The disks of a machine by the words for them, so that an entry costs no look at each disk.

    Partitions, stacked devices and further paths share serial, volume, WWN, model and mount points
    with the disk that was sold, so they match only if `device` or `by_id` is set.
    """

    def __init__(self, disks: Iterable[Disk]) -> None:
        """Index the disks."""
        self._sold: defaultdict[Word, set[str]] = defaultdict(set)
        self._all: defaultdict[Word, set[str]] = defaultdict(set)
        for disk in disks:
            for word in _words_of(disk):
                self._all[word].add(disk.name)
                if disk.is_sold:
                    self._sold[word].add(disk.name)

    def matching(self, match: DiskMatch) -> Collection[str]:
        """Return the names of the disks that match all keys that are set."""
        is_named = match.device is not None or match.by_id is not None
        index = self._all if is_named else self._sold
        fewest, *others = sorted(
            (_named(index, _spellings(key, text)) for key, text in match.given().items()), key=len
        )
        return {name for name in fewest if all(name in other for other in others)}


def matches(match: DiskMatch, disk: Disk) -> bool:
    """Return whether a disk matches all keys that are set."""
    return bool(MatchIndex((disk,)).matching(match))


def has_device_name(name: str, disk: Disk) -> bool:
    """Return whether a disk has a name in /dev: its kernel name, or a link.

    A name in /dev/disk/by-id or /dev/mapper may be without that directory.
    """
    return not set(_words_of(disk)).isdisjoint(_spellings("device", name))


def has_id(name: str, disk: Disk) -> bool:
    """Return whether a name is the volume, serial number, WWN or CSI handle of a disk."""
    words = set(_words_of(disk))
    keys = ("volume", "serial", "wwn", "volume_handle")
    return any(not words.isdisjoint(_spellings(key, name)) for key in keys)


def _named(index: defaultdict[Word, set[str]], words: list[Word]) -> Collection[str]:
    """Return the names of the disks that have one of the words."""
    found = [index[word] for word in words if word in index]
    return found[0] if len(found) == 1 else _NONE.union(*found)


def _words_of(disk: Disk) -> Iterator[Word]:
    """Yield what may be said of a disk, in the spelling of the index."""
    yield "name", disk.name
    yield from (("link", link) for link in disk.links)
    yield from (("id", name) for name in disk.by_id)
    yield from (("mountpoint", point) for point in disk.mount_points)
    yield from _ids_of(disk)
    known = {
        "storage_class": disk.storage_class,
        "model": disk.model,
        "wwn": disk.wwn and _without_prefix(disk.wwn),
        "volume_handle": disk.volume_handle,
        "volume_handle_hash": disk.volume_handle_hash if disk.volume_handle is None else None,
    }
    yield from ((kind, text) for kind, text in known.items() if text is not None)


def _ids_of(disk: Disk) -> Iterator[Word]:
    """Yield the serial number and the volume of a disk, each whole and as virtio cuts it."""
    if disk.serial is not None:
        serial = _without_dash(disk.serial)
        yield "serial", serial
        yield from _cut_words("serial", serial)
    if disk.volume is not None:
        yield "volume", _without_dash(disk.volume)
        if disk.name.startswith("vd") or _UUID_START.match(disk.volume):
            yield from _cut_words("volume", disk.volume)


def _spellings(key: str, text: str) -> list[Word]:
    """Return the words of disks that the value of a key means: a disk that has one matches."""
    special = _SPELLINGS.get(key)
    return [(key, text)] if special is None else special(text)


def _device_spellings(text: str) -> list[Word]:
    by_id = text.removeprefix("disk/by-id/")
    mapped = f"dm-name-{text.removeprefix('mapper/')}"
    return [("name", text), ("link", text), ("id", by_id), ("id", mapped)]


def _serial_spellings(text: str) -> list[Word]:
    serial = _without_dash(text)
    return [("serial", serial), *_cut_spellings("serial", serial)]


_SPELLINGS: dict[str, Callable[[str], list[Word]]] = {
    "device": _device_spellings,
    "by_id": lambda text: [("id", text), ("link", text)],
    "serial": _serial_spellings,
    "volume": lambda text: [("volume", _without_dash(text)), *_cut_spellings("volume", text)],
    "wwn": lambda text: [("wwn", _without_prefix(text))],
    "volume_handle": lambda text: [
        ("volume_handle", text),
        ("volume_handle_hash", handle_hash(text)),
    ],
}
"""The keys whose value is not compared as it is."""


def _without_dash(text: str) -> str:
    """Return the id of a volume without the dash of vol-0a1b, which AWS leaves out in serials."""
    return _EBS_DASH.sub("vol", text)


def _without_prefix(wwn: str) -> str:
    """Return a WWN without its prefix: 0x5000c5... in udev, 35000c5... in multipath."""
    return _WWN_PREFIX.sub("", wwn)


def _cut_words(kind: str, text: str) -> Iterator[Word]:
    """Yield the words of a disk whose text may be cut, or be that of a cut one in an entry."""
    if len(text) == _VIRTIO_SERIAL_LENGTH:
        yield f"cut {kind}", text
    elif len(text) > _VIRTIO_SERIAL_LENGTH:
        yield f"long {kind}", text[:_VIRTIO_SERIAL_LENGTH]


def _cut_spellings(kind: str, text: str) -> Iterator[Word]:
    """Yield the words of `_cut_words` that mean the same as the text of an entry."""
    if len(text) == _VIRTIO_SERIAL_LENGTH:
        yield f"long {kind}", text
    elif len(text) > _VIRTIO_SERIAL_LENGTH:
        yield f"cut {kind}", text[:_VIRTIO_SERIAL_LENGTH]
