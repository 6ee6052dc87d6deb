"""Where the files of a load are: the disk, or the directory if its disk is not known."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_NAME = re.compile(r"(?:(?:^|(?<=:))[A-Za-z]:(?=[\\/]))?(?:\\.|[^:\\])+")
"""One of the names that fio separates by colons, in which a backslash escapes a colon."""
_WINDOWS = re.compile(
    r"(?:\\\\[.?]\\)?(#\d{1,4}|PhysicalDrive\d{1,4}|Volume\{[^}]{1,60}\}"
    r"|[A-Z]:(?:\\ClusterStorage\\[^\\]{1,60})?|\\\\[^\\]{1,60}\\[^\\]{1,60})",
    re.IGNORECASE | re.ASCII,
)
"""A drive, a volume, a volume of a cluster, or a share of another machine."""


class UsedDisk(msgspec.Struct, frozen=True):
    """A disk that fio found behind the files of its jobs, and what the kernel counted there.

    Ticks are in ms: the time that each request took, added up.
    """

    name: str
    read_ios: _Count = 0
    write_ios: _Count = 0
    read_merges: _Count = 0
    write_merges: _Count = 0
    read_ticks: _Count = 0
    write_ticks: _Count = 0
    aggr_read_ios: _Count | None = None
    """Only for a disk that is built from others."""
    hostname: str = ""

    @property
    def is_used(self) -> bool:
        """Whether it had requests, and is not built from disks that had them."""
        return self.read_ios + self.write_ios > 0 and self.aggr_read_ios is None


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a value of fio's options `filename` and `directory`."""
    return tuple(name.replace("\\:", ":") for name in _NAME.findall(text))


def windows_place(path: str) -> str | None:
    """Return the drive, volume or share of a path of Windows; None for other paths."""
    found = _WINDOWS.match(path)
    return None if found is None else found[1].upper()


def places_of(filename: str, directory: str) -> frozenset[str]:
    """Return the disks and directories in which a job of fio has its files."""
    directories = names_in(directory) or ("",)
    names = names_in(filename) or ("file",)
    return frozenset(_place(place, name) for place in directories for name in names)


def is_device(place: str) -> bool:
    """Return whether a place is a disk, and not a directory."""
    return place.startswith("/dev/") or windows_place(place) is not None


def disks_used(places: Iterable[str], disks: Sequence[UsedDisk]) -> set[str]:
    """Return the disks of a load, or its directories if they may be on several.

    A device that fio does not list is a disk of its own. What /dev/mapper/data is, is not known.
    """
    found = {disk.name for disk in disks if disk.is_used}
    known = tuple(disk.name for disk in disks if disk.is_used or disk.aggr_read_ios is not None)
    named = {place for place in places if is_device(place)}
    if not found:
        several = set(places)
        return several if len(several) > 1 else named
    others = {
        place
        for place in named
        if _parent(place) == "/dev" and not place.removeprefix("/dev/").startswith(known)
    }
    return found | others


def _place(directory: str, name: str) -> str:
    path = name if name.startswith(("/", "\\")) or not directory else f"{directory}/{name}"
    return windows_place(path) or (path if path.startswith("/dev/") else _parent(path))


def _parent(path: str) -> str:
    before, slash, _ = path.rpartition("/")
    return before or slash or "."
