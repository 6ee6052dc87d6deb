"""Which lines of /proc/diskstats changed since the previous text.

Comparing lines costs a tenth of parsing their numbers, and most disks of most hosts are idle most
of the time.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import compress
from operator import ne

import msgspec

from disksla.base.counts import total
from disksla.base.errors import DiskslaError
from disksla.kernel.disks import Disk, nvme_head
from disksla.kernel.procfs import LINE_HEAD, CounterValues, MalformedLineError, parse_line

_HEAD_FIELDS = 3


class DiskstatsLines(msgspec.Struct, frozen=True, gc=False):
    """The lines of one text, and the monitored devices that each line belongs to."""

    text: str = ""
    lines: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    """Major, minor and name of each line as printed. The index below is valid as long as they do
    not change."""
    owners: tuple[tuple[str, ...], ...] = ()
    """The monitored devices that each line belongs to: its own device, and the whole disk of a
    partition."""
    positions: Mapping[str, tuple[int, ...]] = {}
    """The lines of each monitored device: its own first, then those of its partitions."""
    partitioned: frozenset[str] = frozenset()  # the monitored devices with partitions
    paths: Mapping[str, Mapping[str, int]] = {}
    """The lines of the further paths of each monitored device, by the names of the paths."""

    def compare(self, text: str) -> "tuple[DiskstatsLines, set[str]] | None":
        """Return the lines of a new text and the devices whose lines changed.

        None if the lines are not of the same devices in the same order: use `index_lines`.
        """
        changed: set[str] = set()
        if text == self.text:
            return self, changed
        lines = tuple(text.splitlines())
        if len(lines) != len(self.lines):
            return None
        for position in compress(range(len(lines)), map(ne, lines, self.lines)):
            if not lines[position].startswith(self.heads[position]):
                return None
            changed.update(self.owners[position])
        return msgspec.structs.replace(self, text=text, lines=lines), changed

    def lines_of(self, device: str) -> list[str]:
        """Return the lines of a monitored device, its own first; none if it is not listed."""
        return [self.lines[position] for position in self.positions.get(device, ())]

    def counted_at(self, device: str) -> tuple[str, ...]:
        """Return the devices whose counters add up to those of a monitored device.

        That is itself, and its further paths. Where a disk has hidden paths, the kernel counts at
        the disk and at the paths (since about Linux 6.2), or at the paths alone.
        """
        paths = self.paths.get(device)
        if not paths:
            return (device,)
        is_hidden = any(nvme_head(path) == device for path in paths)
        if not is_hidden:
            return (device, *paths)
        own = self.lines_of(device)
        counts = own[0].split()[_HEAD_FIELDS:] if own else []
        return (device,) if any(number != "0" for number in counts) else tuple(paths)

    def counted_lines(self, device: str) -> list[str]:
        """Return the lines of the devices whose counters add up to those of a monitored one."""
        own = self.lines_of(device)[:1]
        paths = self.paths.get(device, {})
        at = self.counted_at(device)
        return own and [own[0] if each == device else self.lines[paths[each]] for each in at]


def index_lines(
    text: str,
    disks: Collection[Disk],
    whole_disk_of: Mapping[str, str],
    head_of: Mapping[str, str] | None = None,
) -> DiskstatsLines:
    """Return the lines of a text with an index of `disks`, their partitions and further paths.

    A line belongs to a disk if name, major and minor number are the same. `whole_disk_of` maps
    the name of a partition to that of its whole disk, and `head_of` that of a path to its disk's.
    """
    lines = tuple(text.splitlines())
    numbers = {disk.name: (str(disk.major), str(disk.minor)) for disk in disks}
    heads: list[str] = []
    owners: list[tuple[str, ...]] = []
    own: dict[str, int] = {}
    partitions: dict[str, list[int]] = {}
    paths: dict[str, dict[str, int]] = {}
    for position, line in enumerate(lines):
        match = LINE_HEAD.match(line)
        name, number = (match[3], (match[1], match[2])) if match else ("", None)
        line_owners = []
        if number is not None and numbers.get(name) == number:
            own[name] = position
            line_owners.append(name)
        head = (head_of or {}).get(name)
        if head in numbers:
            paths.setdefault(head, {})[name] = position
            line_owners.append(head)
        whole = whole_disk_of.get(name)
        if whole in numbers:
            partitions.setdefault(whole, []).append(position)
            line_owners.append(whole)
        heads.append(match[0] if match else line)
        owners.append(tuple(line_owners))
    positions = {name: (position, *partitions.get(name, ())) for name, position in own.items()}
    partitioned = frozenset(positions.keys() & partitions.keys())
    return DiskstatsLines(
        text=text,
        lines=lines,
        heads=tuple(heads),
        owners=tuple(owners),
        positions=positions,
        partitioned=partitioned,
        paths=paths,
    )


def counters_of(
    read_diskstats: Callable[[], str], disk: Disk, disks: Collection[Disk]
) -> CounterValues:
    """Return the present counters of a disk, those of all its paths together.

    `disks` are all block devices. Raise DiskslaError if there are none.
    """
    head_of = {path.name: disk.name for path in disks if path.path_of == disk.name}
    try:
        lines = index_lines(read_diskstats(), [disk], {}, head_of).counted_lines(disk.name)
        parsed = [*map(parse_line, lines)]
    except (OSError, MalformedLineError) as error:
        raise DiskslaError(f"cannot read the counters of {disk.name}: {error}") from error
    if not parsed:
        raise DiskslaError(f"{disk.name} is not in /proc/diskstats")
    return total(parsed).reading
