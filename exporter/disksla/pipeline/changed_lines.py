"""One text of /proc/diskstats held against the one before: whose lines changed.

Comparing lines costs a tenth of reading their numbers, and most disks of most hosts are idle
most of the time.
"""

from collections.abc import Collection, Mapping

import msgspec

from disksla.disks import Disk
from disksla.procfs import LINE_HEAD


class DiskstatsLines(msgspec.Struct, frozen=True, gc=False):
    """The lines of one text, and which watched device each belongs to."""

    lines: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    """Major, minor and name as printed: while they stand, lines mean the same devices."""
    owners: tuple[tuple[str, ...], ...] = ()
    """The watched devices that each line tells of: its own, and the whole disk of a partition."""
    positions: Mapping[str, tuple[int, ...]] = {}
    """The lines of each watched device, its own first and then its partitions'."""

    def follow(self, text: str) -> "tuple[DiskstatsLines, set[str]] | None":
        """Give the next frame and the devices whose lines changed; None if the lines moved."""
        lines = tuple(text.splitlines())
        if len(lines) != len(self.lines):
            return None
        changed: set[str] = set()
        for position, (new, old) in enumerate(zip(lines, self.lines, strict=True)):
            if new != old:
                if not new.startswith(self.heads[position]):
                    return None
                changed.update(self.owners[position])
        return DiskstatsLines(lines, self.heads, self.owners, self.positions), changed

    def lines_of(self, device: str) -> list[str]:
        """Give the lines of a watched device, its own first; none if it is not listed."""
        return [self.lines[position] for position in self.positions.get(device, ())]


def index_lines(
    text: str, disks: Collection[Disk], whole_disk_of: Mapping[str, str]
) -> DiskstatsLines:
    """Find the lines of each of `disks`: its own, by name and number, and its partitions'."""
    lines = tuple(text.splitlines())
    numbers = {disk.name: (str(disk.major), str(disk.minor)) for disk in disks}
    heads: list[str] = []
    owners: list[tuple[str, ...]] = []
    own: dict[str, int] = {}
    partitions: dict[str, list[int]] = {}
    for position, line in enumerate(lines):
        match = LINE_HEAD.match(line)
        name, number = (match[3], (match[1], match[2])) if match else ("", None)
        told_of = []
        if number is not None and numbers.get(name) == number:
            own[name] = position
            told_of.append(name)
        whole = whole_disk_of.get(name)
        if whole in numbers:
            partitions.setdefault(whole, []).append(position)
            told_of.append(whole)
        heads.append(match[0] if match else line)
        owners.append(tuple(told_of))
    positions = {name: (place, *partitions.get(name, ())) for name, place in own.items()}
    return DiskstatsLines(lines, tuple(heads), tuple(owners), positions)
