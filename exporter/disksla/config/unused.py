"""Unused entries: those that match no disk, or only disks that an earlier entry matches."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from disksla.config.disk_name import is_below
from disksla.config.matching import is_sold, matches
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.config.terms_file import TermsFile
from disksla.disks import Disk
from disksla.limits import TermsSource

UnusedReason = Literal["unmatched", "shadowed"]


class UnusedEntry(NamedTuple):
    """An entry that applies to no disk."""

    source: TermsSource
    place: str
    reason: UnusedReason
    match: str
    hint: str = ""
    """What the entry may mean instead; empty if that is not known."""

    def describe(self) -> str:
        """Return a sentence for people."""
        why = "matches no disk" if self.reason == "unmatched" else "is shadowed by earlier entries"
        return f"{self.place} ({self.match}) {why}{self.hint and '; '}{self.hint}"


def unused_entries(
    disks: Iterable[Disk], settings: Settings, terms_files: Iterable[TermsFile]
) -> tuple[UnusedEntry, ...]:
    """Return the entries of the configuration and of terms files that apply to no disk.

    What the provider says of a disk for which people have an entry is not unused: theirs comes
    first.
    """
    remaining = list(disks)
    everything = tuple(remaining)
    unused = []
    for source, place, entry in _entries(settings, terms_files):
        matching = [disk for disk in remaining if matches(entry.match, disk)]
        if matching:
            remaining = [disk for disk in remaining if disk not in matching]
            continue
        is_shadowed = any(matches(entry.match, disk) for disk in everything)
        if is_shadowed and source in {"api", "metadata"}:
            continue
        reason: UnusedReason = "shadowed" if is_shadowed else "unmatched"
        hint = "" if is_shadowed else _mount_hint(entry.match, everything)
        unused.append(UnusedEntry(source, place, reason, entry.match.describe(), hint))
    return tuple(unused)


def shadowed_entries(settings: Settings) -> dict[int, int]:
    """Return the entries of `disks` that apply to no disk of any machine, by index.

    Each has the index of an earlier entry that matches every disk that it matches.
    """
    given = [entry.match.given().items() for entry in settings.disks]
    return {
        index: earlier
        for index, keys in reversed([*enumerate(given)])
        for earlier in range(index)
        if given[earlier] <= keys
    }


def _mount_hint(match: DiskMatch, disks: tuple[Disk, ...]) -> str:
    """Return which file system a path is on that is no mount point; '' for other entries."""
    if match.mountpoint is None:
        return ""
    path = match.mountpoint
    around = [
        (point, disk.name)
        for disk in disks
        for point in disk.mount_points
        if is_sold(disk) and point != path and is_below(path, point)
    ]
    if not around:
        return ""
    point, name = max(around, key=lambda each: len(each[0]))
    return f"{path} is not a mount point, and is on {point} ({name}) if it is not mounted later"


def _entries(
    settings: Settings, terms_files: Iterable[TermsFile]
) -> Iterator[tuple[TermsSource, str, DiskEntry]]:
    """Yield all entries in the order in which they are tried, each with its source and place."""
    for index, entry in enumerate(settings.disks):
        yield "configuration", f"disks[{index}] of the configuration", entry
    for file in terms_files:
        for index, entry in enumerate(file.entries):
            yield file.source, f"disks[{index}] of {file.name}", entry
