"""Which entry applies to each disk, and which entries apply to none."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import Literal, NamedTuple

from disksla.kernel.disks import Disk
from disksla.promise.catalogue import TermsSource
from disksla.promise.configuration.configuration import TermsFile
from disksla.promise.configuration.match_index import MatchIndex
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch

UnusedReason = Literal["unmatched", "shadowed"]


class FoundTerms(NamedTuple):
    """The entry that applies to a disk."""

    entry: DiskEntry
    place: str  # where it is, for people
    file: TermsFile | None  # the file that has it; None for the configuration


class UnusedEntry(NamedTuple):
    """An entry that applies to no disk."""

    source: TermsSource
    place: str
    reason: UnusedReason
    match: str
    hint: str = ""  # what the entry may mean instead; empty if that is not known

    def describe(self) -> str:
        """Return a sentence for people."""
        why = "matches no disk" if self.reason == "unmatched" else "is shadowed by earlier entries"
        return f"{self.place} ({self.match}) {why}{self.hint and '; '}{self.hint}"


class Found(NamedTuple):
    """The entry of each disk that has one, by kernel name, and the entries that apply to none."""

    by_disk: dict[str, FoundTerms]
    unused: tuple[UnusedEntry, ...]


def find_all(disks: Iterable[Disk], settings: Settings, terms_files: Iterable[TermsFile]) -> Found:
    """Return the first entry that matches each disk: of the configuration, or else of the files.

    It looks at each entry once, so the work grows with the number of entries and of disks, not
    with their product. What the provider says of a disk for which people have an entry is not
    unused: theirs comes first. Nor is what it says of a mount point: that is of a file storage,
    which may be of a kind that is not monitored.
    """
    disks = tuple(disks)
    index, mounts = MatchIndex(disks), _device_by_mount(disks)
    by_disk: dict[str, FoundTerms] = {}
    has_matched: dict[DiskMatch, bool] = {}
    unused = []
    for file, place, entry in _entries(settings, terms_files):
        match = entry.match
        if match not in has_matched:
            matching = index.matching(match)
            has_matched[match] = bool(matching)
            new = [name for name in matching if name not in by_disk]
            if new:
                # Of a provider, who says it; else where it is.
                said_by = place if file is None or file.source == "file" else file.origin
                by_disk |= dict.fromkeys(new, FoundTerms(entry, said_by, file))
                continue
        source = "configuration" if file is None else file.source
        if has_matched[match]:
            if source not in {"api", "metadata"}:
                unused.append(UnusedEntry(source, place, "shadowed", match.describe()))
        elif source not in {"api", "metadata"} or match.mountpoint is None:
            hint = _mount_hint(match, mounts)
            unused.append(UnusedEntry(source, place, "unmatched", match.describe(), hint))
    return Found(by_disk, tuple(unused))


def find_terms(
    disk: Disk, settings: Settings, terms_files: Iterable[TermsFile]
) -> FoundTerms | None:
    """Return the first matching entry: of the configuration, or else of the terms files."""
    return find_all((disk,), settings, terms_files).by_disk.get(disk.name)


def unused_entries(
    disks: Iterable[Disk], settings: Settings, terms_files: Iterable[TermsFile]
) -> tuple[UnusedEntry, ...]:
    """Return the entries of the configuration and of terms files that apply to no disk."""
    return find_all(disks, settings, terms_files).unused


def shadowed_entries(settings: Settings) -> dict[int, int]:
    """Return the entries of `disks` that apply to no disk of any machine, by index.

    Each has the index of the first entry that matches every disk that it matches.
    """
    first: dict[frozenset[tuple[str, str]], int] = {}
    shadowed = {}
    for index, entry in enumerate(settings.disks):
        keys = tuple(entry.match.given().items())
        earlier = [first[some] for some in _subsets(keys) if some in first]
        if earlier:
            shadowed[index] = min(earlier)
        first.setdefault(frozenset(keys), index)
    return shadowed


def _subsets(keys: tuple[tuple[str, str], ...]) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield the sets of some of the keys of an entry, of which there are nine at most."""
    sizes = range(1, len(keys) + 1)
    return map(frozenset, chain.from_iterable(combinations(keys, size) for size in sizes))


def _entries(
    settings: Settings, terms_files: Iterable[TermsFile]
) -> Iterator[tuple[TermsFile | None, str, DiskEntry]]:
    """Yield all entries in the order in which they are tried, each with its file and place."""
    for index, entry in enumerate(settings.disks):
        yield None, f"disks[{index}] of the configuration", entry
    for file in terms_files:
        for index, entry in file.entries():
            yield file, f"disks[{index}] of {file.name}", entry


def _device_by_mount(disks: Sequence[Disk]) -> dict[str, str]:
    """Return the disk that was sold on which a file system is, by mount point."""
    sold = [disk for disk in reversed(disks) if disk.is_sold]  # the first disk replaces others
    return {point: disk.name for disk in sold for point in disk.mount_points}


def _mount_hint(match: DiskMatch, device_by_mount: dict[str, str]) -> str:
    """Return which file system a path is on that is no mount point; '' for other entries."""
    path = match.mountpoint
    if path is None or path in device_by_mount:
        return ""
    point = path
    while point not in device_by_mount:
        if point in {"/", ""}:
            return ""
        point = point.rpartition("/")[0] or "/"
    name = device_by_mount[point]
    return f"{path} is not a mount point, and is on {point} ({name}) if it is not mounted later"
